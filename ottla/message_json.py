"""Messages as JSON text, as Kafka's tools print the records of internal topics.

Names are Kafka's with a small first letter, in wire order; uuids are their 22 characters, bytes are base64.
Fields that the version does not have are left out, and so are tagged fields that have their default.
"""

from __future__ import annotations

import base64
import json
import re
from typing import Any

from protocol.schema.base import Message
from protocol.schema.cache import definition
from protocol.schema.model import NEW_STRUCT, Field, Struct
from protocol.uuids import uuid_to_text

_ESCAPE = re.compile(r"\\(?:u[0-9a-f]{4}|.)")


def as_json(message: Message, version: int) -> dict[str, Any]:
    """A message as what `json_text` prints."""
    return _struct(message, definition(type(message).__name__).root, version)


def json_text(value: object) -> str:
    """The text without spaces, letter for letter as Java's library writes it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _ESCAPE.sub(lambda found: "\\u" + found[0][2:].upper() if found[0][1] == "u" else found[0], text)


def _struct(value: Any, struct: Struct, version: int) -> dict[str, Any]:
    shown = {}
    for field in struct.fields:
        if version not in field.versions:
            continue
        content = getattr(value, field.attribute)
        if field.tag is None or not _is_default(content, field):
            shown[field.name[0].lower() + field.name[1:]] = _field(content, field, version)
    return shown


def _is_default(content: Any, field: Field) -> bool:
    if field.default is NEW_STRUCT:
        return content is not None and bool(content == type(content)())
    return bool(content == field.default)


def _field(content: Any, field: Field, version: int) -> Any:
    if content is None:
        return None
    if field.is_array:
        return [_element(each, field, version) for each in content]
    return _element(content, field, version)


def _element(content: Any, field: Field, version: int) -> Any:
    if field.struct is not None:
        return _struct(content, field.struct, version)
    if field.element == "uuid":
        return uuid_to_text(content)
    if field.element in ("bytes", "records"):
        return base64.b64encode(content).decode()
    return content
