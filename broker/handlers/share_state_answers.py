"""What the five APIs of share state (83-87) have in common: a request is a group and its partitions by topic,
the answer has a result for each, and leaves when all have one.

A request without a group, without topics, or with a topic that has no partitions gets an answer without
results, as in Kafka. Of a partition that is named twice the answer shows the last result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from broker.handlers.later import Later
from broker.handlers.paced import paced
from coordinator.share.manager import Done
from coordinator.share.records import ShareKey
from coordinator.share.shard import Answer
from runtime.pieces import Pieces

Ask = Callable[[ShareKey, Any, Done], None]
"""Starts the operation for one partition of the request."""
Show = Callable[[int, Answer], Any]
"""The result of one partition."""


def answer(
    pieces: Pieces, body: Any, doing: str, ask: Ask, show: Show, respond: Callable[[list[Any]], Any]
) -> Any:
    """The response, or a `Later` for it. `respond` makes it of (topic id, results) pairs.

    `doing` is how a failure of the coordinator itself is told: "Unable to {doing}: ...".
    """
    if not body.group_id or not body.topics or not all(topic.partitions for topic in body.topics):
        return respond([])
    return gather(pieces, body.group_id, body.topics, doing, ask, show, respond)


def gather(
    pieces: Pieces,
    group_id: str,
    topics: Sequence[Any],
    doing: str,
    ask: Ask,
    show: Show,
    respond: Callable[[list[Any]], Any],
) -> Any:
    """As `answer`, for a request that was looked at."""
    results: dict[bytes, dict[int, Any]] = {}
    later = Later()
    left = 1 + sum(len(topic.partitions) for topic in topics)

    def one_less() -> None:
        nonlocal left
        left -= 1
        if not left:
            later.give(respond([(topic_id, list(found.values())) for topic_id, found in results.items()]))

    def taker(topic_id: bytes, partition: int) -> Done:
        def take(told: Answer) -> None:
            if told.error and told.message is None:
                told = told._replace(message=f"Unable to {doing}: {told.error.message}")
            results[topic_id][partition] = show(partition, told)
            one_less()

        return take

    def start(topic_id: bytes, each: Any) -> None:
        results.setdefault(topic_id, {})[each.partition] = None
        ask(ShareKey(group_id, topic_id, each.partition), each, taker(topic_id, each.partition))

    def started() -> Any:
        one_less()
        return later.now_or_later()

    partitions = [(topic.topic_id, each) for topic in topics for each in topic.partitions]
    return paced(pieces, partitions, lambda each: start(*each), started)
