"""WriteTxnMarkers (27), versions 0-2: the coordinator of transactions ends them on partitions led here.

v2: the version of the transaction, for the check of its epoch (KIP-1228). An operator's tool sends it, too,
for transactions that no coordinator knows.
"""

from __future__ import annotations

from typing import Any

from broker.context import BrokerContext
from broker.handlers.later import Later
from broker.handlers.paced import paced
from broker.handlers.request import Request
from broker.transaction.markers import Marker
from protocol import messages as m
from protocol.errors import ErrorCode

_Result = m.WriteTxnMarkersResponse.WritableTxnMarkerResult
_Topic = m.WriteTxnMarkersResponse.WritableTxnMarkerTopicResult
_Partition = m.WriteTxnMarkersResponse.WritableTxnMarkerPartitionResult
_Errors = dict[tuple[str, int], ErrorCode]


def handle(ctx: BrokerContext, request: Request[m.WriteTxnMarkersRequest]) -> Any:
    """The answer, or a `Later` until all markers are replicated."""
    body = request.body
    response = m.WriteTxnMarkersResponse()
    left = len(body.markers)
    if not left:
        return response
    later = Later()

    def write(asked: m.WriteTxnMarkersRequest.WritableTxnMarker) -> None:
        result = _Result(producer_id=asked.producer_id)
        response.markers.append(result)
        marker = Marker(
            asked.producer_id,
            asked.producer_epoch,
            asked.coordinator_epoch,
            asked.transaction_result,
            asked.transaction_version,
        )
        cells = [(topic.name, index) for topic in asked.topics for index in topic.partition_indexes]

        def done(errors: _Errors) -> None:
            nonlocal left
            result.topics = _topics(asked, errors)
            left -= 1
            if not left:
                later.give(response)

        ctx.transactions.markers.write(marker, list(dict.fromkeys(cells)), done)

    return paced(ctx.pieces, body.markers, write, later.now_or_later)


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
