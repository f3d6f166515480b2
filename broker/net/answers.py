"""An answer as a whole frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from protocol import messages as m
from protocol.headers import encode_response_header
from runtime.files import Buffer, FileRegion

if TYPE_CHECKING:
    from broker.net.connection import Connection

BIG_ELEMENTS: Final = 2_000


class FramedAnswer:
    """An answer that its handler has framed itself, because parts of it are slices of files."""

    __slots__ = ("parts",)

    def __init__(self, parts: list[Buffer | FileRegion]) -> None:
        self.parts = parts


def frame_answer(api_key: int, version: int, correlation_id: int, response: m.Message) -> bytes:
    """Size, header and body; the codec decides what of the response exists at the version."""
    head = encode_response_header(api_key, version, correlation_id)
    body = response.encode(version)
    return (len(head) + len(body)).to_bytes(4, "big") + head + body


def is_big(answer: object) -> bool:
    """Whether so much has to be encoded that it would hold the loop: more than `BIG_ELEMENTS` structs, each
    of which takes a microsecond. Stops to count there.
    """
    return isinstance(answer, m.Struct) and _room_after(answer, BIG_ELEMENTS) < 0


def _room_after(struct: m.Struct, room: int) -> int:
    """What is left of `room` when all structs inside have been counted; below 0 where it is too little."""
    for name in struct.__slots__:
        value = getattr(struct, name)
        if type(value) is list and value and isinstance(value[0], m.Struct):
            room -= len(value)
            for each in value:
                if room < 0:
                    return room
                room = _room_after(each, room)
    return room


def put_parts(connection: Connection, parts: list[Buffer | FileRegion]) -> None:
    """Add an answer to those that leave next."""
    connection.out += parts
    for part in parts:
        if type(part) is FileRegion:
            connection.regions = True
        else:
            connection.held_bytes += len(part)  # type: ignore[arg-type]
