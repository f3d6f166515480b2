"""kafka-python's message classes beside ours: which there are, and how values of one side read on the other.

kafka-python names fields after the same schemas, but turns sets of permitted operations into sets of bits,
uuids into uuid.UUID, and structs among the tagged fields that were not sent into None.
"""

from __future__ import annotations

import importlib
import uuid
import warnings
from typing import Any

from protocol.schema.base import Struct
from protocol.schema.defs import MESSAGES
from protocol.schema.model import NEW_STRUCT, Field
from protocol.schema.model import Struct as StructModel

#: what 4.4 calls differently from the release whose schemas kafka-python carries
RENAMED = {"GenerationIdOrMemberEpoch": "GenerationId"}
OLD_PARTS = ("produce", "fetch", "list_offsets", "commit", "admin", "offset_for_leader_epoch")


def their_classes() -> dict[str, Any]:
    """kafka-python's messages by name."""
    found: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it reads its schemas by a deprecated call
        for part in ("admin", "consumer", "metadata", "producer", "sasl"):
            found.update(vars(importlib.import_module(f"kafka.protocol.{part}")))
    return {
        name: made for name, made in found.items() if name in MESSAGES and hasattr(made, "valid_versions")
    }


def their_old_schemas(name: str) -> dict[int, Any]:
    """kafka-python's hand-written schemas of a message by version, of which it has the older ones."""
    found: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        for part in OLD_PARTS:
            found.update(vars(importlib.import_module(f"kafka.protocol.old.{part}")))
    versions = {version: found.get(f"{name}_v{version}") for version in range(10)}
    return {version: made.SCHEMA for version, made in versions.items() if made is not None}


def plain(source: Struct, group: StructModel, version: int) -> list[Any]:
    """The values in wire order, structs as lists: what the hand-written schemas take and give."""
    return [
        _plain_value(getattr(source, field.attribute), field, version)
        for field in group.fields
        if version in field.versions
    ]


def _plain_value(value: Any, field: Field, version: int) -> Any:
    if field.struct is None or value is None:
        return value
    if isinstance(value, list):
        return [plain(item, field.struct, version) for item in value]
    return plain(value, field.struct, version)


def as_lists(value: Any) -> Any:
    """Nested sequences as lists."""
    return [as_lists(item) for item in value] if isinstance(value, (list, tuple)) else value


def their_versions(made: Any) -> range:
    """The versions that kafka-python's schema of a message describes."""
    first, last = made.valid_versions
    return range(first, last + 1)


def to_theirs(source: Struct, group: StructModel, version: int, made: Any) -> Any:
    """Their object with the values of ours at a version."""
    values = {}
    for field in group.fields:
        value = getattr(source, field.attribute)
        if version not in field.versions or (field.tag is not None and is_default(field, value, source)):
            continue
        theirs = their_field(field, made)
        values[theirs.name] = _value_to_theirs(value, field, version, theirs, made)
    return made(version=version, **values)


def _value_to_theirs(value: Any, field: Field, version: int, theirs: Any, made: Any) -> Any:
    if value is None:
        return None
    if field.struct is not None:
        inner = getattr(made, theirs.type_str)
        if isinstance(value, list):
            return [to_theirs(item, field.struct, version, inner) for item in value]
        return to_theirs(value, field.struct, version, inner)
    if theirs.type_str == "bitfield":
        return bits(value)
    if field.element == "uuid":
        return [uuid.UUID(bytes=item) for item in value] if field.is_array else uuid.UUID(bytes=value)
    return value


def from_theirs(read: Any, group: StructModel, version: int, ours: type[Struct], outer: type) -> Struct:
    """Our object with the values of theirs at a version. `outer` is the message class with the structs."""
    values = {}
    for field in group.fields:
        if version in field.versions:
            theirs = their_field(field, read)
            value = getattr(read, theirs.name)
            absent = value is None and field.default is NEW_STRUCT and version not in field.nullable
            if not absent:
                values[field.attribute] = _value_from_theirs(value, field, version, theirs, outer)
    return ours(**values)


def _value_from_theirs(value: Any, field: Field, version: int, theirs: Any, outer: type) -> Any:
    if theirs.type_str == "bitfield":
        return -(2**31) if value is None else signed(sum(1 << bit for bit in value))
    if value is None:
        return None
    if field.struct is not None:
        inner = getattr(outer, field.element)
        if isinstance(value, list):
            return [from_theirs(item, field.struct, version, inner, outer) for item in value]
        return from_theirs(value, field.struct, version, inner, outer)
    if field.element == "uuid":
        return [item.bytes for item in value] if field.is_array else value.bytes
    return value


def their_field(field: Field, made: Any) -> Any:
    """Their description of a field of ours."""
    by_name = {theirs._json["name"]: theirs for theirs in made._struct._fields}
    for name in (field.name, RENAMED.get(field.name)):
        if name in by_name:
            return by_name[name]
    assert field.name.endswith("AuthorizedOperations"), field.name
    return made._struct.fields["authorized_operations"]


def is_default(field: Field, value: object, source: Struct) -> bool:
    default = getattr(type(source)(), field.attribute)
    return value == default


def bits(value: int) -> set[int] | None:
    return None if value == -(2**31) else {bit for bit in range(32) if value >> bit & 1}


def signed(value: int) -> int:
    return value - 2**32 if value >= 2**31 else value
