"""Messages from definitions written inside a test, with their codecs."""

from __future__ import annotations

from protocol.schema.base import Message
from protocol.schema.cache import with_codecs
from protocol.schema.notation import parse_message


def toy(definition: str) -> type[Message]:
    """The class of a message in our notation."""
    lines = [line for line in definition.splitlines() if line.strip()]
    indent = len(lines[0]) - len(lines[0].lstrip())
    return with_codecs(parse_message([line[indent:] for line in lines]))
