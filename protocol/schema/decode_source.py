"""Writes the source of a flat decode function for one message at one version.

The function is `decode(buf, at, end, view, elements, tags)` and returns (message, position after it). `buf`
holds exactly `end` bytes, `view` is a memoryview of the same bytes for `records` fields, `elements` and
`tags` are what the message may still hold of each. Runs of fixed-size fields, and the length prefix of the
variable field that follows, are read by one struct call. Lengths are compared with what is left before
anything is made of them.
"""

from __future__ import annotations

import struct

from protocol.schema.model import FIXED_CODES, NEW_STRUCT, NO_VERSIONS, Field, Message, Struct
from protocol.schema.source import SourceWriter


def decode_source(message: Message, version: int) -> tuple[str, dict[str, struct.Struct]]:
    """The source, and the structs it names."""
    writer = _DecodeWriter(message, version)
    with writer.block("def decode(buf, at, end, view, elements, tags):"):
        writer.read_struct(message.root, "o", message.name)
        writer.flush()
        writer.emit("return o, at")
    return "\n".join(writer.lines) + "\n", writer.structs


class _DecodeWriter(SourceWriter):
    def __init__(self, message: Message, version: int) -> None:
        super().__init__(version, message.flexible)

    def flush(self) -> None:
        """Write the pending run of fixed-size values."""
        if len(self.run) == 1 and self.run[0][0] == "B":
            self.emit(f"{self.run.pop()[1]} = buf[at]")
            self.emit("at += 1")
        elif self.run:
            codes = "".join(code for code, _ in self.run)
            name = self.struct_name(codes)
            targets = ", ".join(target for _, target in self.run) + ("," if len(self.run) == 1 else "")
            self.run.clear()
            self.emit(f"{targets} = {name}_unpack(buf, at)")
            self.emit(f"at += {self.structs[name].size}")

    def read_struct(self, group: Struct, target: str, path: str) -> None:
        """Read a struct into the new variable `target`; leaves a run pending."""
        self.flush()
        self.emit(f"{target} = new(C_{group.name})")
        for field in self.absent(group):
            self.emit(f"{target}.{field.attribute} = {default_expression(field)}")
        for field in self.inline(group):
            self.read_field(field, f"{target}.{field.attribute}", f"{path}.{field.name}")
        if self.flexible:
            self.read_tags(group, target, path)

    def read_field(self, field: Field, target: str, path: str) -> None:
        """Read one field into `target`; may leave a run pending."""
        nullable = self.version in field.nullable
        if field.is_array:
            self.read_length("i", path, target, nullable)
            with self.else_block(nullable):
                self.read_array(field, target, path)
        elif field.element in FIXED_CODES:
            self.run.append((FIXED_CODES[field.element], target))
        elif field.struct is not None:
            self.read_struct_field(field.struct, target, path, nullable, "b")
        else:
            self.read_length("h" if field.element == "string" else "i", path, target, nullable)
            with self.else_block(nullable):
                self.read_bytes(field.element, target, path)

    def read_struct_field(self, group: Struct, target: str, path: str, nullable: bool, presence: str) -> None:
        """Read a struct in line. A nullable one is preceded by its presence: an int8, in a tag a uvarint."""
        inner = self.fresh("o")
        if not nullable:
            self.read_struct(group, inner, path)
            self.flush()
            self.emit(f"{target} = {inner}")
            return
        if presence == "b":
            self.run.append(("b", "n"))
            self.flush()
            condition = "n < 0"
        else:
            self.read_uvarint("n")
            condition = "n <= 0"
        with self.block(f"if {condition}:"):
            self.emit(f"{target} = None")
        with self.block("else:"):
            self.read_struct(group, inner, path)
            self.flush()
            self.emit(f"{target} = {inner}")

    def read_uvarint(self, target: str) -> None:
        """Read an unsigned varint; its first byte belongs to the pending run."""
        self.run.append(("B", target))
        self.flush()
        with self.block(f"if {target} > 127:"):
            self.emit(f"{target}, at = read_uvarint(buf, at - 1)")

    def read_length(self, code: str, path: str, target: str, nullable: bool) -> None:
        """Read the length of a variable field into `n` and deal with null."""
        if self.flexible:
            self.read_uvarint("n")
            condition = "n <= 0"
        else:
            self.run.append((code, "n"))
            self.flush()
            condition = "n < 0"
        with self.block(f"if {condition}:"):
            self.emit(f"{target} = None" if nullable else f"raise null_field({path!r})")
        if self.flexible and not nullable:
            self.emit("n -= 1")

    def else_block(self, nullable: bool) -> _Else:
        """The branch for a value that is not null; after a raise it needs no `else`."""
        return _Else(self, nullable)

    def read_bytes(self, element: str, target: str, path: str) -> None:
        """Read `n` bytes as a string, bytes or records."""
        self.emit("stop = at + n")
        with self.block("if stop > end:"):
            self.emit(f"raise short_field({path!r}, n)")
        if element == "string":
            if self.flexible:
                with self.block("if n > 32767:"):
                    self.emit(f"raise long_string({path!r}, n)")
            value = 'str(buf[at:stop], "utf-8", "replace")'
        if element != "records":
            with self.block("if n > LONG_FIELD:"):
                self.emit("elements -= n // LONG_FIELD")
                with self.block("if elements < 0:"):
                    self.emit(f"raise long_fields({path!r}, n)")
        if element != "string":
            value = "view[at:stop]" if element == "records" else "bytes(buf[at:stop])"
        self.emit(f"{target} = {value}")
        if element == "string":
            with self.block(f"if n > 10922 and len({target}.encode()) > 32767:"):  # a replacement has 3
                self.emit(f"raise long_string({path!r}, len({target}.encode()))")
        self.emit("at = stop")

    def read_array(self, field: Field, target: str, path: str) -> None:
        """Read `n` elements; the run is flushed on both sides."""
        with self.block("if n > end - at or n > elements:"):
            self.emit(f"raise many_elements({path!r}, n)")
        self.emit("elements -= n")
        if field.element == "uuid":
            self.emit("stop = at + 16 * n")
            with self.block("if stop > end:"):
                self.emit(f"raise short_field({path!r}, 16 * n)")
            self.emit(f"{target} = [bytes(buf[i:i + 16]) for i in range(at, stop, 16)]")
            self.emit("at = stop")
        elif field.element in FIXED_CODES:
            code = FIXED_CODES[field.element]
            with self.block("if n <= SMALL_ARRAY:"):
                self.emit(f"{target} = list(unpack_{code}[n](buf, at))")
            with self.block("else:"):
                self.emit(f'{target} = list(unpack_from(f">{{n}}{code}", buf, at))')
            self.emit(f"at += {struct.calcsize('>' + code)} * n")
        else:
            items, item = self.fresh("items"), self.fresh("o")
            self.emit(f"{target} = {items} = []")
            with self.block("for _ in range(n):"):
                if field.struct is not None:
                    self.read_struct(field.struct, item, path)
                else:
                    element = Field(
                        field.name, field.element, False, field.versions, NO_VERSIONS, None, None, False
                    )
                    self.read_field(element, item, path)
                self.flush()
                self.emit(f"{items}.append({item})")

    def read_tags(self, group: Struct, target: str, path: str) -> None:
        """Read the section of tagged fields at the end of a struct."""
        known = self.tagged(group)
        for field in known:
            self.emit(f"{target}.{field.attribute} = {default_expression(field)}")
        misplaced = [f"{f.tag}" for f in self.absent(group) if f.tag is not None]
        self.read_uvarint("n")
        with self.block("if n > 0:"):
            self.emit("tags -= n")
            with self.block("if tags < 0:"):
                self.emit(f"raise many_tags({path!r}, n)")
            if known or misplaced:
                self.read_known_tags(known, misplaced, target, path)
            else:
                self.emit("at = skip_tags(buf, at, end, n)")

    def read_known_tags(self, known: list[Field], misplaced: list[str], target: str, path: str) -> None:
        """Read the tagged fields of a section one by one."""
        tag, size, stop = self.fresh("tag"), self.fresh("size"), self.fresh("stop")
        with self.block("for _ in range(n):"):
            self.emit(f"{tag}, at = read_uvarint(buf, at)")
            self.emit(f"{size}, at = read_uvarint(buf, at)")
            self.emit(f"{stop} = at + {size}")
            wrong = f"{size} < 0 or {stop} > end"
            if misplaced:
                wrong += f" or {tag} in ({', '.join(misplaced)},)"
            with self.block(f"if {wrong}:"):
                self.emit(f"raise bad_tag({path!r}, {tag}, {size})")
            branch = "if"
            for field in known:
                with self.block(f"{branch} {tag} == {field.tag}:"):
                    self.read_tagged_field(field, f"{target}.{field.attribute}", f"{path}.{field.name}")
                branch = "elif"
            if known:
                with self.block("else:"):
                    self.emit(f"at = {stop}")
                with self.block(f"if at != {stop}:"):
                    self.emit(f"raise bad_tag({path!r}, {tag}, {size})")
            else:
                self.emit(f"at = {stop}")

    def read_tagged_field(self, field: Field, target: str, path: str) -> None:
        """Read the value of a tagged field."""
        if field.struct is not None and not field.is_array:
            self.read_struct_field(field.struct, target, path, self.version in field.nullable, "tag")
        else:
            self.read_field(field, target, path)
        self.flush()


class _Else:
    """Context of the code for a value that is not null."""

    def __init__(self, writer: _DecodeWriter, nullable: bool) -> None:
        self.writer = writer
        self.nullable = nullable

    def __enter__(self) -> None:
        if self.nullable:
            self.writer.emit("else:")
            self.writer.indent += 1
            if self.writer.flexible:
                self.writer.emit("n -= 1")

    def __exit__(self, *failure: object) -> None:
        if self.nullable:
            self.writer.indent -= 1


def default_expression(field: Field) -> str:
    """The source of a field's default value."""
    if field.default is NEW_STRUCT:
        return f"C_{field.element}()"
    return repr(field.default)
