"""A Fetch request that repeats itself: no session, one topic, one partition, everything but the offset known.

Two `startswith` replace decoding: the bytes between correlation id and fetch offset, and those behind it. A
Struct compiled for the shape writes the answer's head. A long poll is the connection itself in the
partition's waiters and in a bucket of deadlines, without a task or a timer; when it is woken, or too late,
the request is simply run again from its own bytes, which the connection still holds.

A shape exists for v10 and later (older answers may need a look at the batches) and for consumers only; it
holds for one generation of the hub. Anything unusual (offset out of range, an epoch to check, a cold log)
goes to the general way.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from broker.handlers.fetch_answers import FLEXIBLE_FROM, fetch_template
from broker.net.connection import ANSWER_BYTES
from protocol.primitives import uvarint
from runtime.files import FileRegion
from storage.errors import StorageError

if TYPE_CHECKING:
    from broker.net.connection import Connection
    from broker.net.shape import Shape
    from replication.partition import Partition as Replica

I64 = struct.Struct(">q")


class FetchShape:
    """See the module. `before` are the bytes from 12 on up to the fetch offset, `after` those behind it."""

    __slots__ = (
        "_after",
        "_after_at",
        "_between",
        "_committed",
        "_flexible",
        "_frame_bytes",
        "_has_start",
        "_head",
        "_hole",
        "_limit",
        "_min_bytes",
        "_pack",
        "_replica",
        "_size",
        "_tail",
        "_wait_ms",
        "api",
        "before",
        "following",
    )

    promises = False

    def __init__(
        self,
        api: int,
        before: bytes,
        after: bytes,
        replica: Replica,
        name: str,
        topic_id: bytes,
        index: int,
        *,
        wait_ms: int,
        min_bytes: int,
        limit: int,
        committed: bool,
    ) -> None:
        self.api, self.before, self._after = api, before, after
        self._hole = 12 + len(before)
        self._after_at = self._hole + 8
        self._frame_bytes = self._after_at + len(after)
        self._replica = replica
        self._wait_ms, self._min_bytes, self._limit, self._committed = wait_ms, min_bytes, limit, committed
        version = api & 0xFFFF
        self._flexible, self._has_start = version >= FLEXIBLE_FROM, version >= 5
        self.following: Shape = self
        template = fetch_template(version, name, topic_id, index, committed)
        if template is None:
            raise ValueError(f"no template for {name}")
        self._pack, self._head, self._between, self._tail, self._size = template

    def serve(
        self, connection: Connection, buf: bytearray, at: int, end: int, correlation_id: int, own: bool
    ) -> bool | None:
        if end - at != self._frame_bytes or not buf.startswith(self._after, at + self._after_at):
            return None
        offset = I64.unpack_from(buf, at + self._hole)[0]
        if connection.in_turn:
            connection.hub.turn.flush()  # what this client wrote before, it sees now
        replica = self._replica
        log = replica.log
        high_watermark = log.high_watermark
        upto = log.last_stable_offset if self._committed else high_watermark
        if offset < upto:
            try:
                found = log.read(offset, self._limit, upto, True)
                if self._committed and log.aborted_within(offset, found):
                    return None  # the general way lists them
            except StorageError:
                return None
            length = found.length
            if length < self._min_bytes and self._wait_ms > 0 and not connection.late:
                return self._park(connection)
            data = found.data
        elif offset > log.end_offset or offset < log.start_offset:
            return None
        elif self._wait_ms > 0 and not connection.late:
            return self._park(connection)
        else:
            length, data = 0, b""
        if connection.bucket is not None or connection.late:
            connection.served()
        out = connection.out
        known = (
            (high_watermark, log.last_stable_offset, log.start_offset)
            if self._has_start
            else (high_watermark, log.last_stable_offset)
        )
        if self._flexible:
            varint = uvarint(length + 1)
            size = self._size + len(varint) + length
            out.append(self._pack(size, correlation_id, self._head, *known, self._between) + varint)
        else:
            out.append(
                self._pack(self._size + length, correlation_id, self._head, *known, self._between, length)
            )
        if length:
            if type(data) is list:
                out += data
            else:
                out.append(data)
                if type(data) is FileRegion:
                    connection.regions = True
        if self._tail:
            out.append(self._tail)
        if length > 4096:
            connection.held_bytes += length
            if connection.held_bytes > ANSWER_BYTES:
                connection.flush()
        return True

    def _park(self, connection: Connection) -> bool:
        connection.park(self._replica, self._wait_ms)
        return False
