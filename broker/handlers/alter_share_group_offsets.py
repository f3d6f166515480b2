"""AlterShareGroupOffsets (91), version 0: a share group without members begins elsewhere.

A group that is not there yet is made by it. Partitions that do not exist are refused one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from broker.context import BrokerContext
from broker.handlers.later import Later
from broker.handlers.request import Request
from broker.handlers.share_groups import share_requests
from coordinator.group.share.offsets import Refused
from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.uuids import ZERO_UUID

if TYPE_CHECKING:
    from coordinator.group.share.offsets import Altering
    from coordinator.group.share.ports import Errors

_Topic = m.AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic
_Partition = m.AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition


def handle(ctx: BrokerContext, request: Request[m.AlterShareGroupOffsetsRequest]) -> Any:
    """The answer, or a `Later` until the new offsets are stored."""
    body = request.body
    requests = share_requests(ctx)
    if requests is None:
        error = ErrorCode.UNSUPPORTED_VERSION
        return m.AlterShareGroupOffsetsResponse(error_code=error, error_message=error.message)
    wanted: dict[str, dict[int, int]] = {}
    for topic in body.topics:
        wanted.setdefault(
            topic.topic_name, {each.partition_index: each.start_offset for each in topic.partitions}
        )
    later = Later()

    def done(plan: Refused | Altering, errors: Errors) -> None:
        if isinstance(plan, Refused):
            later.give(m.AlterShareGroupOffsetsResponse(error_code=plan.error, error_message=plan.text))
            return
        unknown = [name for name in wanted if name not in plan.topics]
        later.give(
            m.AlterShareGroupOffsetsResponse(
                responses=[
                    _topic(name, list(wanted[name]), plan, errors) for name in (*unknown, *plan.topics)
                ]
            )
        )

    requests.alter_offsets(body.group_id, wanted, done)
    return later.now_or_later()


def _topic(name: str, indexes: list[int], plan: Altering, errors: Errors) -> _Topic:
    """Topics that do not exist come first, as in Kafka's answer."""
    facts = plan.topics.get(name)
    topic_id = ZERO_UUID if facts is None else facts.topic_id
    rows = []
    for index in indexes:
        error = errors.get((topic_id, index), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        text = None if error is ErrorCode.NONE else error.message
        rows.append(_Partition(partition_index=index, error_code=error, error_message=text))
    return _Topic(topic_name=name, topic_id=topic_id, partitions=rows)
