"""WriteTxnMarkers (27), versions 0-2: the coordinator of transactions ends them on partitions led here.

v2: the version of the transaction, for the check of its epoch (KIP-1228). An operator's tool sends it, too,
for transactions that no coordinator knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from broker.context import BrokerContext
from broker.handlers.later import Later
from broker.handlers.paced import paced
from broker.handlers.request import Request
from broker.transaction.markers import Marker
from coordinator.transaction.state import TopicPartition
from protocol import messages as m
from protocol.errors import ErrorCode
from runtime.pieces import split

_Result = m.WriteTxnMarkersResponse.WritableTxnMarkerResult
_Topic = m.WriteTxnMarkersResponse.WritableTxnMarkerTopicResult
_Partition = m.WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult
_Errors = dict[TopicPartition, ErrorCode]

CELLS_AT_ONCE: Final = 50  # each is an append of 30 us, the first of a partition of up to 450


def handle(ctx: BrokerContext, request: Request[m.WriteTxnMarkersRequest]) -> Any:
    """The answer, or a `Later` until all markers are replicated."""
    results = [_Outcome(asked) for asked in request.body.markers]
    parts = [(each, cells) for each in results for cells in split(each.cells, CELLS_AT_ONCE)]
    left = len(parts)
    later = Later()

    def write(part: tuple[_Outcome, Sequence[TopicPartition]]) -> None:
        outcome, cells = part

        def done(errors: _Errors) -> None:
            nonlocal left
            outcome.errors.update(errors)
            left -= 1
            if not left:
                later.give(_response(results))

        ctx.transactions.markers.write(outcome.marker, cells, done)

    if not parts:
        return _response(results)
    return paced(ctx.pieces, parts, write, later.now_or_later, CELLS_AT_ONCE, lambda part: len(part[1]))


class _Outcome:
    """A marker of the request, and what became of it on each of its partitions."""

    __slots__ = ("asked", "cells", "errors", "marker")

    def __init__(self, asked: m.WriteTxnMarkersRequest.WritableTxnMarker) -> None:
        self.asked = asked
        self.marker = Marker(
            asked.producer_id,
            asked.producer_epoch,
            asked.coordinator_epoch,
            asked.transaction_result,
            asked.transaction_version,
        )
        self.cells = list(
            dict.fromkeys((topic.name, index) for topic in asked.topics for index in topic.partition_indexes)
        )
        self.errors: _Errors = {}


def _response(results: Sequence[_Outcome]) -> m.WriteTxnMarkersResponse:
    return m.WriteTxnMarkersResponse(
        markers=[
            _Result(producer_id=each.asked.producer_id, topics=_topics(each.asked, each.errors))
            for each in results
        ]
    )


def _topics(asked: m.WriteTxnMarkersRequest.WritableTxnMarker, errors: _Errors) -> list[_Topic]:
    return [
        _Topic(
            name=topic.name,
            partitions=[
                _Partition(partition_index=index, error_code=errors[topic.name, index])
                for index in topic.partition_indexes
            ],
        )
        for topic in asked.topics
    ]
