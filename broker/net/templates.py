"""Answers as templates: the codec writes an answer once with marks in it, and what lies between is kept.

Positions of fields differ with the version and with what a client asks for; instead of a second description
of each layout, the general codec encodes a response whose changing fields hold recognisable values, and
`split_at` cuts the bytes there. So there is one place that knows the wire format: the schema.
"""

from __future__ import annotations

# Eight bytes each, which no name, count or error code of a real answer repeats.
MARKS = tuple(
    int.from_bytes(bytes((0x7A, 0xC3, 0x91 + i, 0x5E, 0xE8, 0x3D, 0x0F + i, 0xB6))) for i in range(4)
)


def mark_bytes(mark: int) -> bytes:
    """How a mark looks as an int64 on the wire."""
    return mark.to_bytes(8, "big")


def split_at(encoded: bytes, marks: tuple[bytes, ...]) -> list[bytes] | None:
    """The pieces around the marks, which must stand in this order; None when one is missing or repeated."""
    pieces, at = [], 0
    for mark in marks:
        if encoded.count(mark) != 1 or (found := encoded.find(mark, at)) < 0:
            return None
        pieces.append(encoded[at:found])
        at = found + len(mark)
    pieces.append(encoded[at:])
    return pieces
