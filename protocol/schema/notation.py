"""Reader of our schema notation, in which the definitions of `defs/` are written.

A message is a head line and indented field lines:

    request FetchRequest 1 versions 0-18 flexible 12+
      ReplicaId: int32 0-14 = -1
      ClusterId: string? 12+ tag 0 = null ~
      Topics: [FetchTopic]
        Topic: string 0-12 ~
      struct Shared
        Name: string

- Head: kind, name, key (none for `data`), `versions RANGE`, and `flexible RANGE` if there is any.
- Field: name, type (`[T]` is an array), `?` when null is allowed (`?3+` in those versions only), the
  versions if they are not those of the enclosing struct, `tag N` for a tagged field, `= default`, and `~`
  when the field may be dropped silently at versions that lack it (Kafka's "ignorable").
- Deeper lines below a field are the fields of its struct. `struct NAME` defines one used by several fields.
- A range is `3`, `3-5` or `3+`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from protocol.schema.model import (
    FIXED_CODES,
    NEW_STRUCT,
    NO_VERSIONS,
    OPEN_END,
    TYPE_DEFAULTS,
    VARIABLE_TYPES,
    Field,
    Message,
    Struct,
    Versions,
)

_HEAD: Final = re.compile(r"(\w+) (\w+)(?: (\d+))? versions (\S+)(?: flexible (\S+))?")
_FIELD: Final = re.compile(
    r"(?P<name>\w+): (?P<open>\[)?(?P<type>\w+)\]?(?P<null>\?(?P<nulls>\S+)?)?(?: (?P<versions>\d\S*))?"
    r"(?: tag (?P<tag>\d+))?(?: = (?P<default>.*?))?(?P<ignorable> ~)?"
)


class NotationError(ValueError):
    """A definition cannot be read; the message names the line."""


def parse_versions(text: str) -> Versions:
    """Read `3`, `3-5` or `3+`."""
    first, separator, last = text.partition("-")
    if separator:
        return Versions(int(first), int(last))
    if text.endswith("+"):
        return Versions(int(text[:-1]), OPEN_END)
    return Versions(int(text), int(text))


def blocks(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield (message name, its lines) for each message in a definitions text."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.strip() and not line.startswith(" "):
            if lines:
                yield lines[0].split(" ", 2)[1], lines
            lines = [line]
        elif line.strip():
            lines.append(line)
    if lines:
        yield lines[0].split(" ", 2)[1], lines


def parse_message(lines: list[str]) -> Message:
    """Build the model of one message from its lines."""
    head = _HEAD.fullmatch(lines[0])
    if head is None:
        raise NotationError(f"not a message head: {lines[0]!r}")
    kind, name, key, versions_text, flexible_text = head.groups()
    versions = parse_versions(versions_text)
    flexible = parse_versions(flexible_text).within(versions) if flexible_text else NO_VERSIONS
    reader = _Reader(lines, versions)
    root = Struct(name, versions)
    reader.read_fields(root, 1, 1)
    reader.resolve()
    return Message(kind, name, int(key) if key else -1, versions, flexible, root, reader.structs)


class _Reader:
    """Walks the lines of one message; `structs` collects all nested structs in order of appearance."""

    def __init__(self, lines: list[str], versions: Versions) -> None:
        self.lines = lines
        self.versions = versions
        self.structs: dict[str, Struct] = {}
        self.unresolved: list[Field] = []

    def read_fields(self, struct: Struct, at: int, level: int) -> int:
        """Read the lines of `level` from line `at` into `struct`; return the line after them."""
        while at < len(self.lines):
            line = self.lines[at]
            depth = (len(line) - len(line.lstrip(" "))) // 2
            if depth < level:
                break
            if depth > level:
                raise NotationError(f"unexpected indentation: {line!r}")
            at = self._read_line(struct, line.strip(), at + 1, level)
        return at

    def _read_line(self, struct: Struct, text: str, at: int, level: int) -> int:
        if text.startswith("struct "):
            shared = self._new_struct(text.split(" ")[1], self.versions)
            return self.read_fields(shared, at, level + 1)
        field = self._parse_field(text, struct.versions)
        struct.fields.append(field)
        if field.element in FIXED_CODES or field.element in VARIABLE_TYPES:
            return at
        if at < len(self.lines) and self.lines[at].startswith("  " * (level + 1)):
            field.struct = self._new_struct(field.element, field.versions)
            return self.read_fields(field.struct, at, level + 1)
        self.unresolved.append(field)
        return at

    def _new_struct(self, name: str, versions: Versions) -> Struct:
        if name in self.structs:
            raise NotationError(f"struct {name} is defined twice in {self.lines[0]!r}")
        struct = self.structs[name] = Struct(name, versions)
        return struct

    def resolve(self) -> None:
        """Give the fields that only name a struct the struct they name."""
        for field in self.unresolved:
            if field.element not in self.structs:
                raise NotationError(f"unknown type {field.element} in {self.lines[0]!r}")
            field.struct = self.structs[field.element]

    def _parse_field(self, text: str, outer: Versions) -> Field:
        match = _FIELD.fullmatch(text)
        if match is None:
            raise NotationError(f"not a field: {text!r}")
        versions = parse_versions(match["versions"]).within(outer) if match["versions"] else outer
        nullable = NO_VERSIONS
        if match["null"]:
            nullable = parse_versions(match["nulls"]).within(versions) if match["nulls"] else versions
        is_array = match["open"] is not None
        return Field(
            name=match["name"],
            element=match["type"],
            is_array=is_array,
            versions=versions,
            nullable=nullable,
            tag=int(match["tag"]) if match["tag"] else None,
            default=_default(match["type"], is_array, match["default"]),
            ignorable=match["ignorable"] is not None,
        )


def _default(element: str, is_array: bool, text: str | None) -> object:
    if text == "null":
        return None
    if is_array:
        return []
    if element not in TYPE_DEFAULTS:
        return NEW_STRUCT
    if text is None:
        return TYPE_DEFAULTS[element]
    if element == "string":
        return text
    if element == "bool":
        return text == "true"
    return float(text) if element == "float64" else int(text)
