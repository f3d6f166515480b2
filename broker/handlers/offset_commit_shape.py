"""A commit that repeats itself: a consumer commits the same partitions again and again, and only the offsets
are others.

So a connection remembers the last good one, understood: the next is compared with it byte by byte around the
offsets, and the group's coordinator is asked about these, as for a decoded one. Leader epochs, metadata,
times and the member's generation are among the bytes that are compared. Nothing waits: the answer has a
place among the connection's, so commits that arrive together share the write of their turn. One that stands
alone is appended from the pieces of the last one (`RepeatedCommit`): the broker spends 33 us on it, with the
system calls, instead of 63 with decoding and the general encoder. Those that a connection sends without
waiting for answers, and that lie behind one another, are one batch of records, all or nothing: 9 us for each
of sixteen.

A shape holds for one image of the cluster, as topics were looked up in that.
"""

from __future__ import annotations

from functools import partial
from struct import Struct
from typing import TYPE_CHECKING

from broker.net.answers import frame_answer
from broker.net.connection import HEAD
from coordinator.group.offsets import Commit
from coordinator.group.repeated_commit import RepeatedCommit, is_plain
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.headers import encode_request_header

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.context import BrokerContext
    from broker.handlers.request import Request
    from broker.net.connection import Connection
    from broker.net.shape import Shape
    from coordinator.group.manager import Committer, GroupManager
    from protocol import messages as m

PARTITIONS_MAX = 100  # of a commit that is worth remembering, and of those that are one write
BYTES_MAX = 4096
_BEFORE_CLIENT = 8  # bytes of the header: API, version, correlation id
_MARK = b"\x7a\xc3\x91\x5e\xe8\x3d\x0f"  # and a number: an offset that nobody commits


class OffsetCommitShape:
    """A `Shape` (broker.net.connection). Made by `shape_of`."""

    __slots__ = (
        "_again",
        "_around",
        "_at_once",
        "_between",
        "_commits",
        "_committer",
        "_context",
        "_group",
        "_image",
        "_manager",
        "_response",
        "_retention_ms",
        "_size",
        "_skip",
        "_unpack",
        "_version",
        "api",
        "before",
        "following",
    )

    promises = False

    def __init__(
        self,
        context: BrokerContext,
        request: Request[m.OffsetCommitRequest],
        pieces: list[bytes],
        committer: Committer,
        commits: list[Commit],
        retention_ms: int,
        response: m.OffsetCommitResponse,
    ) -> None:
        """`pieces` stand around the offsets; `response` is the one without an error."""
        version = request.version
        self._context, self._image = context, context.image
        self._manager: GroupManager = context.groups.manager()
        self._version = version
        self._group = request.body.group_id
        self._committer = committer
        self._commits = commits
        self._at_once = max(1, PARTITIONS_MAX // len(commits))
        self._retention_ms = retention_ms
        self._response = response
        answer = frame_answer(ApiKey.OFFSET_COMMIT, version, 0, response)
        self._around = answer[:4], answer[8:]
        self.api = ApiKey.OFFSET_COMMIT << 16 | version
        self.before = encode_request_header(request.header)[_BEFORE_CLIENT:] + pieces[0]
        self._skip = 12 + len(self.before)
        self._between = tuple(pieces[1:])
        body = Struct(">" + "".join(f"q{len(piece)}s" for piece in self._between))
        self._unpack, self._size = body.unpack_from, body.size
        self.following: Shape = self
        self._again: RepeatedCommit | None = None
        if not self._manager.runtime.compresses and all(is_plain(each, retention_ms) for each in commits):
            partition = self._manager.partition_of(self._group, may_be_empty=True)
            self._again = RepeatedCommit(partition, self._group, committer, version, commits)

    def serve(
        self, connection: Connection, buf: bytearray, at: int, end: int, correlation_id: int, own: bool
    ) -> int | None:
        """See `Shape`. Commits of this kind that follow at once are one write with the first."""
        if self._context.image is not self._image:
            return None
        if self._again is not None and (offsets := self._offsets(buf, at, end)) is not None:
            after = end + 12
            if after > connection.have or HEAD.unpack_from(buf, end)[1] != self.api:
                self._serve_alone(connection, offsets, correlation_id)
                return end
        commits: list[Commit] = []
        if not self._take(commits, buf, at, end):
            return None
        places = [(connection.expect_answer(), correlation_id)]
        size, at = end - at, end
        while at + size <= connection.have and len(places) < self._at_once and connection.waiting is None:
            length, api, correlation_id = HEAD.unpack_from(buf, at)
            if length + 4 != size or api != self.api or not buf.startswith(self.before, at + 12):
                break
            if not self._take(commits, buf, at, at + size):
                break
            places.append((connection.expect_answer(), correlation_id))
            at += size
        self._manager.commit_offsets(
            self._group,
            self._committer,
            self._version,
            commits,
            partial(self._done, connection, places),
            retention_ms=self._retention_ms,
        )
        return at

    def _offsets(self, buf: bytearray, at: int, end: int) -> tuple[int, ...] | None:
        """The offsets of the frame in buf[at:end]; None where it differs in more than these."""
        p = at + self._skip
        if end - p != self._size:
            return None
        fields = self._unpack(buf, p)
        return fields[::2] if fields[1::2] == self._between else None

    def _serve_alone(self, connection: Connection, offsets: Sequence[int], correlation_id: int) -> None:
        """None of this kind follows it, as where the client waits for answers."""
        again = self._again
        assert again is not None, "the caller looked"
        again.offsets = offsets
        position = connection.expect_answer()

        def done(error: ErrorCode, _: None) -> None:
            if error is ErrorCode.NONE:
                connection.answer(position, correlation_id.to_bytes(4, "big", signed=True).join(self._around))
            else:
                connection.answer(position, self._refused(correlation_id, [error] * len(self._commits)))

        self._manager.commit_again(again, done)

    def _take(self, commits: list[Commit], buf: bytearray, at: int, end: int) -> bool:
        """Add what the frame in buf[at:end] commits; False where it differs in more than the offsets."""
        offsets = self._offsets(buf, at, end)
        if offsets is None:
            return False
        for offset, (topic, partition, _, epoch, metadata, commit_ms) in zip(
            offsets, self._commits, strict=True
        ):
            commits.append(Commit(topic, partition, offset, epoch, metadata, commit_ms))
        return True

    def _done(
        self,
        connection: Connection,
        places: list[tuple[int, int]],
        error: ErrorCode,
        errors: list[ErrorCode] | None,
    ) -> None:
        good = error is ErrorCode.NONE and not any(errors or ())
        count = len(self._commits)
        for number, (position, correlation_id) in enumerate(places):
            if good:
                frame = correlation_id.to_bytes(4, "big", signed=True).join(self._around)
            else:
                own = errors[number * count : (number + 1) * count] if errors else [error] * count
                frame = self._refused(correlation_id, own)
            connection.answer(position, frame)

    def _refused(self, correlation_id: int, errors: list[ErrorCode]) -> bytes:
        answers = [answer for topic in self._response.topics for answer in topic.partitions]
        for answer, error in zip(answers, errors, strict=True):
            answer.error_code = error
        frame = frame_answer(ApiKey.OFFSET_COMMIT, self._version, correlation_id, self._response)
        for answer in answers:
            answer.error_code = ErrorCode.NONE
        return frame


def pieces_of(version: int, body: m.OffsetCommitRequest) -> list[bytes] | None:
    """What stands around the offsets of a request; None where it is too long, or looks like our marks."""
    asked = [each for topic in body.topics for each in topic.partitions]
    if not 0 < len(asked) <= PARTITIONS_MAX:
        return None
    offsets = [each.committed_offset for each in asked]
    for at, each in enumerate(asked):
        each.committed_offset = int.from_bytes(_MARK + bytes((at,)), "big")
    encoded = body.encode(version)
    for each, offset in zip(asked, offsets, strict=True):
        each.committed_offset = offset
    if len(encoded) > BYTES_MAX:
        return None
    pieces = encoded.split(_MARK)
    if len(pieces) != len(asked) + 1 or any(piece[0] != at for at, piece in enumerate(pieces[1:])):
        return None
    return [pieces[0], *(piece[1:] for piece in pieces[1:])]
