"""All messages of the Kafka protocol as classes, made on first use: `from protocol import messages as m`.

`m.MetadataRequest`, `m.MetadataResponse.MetadataResponseBroker`, and for the records of internal topics
`m.OffsetCommitKey`, `m.OffsetCommitValue`, ... The names, fields and types are in `__init__.pyi`, which
`python -m protocol.schema.stubs` prints from the definitions in `protocol/schema/defs/`.
"""

from __future__ import annotations

from functools import cache

from protocol.api_keys import ApiKey
from protocol.errors import UnsupportedVersion
from protocol.schema.base import Message, Struct
from protocol.schema.cache import message_class
from protocol.schema.defs import MESSAGES

__all__ = ["Message", "Struct", "request_class", "response_class"]


def __getattr__(name: str) -> type[Message]:
    if name not in MESSAGES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = globals()[name] = message_class(name)
    return made


def __dir__() -> list[str]:
    return sorted([*__all__, *MESSAGES])


@cache
def request_class(api_key: int) -> type[Message]:
    """The request of an API. Raises UnsupportedVersion for a key without messages here."""
    return _class_of(api_key, "Request")


@cache
def response_class(api_key: int) -> type[Message]:
    """The response of an API. Raises UnsupportedVersion for a key without messages here."""
    return _class_of(api_key, "Response")


def _class_of(api_key: int, kind: str) -> type[Message]:
    try:
        name = ApiKey(api_key).title + kind
    except ValueError:
        name = ""
    if name not in MESSAGES:
        raise UnsupportedVersion(f"there is no API with key {api_key}")
    return message_class(name)
