"""Where to go on when the leader's log does not hold the offset that a follower asks from.

Asked as a replica, ListOffsets tells the ends of the leader's log and not of what is committed. If the
leader's log ends before ours (it was elected uncleanly), ours is cut to that end. Else it begins after our
end (its old records were deleted while we were away), and ours is dropped and begins there; or the answer was
overtaken, and we ask again from our end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.cluster.channel import Channel, ChannelLost
from replication.cluster.followed import Followed, Outcome
from replication.list_offsets import EARLIEST, LATEST
from storage.errors import StorageError

_log = logging.getLogger(__name__)


class OffsetLookup:
    """Asks one leader."""

    __slots__ = ("_broker_id", "_channel", "_version")

    def __init__(self, channel: Channel, broker_id: int, version: int) -> None:
        self._channel = channel
        self._broker_id = broker_id
        self._version = version

    async def settle(
        self, followed: Followed, is_current: Callable[[Followed], bool], wall_ms: Callable[[], int]
    ) -> Outcome:
        """Bring the log to an offset that the leader has. `is_current`: whether the answers still matter."""
        try:
            end = await self._ask(followed, LATEST)
            if isinstance(end, Outcome) or not is_current(followed):
                return end if isinstance(end, Outcome) else Outcome.BACK_OFF
            if followed.behind_the_end(end, wall_ms()):
                return Outcome.GO_ON
            start = await self._ask(followed, EARLIEST)
            if isinstance(start, Outcome) or not is_current(followed):
                return start if isinstance(start, Outcome) else Outcome.BACK_OFF
            followed.begin_at(start, end, wall_ms())
        except ChannelLost as lost:
            _log.info("Asking for the offsets of %s: %s", followed, lost)
            return Outcome.BACK_OFF
        except StorageError as error:
            _log.error("%s is not fetched any more: %s", followed, error)
            return Outcome.FAILED
        return Outcome.GO_ON

    async def _ask(self, followed: Followed, timestamp: int) -> int | Outcome:
        topic, index = followed.key
        request = m.ListOffsetsRequest(
            replica_id=self._broker_id,
            topics=[
                m.ListOffsetsRequest.ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        m.ListOffsetsRequest.ListOffsetsPartition(
                            partition_index=index,
                            current_leader_epoch=followed.leader_epoch,
                            timestamp=timestamp,
                        )
                    ],
                )
            ],
        )
        response: m.ListOffsetsResponse = await self._channel.ask(request, self._version)
        for answered in response.topics:
            for answer in answered.partitions:
                if (answered.name, answer.partition_index) == followed.key:
                    return _offset_or_outcome(followed, answer)
        return Outcome.BACK_OFF


def _offset_or_outcome(
    followed: Followed, answer: m.ListOffsetsResponse.ListOffsetsPartitionResponse
) -> int | Outcome:
    error = ErrorCode(answer.error_code)
    if error == ErrorCode.NONE:
        return answer.offset
    _log.info("The leader does not tell the offsets of %s: %s", followed, error.name)
    return Outcome.FAILED if error == ErrorCode.FENCED_LEADER_EPOCH else Outcome.BACK_OFF
