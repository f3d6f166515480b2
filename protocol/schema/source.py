"""What the writers of codec source share: indented lines, and the names that the written code uses."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager

from protocol.schema.model import Field, Struct, Versions


class SourceWriter:
    """Collects the lines of one function and the runs of fixed-size values inside it.

    A run is a series of values that one struct call reads or writes: (code, target or expression).
    """

    def __init__(self, version: int, flexible: Versions) -> None:
        self.version = version
        self.flexible = version in flexible
        self.lines: list[str] = []
        self.indent = 0
        self.run: list[tuple[str, str]] = []
        self.structs: dict[str, struct.Struct] = {}
        self._serial = 0

    def emit(self, line: str) -> None:
        """Add a line at the present indentation."""
        self.lines.append("    " * self.indent + line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Write `head` and indent what follows. The run must be flushed on both sides."""
        assert not self.run, head
        self.emit(head)
        self.indent += 1
        yield
        assert not self.run, head
        self.indent -= 1

    def fresh(self, stem: str) -> str:
        """A name not used before in this function."""
        self._serial += 1
        return f"{stem}{self._serial}"

    def struct_name(self, codes: str) -> str:
        """The name of the struct for a series of codes."""
        name = "S_" + codes.replace("?", "Z")
        if name not in self.structs:
            self.structs[name] = struct.Struct(">" + codes)
        return name

    def inline(self, group: Struct) -> list[Field]:
        """The fields written in line at this version, in wire order."""
        return [field for field in group.fields if self.version in field.versions and field.tag is None]

    def tagged(self, group: Struct) -> list[Field]:
        """The tagged fields of this version in order of tags."""
        fields = [f for f in group.fields if self.version in f.versions and f.tag is not None]
        return sorted(fields, key=lambda field: field.tag or 0)

    def absent(self, group: Struct) -> list[Field]:
        """The fields that this version does not have."""
        return [field for field in group.fields if self.version not in field.versions]
