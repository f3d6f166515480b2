"""Writes the source of a flat encode function for one message at one version.

The function is `encode(o)` and returns the bytes. Runs of fixed-size fields, the length prefix that follows
and empty sections of tagged fields are written by one struct call; variable parts are appended to a list
that is joined once. A value that the version cannot carry is refused, unless the field is ignorable.
"""

from __future__ import annotations

import struct

from protocol.schema.decode_source import default_expression
from protocol.schema.model import FIXED_CODES, NEW_STRUCT, NO_VERSIONS, Field, Message, Struct
from protocol.schema.source import SourceWriter


def encode_source(message: Message, version: int) -> tuple[str, dict[str, struct.Struct]]:
    """The source, and the structs it names."""
    writer = _EncodeWriter(message, version)
    with writer.block("def encode(o):"):
        writer.emit("parts = []")
        writer.emit("w = parts.append")
        writer.write_struct(message.root, "o", message.name)
        writer.flush()
        writer.emit('return b"".join(parts)')
    return "\n".join(writer.lines) + "\n", writer.structs


class _EncodeWriter(SourceWriter):
    def __init__(self, message: Message, version: int) -> None:
        super().__init__(version, message.flexible)
        self.append = "w"

    def flush(self) -> None:
        """Write the pending run of fixed-size values."""
        if self.run and all(code == "x" for code, _ in self.run):
            zeros = "\\0" * len(self.run)
            self.run.clear()
            self.emit(f'{self.append}(b"{zeros}")')
        elif self.run:
            name = self.struct_name("".join(code for code, _ in self.run))
            values = ", ".join(value for code, value in self.run if code != "x")
            self.run.clear()
            self.emit(f"{self.append}({name}_pack({values}))")

    def write_struct(self, group: Struct, source: str, path: str) -> None:
        """Write the struct in the variable `source`; may leave a run pending."""
        for field in self.absent(group):
            if not field.ignorable:
                self.flush()
                with self.block(f"if {differs(field, f'{source}.{field.attribute}')}:"):
                    self.emit(f"raise refused_field({f'{path}.{field.name}'!r}, {self.version})")
        for field in self.inline(group):
            self.write_field(field, f"{source}.{field.attribute}", f"{path}.{field.name}")
        if self.flexible:
            self.write_tags(group, source, path)

    def write_field(self, field: Field, source: str, path: str) -> None:
        """Write one field; may leave a run pending."""
        nullable = self.version in field.nullable
        if field.is_array:
            self.emit(f"x = {source}")
            self.write_array(field, path, nullable)
        elif field.element in FIXED_CODES:
            self.run.append((FIXED_CODES[field.element], self.fixed_value(field.element, source, path)))
        elif field.struct is not None:
            self.write_struct_field(field.struct, source, path, nullable, ("b'\\xff'", "b'\\x01'"))
        else:
            self.write_bytes(field.element, source, path, nullable)

    def fixed_value(self, element: str, source: str, path: str) -> str:
        """The expression packed for a fixed-size value; struct would cut or pad a uuid of a wrong size."""
        return f"uuid16({source}, {path!r})" if element == "uuid" else source

    def write_struct_field(
        self, group: Struct, source: str, path: str, nullable: bool, presence: tuple[str, str]
    ) -> None:
        """Write a struct in line, a nullable one after its mark of absence or presence."""
        inner = self.fresh("o")
        self.flush()
        self.emit(f"{inner} = {source}")
        if not nullable:
            self.write_struct(group, inner, path)
            return
        with self.block(f"if {inner} is None:"):
            self.emit(f"{self.append}({presence[0]})")
        with self.block("else:"):
            self.emit(f"{self.append}({presence[1]})")
            self.write_struct(group, inner, path)
            self.flush()

    def write_length(self, code: str, size: str, is_null: str | None, path: str) -> None:
        """Write the length `size`, or null when the expression `is_null` holds; flushes the run.

        The compact form is size + 1 as a varint, which is one byte mostly: then it goes with the run.
        """
        if not self.flexible:
            self.run.append((code, size if is_null is None else f"-1 if {is_null} else {size}"))
            self.flush()
            return
        self.emit(f"n = {size} + 1" if is_null is None else f"n = 0 if {is_null} else {size} + 1")
        if not self.run:
            self.limit_string(code, path)
            self.emit(f"{self.append}(SMALL_UVARINTS[n] if n < 128 else uvarint(n))")
            return
        run = list(self.run)
        self.run.clear()
        with self.block("if n < 128:"):
            self.run = [*run, ("B", "n")]
            self.flush()
        with self.block("else:"):
            self.limit_string(code, path)
            self.run = run
            self.flush()
            self.emit(f"{self.append}(uvarint(n))")

    def limit_string(self, code: str, path: str) -> None:
        """Refuse a string that is too long; in the old form its int16 length does."""
        if code == "h":
            with self.block("if n > 32768:"):
                self.emit(f"raise refused_string({path!r}, n - 1)")

    def write_bytes(self, element: str, source: str, path: str, nullable: bool) -> None:
        """Write a string, bytes or records."""
        self.emit(f"x = {source}")
        encoded = "x.encode()" if element == "string" else "x"
        if path.endswith(".ErrorMessage"):
            encoded = "clipped(x.encode())"
        self.emit(f'data = b"" if x is None else {encoded}' if nullable else f"data = {encoded}")
        is_null = "x is None" if nullable else None
        self.write_length("h" if element == "string" else "i", "len(data)", is_null, path)
        self.emit(f"{self.append}(data)")

    def write_array(self, field: Field, path: str, nullable: bool) -> None:
        """Write the array in `x`; leaves no run pending."""
        if nullable:
            self.write_length("i", "len(x)", "x is None", path)
        else:
            self.write_length("i", "len(x)", None, path)
        if field.element in FIXED_CODES and field.element != "uuid":
            code = FIXED_CODES[field.element]
            with self.block("if x:"):
                self.emit("n = len(x)")
                small, large = f"pack_{code}[n](*x)", f'pack(f">{{n}}{code}", *x)'
                self.emit(f"{self.append}({small} if n <= SMALL_ARRAY else {large})")
            return
        item = self.fresh("o")
        with self.block(f"for {item} in x or ():" if nullable else f"for {item} in x:"):
            if field.struct is not None:
                self.write_struct(field.struct, item, path)
            else:
                element = Field(
                    field.name, field.element, False, field.versions, NO_VERSIONS, None, None, False
                )
                self.write_field(element, item, path)
            self.flush()

    def write_tags(self, group: Struct, source: str, path: str) -> None:
        """Write the section of tagged fields; fields that equal their default are left out."""
        fields = self.tagged(group)
        if not fields:
            self.run.append(("x", ""))
            return
        self.flush()
        section = self.fresh("section")
        self.emit(f"{section} = []")
        outer = self.append
        for field in fields:
            attribute = f"{source}.{field.attribute}"
            with self.block(f"if {differs(field, attribute)}:"):
                parts = self.fresh("parts")
                self.append = f"{parts}.append"
                self.emit(f"{parts} = []")
                self.write_tagged_field(field, attribute, f"{path}.{field.name}")
                self.emit(f'{section}.append(({field.tag}, b"".join({parts})))')
        self.append = outer
        self.emit(f'{outer}(tagged_section({section}) if {section} else b"\\0")')

    def write_tagged_field(self, field: Field, source: str, path: str) -> None:
        """Write the value of a tagged field."""
        if field.struct is not None and not field.is_array:
            nullable = self.version in field.nullable
            self.write_struct_field(field.struct, source, path, nullable, ("b'\\0'", "b'\\x01'"))
        else:
            self.write_field(field, source, path)
        self.flush()


def differs(field: Field, source: str) -> str:
    """The source of the condition that a field has another value than its default."""
    if field.default is None:
        return f"{source} is not None"
    if field.is_array:
        return f"{source} is None or len({source})"
    if field.default is NEW_STRUCT:
        return f"{source} != C_{field.element}()"
    return f"{source} != {default_expression(field)}"
