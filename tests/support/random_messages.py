"""Random messages of any API for property tests.

A message is drawn once with all fields it has at any version, and then cut to a version: fields which
that version lacks take their default, and null becomes a value where the version does not allow null.
"""

from __future__ import annotations

import functools

from hypothesis import strategies as st

from protocol.schema.base import Message, Struct
from protocol.schema.cache import definition, message_class
from protocol.schema.model import NEW_STRUCT, OPEN_END, Field, Versions
from protocol.schema.model import Struct as StructModel

#: the most elements of an array; few, since the interesting cases are none, one and more than one
MOST_ELEMENTS = 2

_SCALARS: dict[str, st.SearchStrategy] = {
    "bool": st.booleans(),
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False),
    "uuid": st.binary(min_size=16, max_size=16),
    "string": st.text(max_size=4) | st.text("é", min_size=63, max_size=65),
    "bytes": st.binary(max_size=4) | st.binary(min_size=126, max_size=130),
    "records": st.binary(max_size=4),
}


@functools.cache
def messages(name: str) -> st.SearchStrategy[Message]:
    """Messages of a name with random values in all fields."""
    return _structs(name, definition(name).root, message_class(name))


def _structs(name: str, group: StructModel, made: type) -> st.SearchStrategy:
    return st.builds(made, **{field.attribute: _values(name, field) for field in group.fields})


def _values(name: str, field: Field) -> st.SearchStrategy:
    if field.struct is not None:
        values = _structs(name, field.struct, getattr(message_class(name), field.element))
    else:
        values = _SCALARS[field.element]
    if field.is_array:
        values = st.lists(values, max_size=MOST_ELEMENTS)
    if field.nullable != Versions(1, 0):
        values = st.none() | values
    return values


def at_version(message: Message, version: int) -> Message:
    """A copy of a random message that can be sent at `version` without loss."""
    name = type(message).__name__
    cut = _cut(name, message, definition(name).root, version)
    assert isinstance(cut, Message)
    return cut


def _cut(name: str, source: Struct, group: StructModel, version: int) -> Struct:
    values = {
        field.attribute: _cut_value(name, getattr(source, field.attribute), field, version)
        for field in group.fields
        if version in field.versions
    }
    return type(source)(**values)


def _cut_value(name: str, value: object, field: Field, version: int) -> object:
    if value is None:
        return None if version in field.nullable else empty_value(name, field)
    if field.struct is None:
        return value
    if isinstance(value, list):
        return [_cut(name, item, field.struct, version) for item in value]
    assert isinstance(value, Struct)
    return _cut(name, value, field.struct, version)


def empty_value(name: str, field: Field) -> object:
    """The least value that is not null."""
    if field.is_array:
        return []
    if field.struct is not None or field.default is NEW_STRUCT:
        return getattr(message_class(name), field.element)()
    return "" if field.element == "string" else b""


def versions_of(name: str) -> range:
    """All versions of a message."""
    versions = definition(name).versions
    assert versions.last != OPEN_END
    return range(versions.first, versions.last + 1)
