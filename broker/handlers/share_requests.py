"""What ShareFetch and ShareAcknowledge have in common: who may ask, and acknowledgements.

Membership is not looked at here, as in Kafka: who has a session may fetch, and what it holds it may
acknowledge, whatever the group's coordinator thinks of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from broker.handlers.leader_hints import Endpoint, current_leader, endpoints_of
from protocol.errors import ErrorCode
from replication.share.acknowledge import Ack, check_acks
from replication.share.share_partitions import Place

if TYPE_CHECKING:
    from broker.context import BrokerContext

MEMBER_ID_MAX: Final = 36
RENEW_FROM: Final = 2
TYPES_AT_ONCE: Final = 4000  # about 20 ms of work, if no two neighbours are of one type
_NOT_HERE: Final = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)

AckResult = tuple[ErrorCode, str | None]


def refusal(ctx: BrokerContext, group_id: str | None, member_id: str | None) -> ErrorCode:
    """What refuses a whole request before its session is looked at: 35 share groups are off, 42."""
    if not ctx.share_data.enabled():
        return ErrorCode.UNSUPPORTED_VERSION
    if group_id is None or not member_id or len(member_id) > MEMBER_ID_MAX:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def is_known(ctx: BrokerContext, place: Place) -> bool:
    """Whether the cluster has this partition."""
    topic = ctx.image.topics_by_id.get(place[0])
    return topic is not None and 0 <= place[1] < len(topic.partitions)


class Acknowledgements:
    """The acknowledgements of one request. `done` hears the result of each partition, once, when the last one
    is there.
    """

    def __init__(
        self,
        ctx: BrokerContext,
        group_id: str,
        member: str,
        version: int,
        is_renew_ack: bool,
        done: Callable[[dict[Place, AckResult]], None],
    ) -> None:
        self._ctx = ctx
        self._group_id, self._member = group_id, member
        self._renew_known = version >= RENEW_FROM
        self._is_renew_ack = is_renew_ack
        self._done = done
        self._results: dict[Place, AckResult | None] = {}
        self._left = 0

    def apply(self, topics: Any) -> None:
        """Apply what the request's topics say, each of its partitions on its own; many types in several turns
        of the loop.
        """
        places: dict[Place, list[Ack]] = {}
        for topic in topics:
            for each in topic.partitions:
                acks = [
                    Ack(batch.first_offset, batch.last_offset, batch.acknowledge_types)
                    for batch in each.acknowledgement_batches
                ]
                places[topic.topic_id, each.partition_index] = acks
        self._results = dict.fromkeys(places)
        self._left = len(places) + 1
        self._go_on(iter(places.items()))

    def _go_on(self, places: Iterator[tuple[Place, list[Ack]]]) -> None:
        partitions = self._ctx.share_data.parts.partitions
        worked = 0
        for place, acks in places:
            error = self._check(place, acks)
            took = partial(self._took, place)
            if error is not ErrorCode.NONE:
                took(error, None)
            else:
                partitions.acknowledge(self._group_id, self._member, place, acks, took)
            worked += sum(len(types) for _, _, types in acks)
            if worked > TYPES_AT_ONCE:
                self._ctx.env.loop.call_soon(self._go_on, places)
                return
        self._one_less()

    def _check(self, place: Place, acks: list[Ack]) -> ErrorCode:
        if place[0] not in self._ctx.image.topics_by_id:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if not check_acks(acks, self._renew_known, self._is_renew_ack):
            return ErrorCode.INVALID_REQUEST
        return ErrorCode.NONE if is_known(self._ctx, place) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def _took(self, place: Place, error: ErrorCode, message: str | None) -> None:
        self._results[place] = (error, message)
        self._one_less()

    def _one_less(self) -> None:
        self._left -= 1
        if not self._left:
            self._done({place: result for place, result in self._results.items() if result is not None})


def leader_hints(
    ctx: BrokerContext, errors: dict[Place, ErrorCode], listener_name: str
) -> tuple[dict[Place, tuple[int, int]], list[Endpoint]]:
    """Where the partitions are that are not led here: (leader, epoch) of each, and the leaders' addresses."""
    image = ctx.image
    leaders = {}
    for place, error in errors.items():
        if error in _NOT_HERE:
            leader = current_leader(image, "", *place)
            if leader is not None:
                leaders[place] = leader
    return leaders, endpoints_of(image, listener_name, [leader for leader, _ in leaders.values()])
