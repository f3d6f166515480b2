"""The schema model: what a message of the Kafka protocol consists of, version by version.

Invariants: a `Message` lists its fields in wire order; `Field.versions` is always within the versions of
the struct that holds the field; `Field.tag` is None exactly for fields that are written in line. Defaults
are ready Python values (an empty list stands for "a new empty list each time", `NEW_STRUCT` for "a new
struct of defaults").
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

OPEN_END: Final = 32767

#: struct module codes of the fixed-size types. A uuid is 16 raw bytes.
FIXED_CODES: Final[dict[str, str]] = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
VARIABLE_TYPES: Final = ("string", "bytes", "records")
ZERO_UUID: Final = bytes(16)


class NewStruct:
    """Marks the default of a struct field that is not nullable by default: a new struct of defaults."""

    def __repr__(self) -> str:
        return "NEW_STRUCT"


NEW_STRUCT: Final = NewStruct()

TYPE_DEFAULTS: Final[dict[str, object]] = {
    "bool": False,
    "int8": 0,
    "int16": 0,
    "uint16": 0,
    "int32": 0,
    "uint32": 0,
    "int64": 0,
    "float64": 0.0,
    "uuid": ZERO_UUID,
    "string": "",
    "bytes": b"",
    "records": None,
}


class Versions(NamedTuple):
    """An inclusive range of versions; empty when first > last."""

    first: int
    last: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last

    def __str__(self) -> str:
        if self.first > self.last:
            return "none"
        if self.last == OPEN_END:
            return f"{self.first}+"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"

    def within(self, outer: Versions) -> Versions:
        """The versions that are in both ranges."""
        return Versions(max(self.first, outer.first), min(self.last, outer.last))


NO_VERSIONS: Final = Versions(1, 0)


@dataclass(slots=True)
class Field:
    """One field of a struct. `element` is the type name without the array brackets."""

    name: str
    element: str
    is_array: bool
    versions: Versions
    nullable: Versions
    tag: int | None
    default: object
    ignorable: bool
    struct: Struct | None = None

    @property
    def attribute(self) -> str:
        """The Python attribute name: Kafka's name in snake case."""
        return snake_case(self.name)


@dataclass(slots=True)
class Struct:
    """A named group of fields, in wire order."""

    name: str
    versions: Versions
    fields: list[Field] = field(default_factory=list)


@dataclass(slots=True)
class Message:
    """A whole message: `kind` is request, response, key, value, record or data.

    `key` is the API key of requests and responses, and the record type (the int16 that stands before the
    bytes) of the records of internal topics; -1 for plain data.
    """

    kind: str
    name: str
    key: int
    versions: Versions
    flexible: Versions
    root: Struct
    structs: dict[str, Struct]


def snake_case(name: str) -> str:
    """`TopicId` to `topic_id`, `V3AndBelowTopics` to `v3_and_below_topics`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
