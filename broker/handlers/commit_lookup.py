"""What a request to commit offsets names, looked up: of OffsetCommit and of TxnOffsetCommit alike.

Partitions that do not exist are refused one by one and the others are committed all the same. What names
very many is looked up in pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from broker.context import BrokerContext
from broker.handlers.later import Later
from coordinator.group.offsets import Commit
from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.uuids import ZERO_UUID
from runtime.pieces import AT_ONCE, Steps, at_once

Asked = m.OffsetCommitRequest.OffsetCommitRequestTopic | m.TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
P = TypeVar(
    "P",
    m.OffsetCommitResponse.OffsetCommitResponsePartition,
    m.TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition,
)


@dataclass(slots=True)
class Found(Generic[P]):
    """`answers` has a list for each topic of the request, in its order; `open_answers` those of them that the
    coordinator is to give, one for each of `commits`.
    """

    answers: list[list[P]] = field(default_factory=list)
    commits: list[Commit] = field(default_factory=list)
    open_answers: list[P] = field(default_factory=list)

    def settle(self, error: ErrorCode, errors: list[ErrorCode] | None) -> None:
        """What became of the commits: one error for all of them, or each its own."""
        for at, answer in enumerate(self.open_answers):
            answer.error_code = error if errors is None else errors[at]


def look_up_then(
    ctx: BrokerContext,
    topics: Sequence[Asked],
    make: Callable[[int], P],
    commit_of: Callable[[str, Any], Commit],
    commit: Callable[[Found[P]], Any],
    *,
    by_id: bool,
) -> Any:
    """What `commit` makes of what was found, which may be a `Later`; or something to await where that takes
    pieces. `make` is the empty answer of a partition, `commit_of` what is asked of one of a topic's.
    """
    steps = _steps(ctx, topics, make, commit_of, by_id)
    if len(topics) + sum(len(topic.partitions) for topic in topics) <= AT_ONCE:
        return commit(at_once(steps))
    return _in_pieces(ctx, steps, commit)


async def _in_pieces(ctx: BrokerContext, steps: Steps[Found[P]], commit: Callable[[Found[P]], Any]) -> Any:
    answer = commit(await ctx.pieces.run(steps))
    return await answer.response() if isinstance(answer, Later) else answer


def _steps(
    ctx: BrokerContext,
    topics: Sequence[Asked],
    make: Callable[[int], P],
    commit_of: Callable[[str, Any], Commit],
    by_id: bool,
) -> Steps[Found[P]]:
    found = Found[P]()
    left = AT_ONCE
    for asked in topics:
        left -= 1
        if left <= 0:
            yield
            left = AT_ONCE
        name, partition_count, missing = _topic_of(ctx, asked, by_id)
        answers: list[P] = []
        for each in asked.partitions:
            left -= 1
            if left <= 0:
                yield
                left = AT_ONCE
            answer = make(each.partition_index)
            if 0 <= each.partition_index < partition_count:
                found.open_answers.append(answer)
                found.commits.append(commit_of(name, each))
            else:
                answer.error_code = missing
            answers.append(answer)
        found.answers.append(answers)
    return found


def _topic_of(ctx: BrokerContext, asked: Asked, by_id: bool) -> tuple[str, int, ErrorCode]:
    """Name, number of partitions, and what one that is not there is answered."""
    if not by_id:
        topic = ctx.image.topics.get(asked.name)
        return asked.name, len(topic.partitions) if topic else 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    topic = ctx.image.topics_by_id.get(asked.topic_id) if asked.topic_id != ZERO_UUID else None
    if topic is None:
        return "", 0, ErrorCode.UNKNOWN_TOPIC_ID
    return topic.name, len(topic.partitions), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
