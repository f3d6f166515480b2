"""Answers to ShareFetch, v1-2, as a list of parts: bytes, and slices of files that go out by sendfile.

As for Fetch, records that stay in a file need the bytes around them only. A test compares this with the
codec. v2 differs in the request only.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from broker.handlers.leader_hints import Endpoint
from broker.net.answers import FramedAnswer
from protocol.errors import ErrorCode
from protocol.primitives import uvarint
from replication.share.share_fetch import ShareRow
from replication.share.share_partitions import Place
from runtime.files import Buffer, FileRegion

AckResult = tuple[ErrorCode, str | None]
_NO_ACKS: AckResult = (ErrorCode.NONE, None)
_NO_TAGS = b"\0"


def encode_share_fetch(
    correlation_id: int,
    rows: Sequence[ShareRow],
    acks: dict[Place, AckResult],
    *,
    error: ErrorCode = ErrorCode.NONE,
    lock_ms: int = 0,
    leaders: dict[Place, tuple[int, int]] | None = None,
    endpoints: Sequence[Endpoint] = (),
) -> FramedAnswer:
    """The whole frame. Partitions that were only acknowledged come after the rows of their topic."""
    out = bytearray(4)
    out += struct.pack(">i", correlation_id) + _NO_TAGS
    out += struct.pack(">ih", 0, error) + _text(None) + struct.pack(">i", lock_ms)
    topics: dict[bytes, dict[int, ShareRow]] = {}
    for row in rows:
        topics.setdefault(row.place[0], {})[row.place[1]] = row
    for topic_id, index in acks:
        topics.setdefault(topic_id, {}).setdefault(index, ShareRow((topic_id, index)))
    out += uvarint(len(topics) + 1)
    parts: list[Buffer | FileRegion] = []
    for topic_id, partitions in topics.items():
        out += topic_id + uvarint(len(partitions) + 1)
        for row in partitions.values():
            out += _row_head(row, acks.get(row.place, _NO_ACKS), (leaders or {}).get(row.place, (0, 0)))
            if row.length:
                parts.append(out)
                parts.extend(row.data) if isinstance(row.data, list) else parts.append(row.data)
                out = bytearray()
            out += _row_tail(row)
        out += _NO_TAGS
    out += uvarint(len(endpoints) + 1)
    for endpoint in endpoints:
        out += struct.pack(">i", endpoint.node_id) + _text(endpoint.host)
        out += struct.pack(">i", endpoint.port) + _text(endpoint.rack) + _NO_TAGS
    out += _NO_TAGS
    parts.append(out)
    length = sum(part.length if isinstance(part, FileRegion) else len(part) for part in parts)
    first = parts[0]
    assert isinstance(first, bytearray)
    struct.pack_into(">i", first, 0, length - 4)
    return FramedAnswer(parts)


def _row_head(row: ShareRow, ack: AckResult, leader: tuple[int, int]) -> bytes:
    """Everything up to and with the length of the records."""
    return b"".join(
        (
            struct.pack(">ih", row.place[1], row.error),
            _text(None),
            struct.pack(">h", ack[0]),
            _text(ack[1]),
            struct.pack(">ii", *leader),
            _NO_TAGS,
            uvarint(row.length + 1),
        )
    )


def _row_tail(row: ShareRow) -> bytes:
    ranges = b"".join(struct.pack(">qqh", *each) + _NO_TAGS for each in row.ranges)
    return uvarint(len(row.ranges) + 1) + ranges + _NO_TAGS


def _text(text: str | None) -> bytes:
    if text is None:
        return b"\0"
    data = text.encode()
    return uvarint(len(data) + 1) + data
