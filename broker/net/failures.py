"""Answers for requests whose handler failed: the error code in every place where the API has room for one.

Kafka builds these by hand for each API. Here the schema says it all: a response mirrors its request, list by
list, so the walk follows both at once, makes one element of the answer for each element asked for, copies
what identifies it (name, id, partition, resource) and puts the code into every `ErrorCode` field it meets.
"""

from __future__ import annotations

from typing import Any

from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.schema.cache import definition
from protocol.schema.model import Field, Struct

# Response fields whose value stands under another name in the request.
_ALIASES: dict[str, tuple[str, ...]] = {
    "name": ("topic", "topic_name", "resource_name", "group_id"),
    "topic": ("name", "topic_name"),
    "topic_name": ("name", "topic"),
    "partition": ("partition_index", "index"),
    "partition_index": ("partition", "index"),
    "index": ("partition_index", "partition"),
    "group_id": ("group",),
    "key": ("coordinator_key",),
}


def failure_answer(api_key: int, version: int, request: Any, error: ErrorCode) -> Any:
    """The response that says `error` for everything that was asked."""
    name = ApiKey(api_key).title
    asked = definition(f"{name}Request").root
    answered = definition(f"{name}Response").root
    cls = m.response_class(api_key)
    return _fill(cls, cls, answered, asked, request, version, error)


def _fill(
    cls: Any, root: Any, answered: Struct, asked: Struct | None, request: Any, version: int, error: ErrorCode
) -> Any:
    filled = cls()
    for field in answered.fields:
        attribute = field.attribute
        if version not in field.versions or field.tag is not None:
            continue
        if attribute == "error_code":
            setattr(filled, attribute, error)
        elif field.struct is not None and field.is_array:
            if _carries_code(field.struct):
                setattr(filled, attribute, _elements(root, field, asked, request, version, error))
        elif not field.is_array:
            _copy(filled, attribute, request)
    return filled


def _elements(
    root: Any, field: Field, asked: Struct | None, request: Any, version: int, error: ErrorCode
) -> list[Any]:
    """One element of the answer for each element of the request's list that corresponds."""
    assert field.struct is not None
    cls = getattr(root, field.struct.name)
    source = _list_asked(asked, version)
    if source is None or request is None:
        return []
    return [
        _fill(cls, root, field.struct, source.struct, element, version, error)
        for element in getattr(request, source.attribute) or ()
    ]


def _list_asked(asked: Struct | None, version: int) -> Field | None:
    """The list a request is about: the first one that exists at the version, structs before plain values."""
    lists = [f for f in (asked.fields if asked is not None else ()) if f.is_array and version in f.versions]
    return next((f for f in lists if f.struct is not None), lists[0] if lists else None)


def _copy(filled: Any, attribute: str, request: Any) -> None:
    """Take over what identifies the element."""
    if isinstance(request, (str, int)):
        default = getattr(filled, attribute)
        if type(default) is type(request) and attribute in _ALIASES:
            setattr(filled, attribute, request)
        return
    for name in (attribute, *_ALIASES.get(attribute, ())):
        value = getattr(request, name, None)
        if isinstance(value, (str, int, bytes)):
            setattr(filled, attribute, value)
            return


def _carries_code(struct: Struct) -> bool:
    return any(
        field.attribute == "error_code" or (field.struct is not None and _carries_code(field.struct))
        for field in struct.fields
    )
