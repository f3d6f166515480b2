"""Answers to Fetch, v0-18, as a list of parts: bytes, and slices of files that go out by sendfile.

The codec encodes whole messages in memory; records that stay in a file need the bytes around them only, so
this layout is written by hand and a test compares it with the codec at every version. v1 throttle time, v4
last stable offset and aborted transactions, v5 log start offset, v7 error and session, v11 preferred replica,
v12 flexible with diverging epoch (tag 0) and current leader (tag 1), v13 topic ids, v16 node endpoints (tag
0).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from broker.handlers.leader_hints import Endpoint
from broker.net.answers import frame_answer
from broker.net.templates import MARKS, mark_bytes, split_at
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.primitives import uvarint
from replication.fetch import Row
from runtime.files import Buffer, FileRegion

FLEXIBLE_FROM = 12
IDS_FROM = 13
_HEAD = struct.Struct(
    ">iiBihi"
)  # size, correlation id, tags, throttle time, error, session id: v12 and later
_ROW = struct.Struct(">ihqqqBi")  # index, error, three offsets, no aborted list, preferred replica: the same


def encode_fetch(
    version: int,
    correlation_id: int,
    rows: Sequence[Row],
    *,
    error: int = 0,
    session_id: int = 0,
    throttle_ms: int = 0,
    endpoints: Sequence[Endpoint] = (),
) -> list[Buffer | FileRegion]:
    """The whole frame, size first, as parts in order; neighbouring rows of one topic stand under its name."""
    flexible = version >= FLEXIBLE_FROM
    if flexible:
        out = bytearray(_HEAD.pack(0, correlation_id, 0, throttle_ms, error, session_id))
    else:
        out = bytearray(struct.pack(">ii", 0, correlation_id))
        if version >= 1:
            out += struct.pack(">i", throttle_ms)
        if version >= 7:
            out += struct.pack(">hi", error, session_id)
    topics = [rows] if len(rows) == 1 else _by_topic(rows)
    out += _count(flexible, len(topics))
    parts: list[Buffer | FileRegion] = []
    for topic in topics:
        wanted = topic[0].wanted
        out += wanted.topic_id if version >= IDS_FROM else _text(flexible, wanted.topic)
        out += _count(flexible, len(topic))
        for row in topic:
            out += _row_head(version, row)
            if row.length:
                data = row.data
                parts.append(out)
                parts.extend(data) if isinstance(data, list) else parts.append(data)
                out = bytearray()
            if flexible:
                out += _row_tags(row)
        if flexible:
            out.append(0)
    if flexible:
        out += _endpoint_tags(endpoints) if version >= 16 and endpoints else b"\0"
    parts.append(out)
    first = parts[0]
    assert isinstance(first, bytearray)
    struct.pack_into(">i", first, 0, _length(parts) - 4)
    return parts


def _by_topic(rows: Sequence[Row]) -> Sequence[Sequence[Row]]:
    topics: list[list[Row]] = []
    last: tuple[str, bytes] | None = None
    for row in rows:
        topic = (row.wanted.topic, row.wanted.topic_id)
        if topic == last:
            topics[-1].append(row)
        else:
            topics.append([row])
            last = topic
    return topics


def _length(parts: Iterable[Buffer | FileRegion]) -> int:
    return sum(part.length if isinstance(part, FileRegion) else len(part) for part in parts)


def _row_head(version: int, row: Row) -> bytes:
    """Everything up to and with the length of the records."""
    if version >= FLEXIBLE_FROM and row.aborted is None:
        return _ROW.pack(
            row.index,
            row.error,
            row.high_watermark,
            row.last_stable_offset,
            row.log_start_offset,
            0,
            row.preferred_replica,
        ) + uvarint(row.length + 1)
    head = struct.pack(">ihq", row.index, row.error, row.high_watermark)
    flexible = version >= FLEXIBLE_FROM
    if version >= 4:
        head += struct.pack(">q", row.last_stable_offset)
    if version >= 5:
        head += struct.pack(">q", row.log_start_offset)
    if version >= 4:
        if row.aborted is None:
            head += b"\0" if flexible else b"\xff\xff\xff\xff"
        else:
            tags = b"\0" if flexible else b""
            head += _count(flexible, len(row.aborted))
            head += b"".join(struct.pack(">qq", *each) + tags for each in row.aborted)
    if version >= 11:
        head += struct.pack(">i", row.preferred_replica)
    return head + (uvarint(row.length + 1) if flexible else struct.pack(">i", row.length))


def _row_tags(row: Row) -> bytes:
    if row.diverging is None and row.leader is None:
        return b"\0"
    tags = b""
    count = 0
    if row.diverging is not None:
        tags += b"\x00\x0d" + struct.pack(">iq", *row.diverging) + b"\0"
        count += 1
    if row.leader is not None:
        tags += b"\x01\x09" + struct.pack(">ii", *row.leader) + b"\0"
        count += 1
    return bytes((count,)) + tags


def _endpoint_tags(endpoints: Sequence[Endpoint]) -> bytes:
    body = uvarint(len(endpoints) + 1)
    for endpoint in endpoints:
        rack = b"\0" if endpoint.rack is None else _text(True, endpoint.rack)
        body += struct.pack(">i", endpoint.node_id) + _text(True, endpoint.host)
        body += struct.pack(">i", endpoint.port) + rack + b"\0"
    return b"\x01\x00" + uvarint(len(body)) + body


def _count(flexible: bool, count: int) -> bytes:
    return uvarint(count + 1) if flexible else struct.pack(">i", count)


def _text(flexible: bool, text: str) -> bytes:
    data = text.encode()
    return (uvarint(len(data) + 1) if flexible else struct.pack(">h", len(data))) + data


class FetchTemplate(NamedTuple):
    """The successful answer for one partition without a session.

    `pack(size, correlation_id, head, high_watermark, last_stable_offset, log_start_offset, between[,
    length])` writes everything before the records; v4 has no log start offset. In flexible versions the
    length, a varint, follows apart. `tail` follows the records. `size` is that of the frame without records,
    its length varint and the four bytes in front.
    """

    pack: Callable[..., bytes]
    head: bytes
    between: bytes
    tail: bytes
    size: int


def fetch_template(
    version: int, name: str, topic_id: bytes, index: int, committed: bool
) -> FetchTemplate | None:
    """A template for v4 and later; None if the marks cannot be told apart from the name."""
    partition = m.FetchResponse.PartitionData(
        partition_index=index,
        high_watermark=MARKS[0],
        last_stable_offset=MARKS[1],
        log_start_offset=MARKS[2],
        aborted_transactions=[] if committed else None,
        records=mark_bytes(MARKS[3]),
    )
    topic = m.FetchResponse.FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=[partition])
    frame = frame_answer(ApiKey.FETCH, version, 0, m.FetchResponse(responses=[topic]))
    has_start, flexible = version >= 5, version >= FLEXIBLE_FROM
    marks = MARKS if has_start else (MARKS[0], MARKS[1], MARKS[3])
    pieces = split_at(frame[8:], tuple(mark_bytes(mark) for mark in marks))
    if pieces is None or any(pieces[1:-2]):
        return None
    head, tail = pieces[0], pieces[-1]
    between = pieces[-2][: -1 if flexible else -4]  # without the length of the records
    form = f">ii{len(head)}sqq{'q' if has_start else ''}{len(between)}s{'' if flexible else 'i'}"
    packer = struct.Struct(form)
    return FetchTemplate(packer.pack, head, between, tail, packer.size - 4 + len(tail))
