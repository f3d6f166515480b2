"""The heartbeat of a member, which says the same every few seconds, byte by byte but for its number.

A broker may have ten thousand members that do nothing else. So a connection remembers the last good one,
understood, and serves the next by comparing its bytes; what it is told is still decided by the group. A
member of a new generation says something else, and is decoded again. Only members of classic groups are
served like this; wherever that is not so any more, the decoder has its turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.handlers.request import Request
from broker.net.answers import frame_answer
from coordinator.group.classic.requests import heartbeat_event
from coordinator.group.manager import GroupManager
from coordinator.result import CoordinatorError
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.headers import encode_request_header

if TYPE_CHECKING:
    from broker.net.connection import Connection
    from broker.net.shape import Shape

_BEFORE_CLIENT = 8  # bytes of the header: API, version, correlation id
_NO_TOKEN = 0  # nothing is answered by token here
_answers: dict[tuple[int, int], tuple[bytes, bytes]] = {}
"""By version and error: the bytes around the correlation id. As many as there are errors of a heartbeat."""


class HeartbeatShape:
    """A `Shape` (broker.net.connection)."""

    __slots__ = ("_event", "_group", "_manager", "_version", "api", "before", "following")

    promises = False

    def __init__(self, manager: GroupManager, request: Request[m.HeartbeatRequest]) -> None:
        version, body = request.version, request.body
        self._manager = manager
        self._version = version
        self._group = body.group_id
        self._event = heartbeat_event(_NO_TOKEN, version, body)
        self.api = ApiKey.HEARTBEAT << 16 | version
        self.before = encode_request_header(request.header)[_BEFORE_CLIENT:] + body.encode(version)
        self.following: Shape = self

    def serve(
        self, connection: Connection, buf: bytearray, at: int, end: int, correlation_id: int, own: bool
    ) -> bool | None:
        """See `Shape`."""
        if end - at - 12 != len(self.before):
            return None
        try:
            error = self._manager.beat(self._group, self._event)
        except CoordinatorError:
            return None
        if error is None:
            return None
        around = _answers.get((self._version, error)) or _answer(self._version, error)
        connection.out.append(correlation_id.to_bytes(4, "big", signed=True).join(around))
        return True


def _answer(version: int, error: int) -> tuple[bytes, bytes]:
    """What stands before and behind the correlation id."""
    framed = frame_answer(ApiKey.HEARTBEAT, version, 0, m.HeartbeatResponse(error_code=error))
    around = _answers[version, error] = framed[:4], framed[8:]
    return around
