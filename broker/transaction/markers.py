"""Writing the end of transactions into partitions that this broker leads.

A marker on `__consumer_offsets` goes through the group coordinator, which publishes or drops the offsets of
the transaction with it; on every other partition it is a batch like others, acknowledged by all in-sync
replicas.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.groups import TOPIC as OFFSETS
from protocol.errors import ErrorCode
from protocol.records.control import build_end_marker
from protocol.records.rules import trusted_batch
from replication import produce
from replication.partition import ACKS_ALL, Partition

if TYPE_CHECKING:
    from broker.groups import Groups
    from coordinator.transaction.state import TopicPartition
    from protocol.records.rules import Checked
    from replication.delayed_produce import ProducePurgatory
    from replication.produce import WriteTurn
    from replication.replica_manager import ReplicaManager

_COME_AGAIN: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
"""Of the group coordinator. Who writes markers knows partitions and leaders only."""


class Marker(NamedTuple):
    """The end of one producer's transaction, as WriteTxnMarkers tells it."""

    producer_id: int
    epoch: int
    coordinator_epoch: int
    commit: bool
    version: int


class MarkerWriter:
    """See the module. `timeout_ms`: how long the in-sync replicas have."""

    def __init__(
        self,
        replicas: ReplicaManager,
        groups: Groups,
        turn: WriteTurn,
        purgatory: ProducePurgatory,
        timeout_ms: int,
    ) -> None:
        self._replicas, self._groups = replicas, groups
        self._turn, self._purgatory = turn, purgatory
        self._timeout_ms = timeout_ms

    def write(
        self,
        marker: Marker,
        partitions: Sequence[TopicPartition],
        done: Callable[[dict[TopicPartition, ErrorCode]], None],
    ) -> None:
        """Append the marker to each of the partitions; `done` gets an error for each, perhaps at once."""
        answers: dict[TopicPartition, ErrorCode] = {}
        data: list[tuple[TopicPartition, Partition]] = []
        offsets: list[int] = []
        for topic, index in partitions:
            found = self._replicas.find(topic, index)
            if isinstance(found, ErrorCode):
                answers[topic, index] = found
            elif topic == OFFSETS:
                offsets.append(index)
            else:
                data.append(((topic, index), found))
        waiting = len(offsets) + bool(data)

        def settled(more: dict[TopicPartition, ErrorCode]) -> None:
            nonlocal waiting
            answers.update(more)
            waiting -= 1
            if not waiting:
                done(answers)

        if not waiting:
            done(answers)
            return
        if data:
            self._write_data(marker, data, settled)
        for index in offsets:
            self._write_offsets(marker, index, settled)

    def _write_data(
        self,
        marker: Marker,
        partitions: list[tuple[TopicPartition, Partition]],
        done: Callable[[dict[TopicPartition, ErrorCode]], None],
    ) -> None:
        now_ms = self._turn.open()

        def written(results: list[produce.ProduceResult]) -> None:
            done({cell: result.error for (cell, _), result in zip(partitions, results, strict=True)})

        produce.append(
            self._turn,
            [(partition, _batch(marker, now_ms)) for _, partition in partitions],
            ACKS_ALL,
            self._timeout_ms,
            self._purgatory,
            written,
            marker.version,
        )

    def _write_offsets(
        self, marker: Marker, index: int, done: Callable[[dict[TopicPartition, ErrorCode]], None]
    ) -> None:
        def decided(error: ErrorCode, _: None) -> None:
            done({(OFFSETS, index): ErrorCode.NOT_LEADER_OR_FOLLOWER if error in _COME_AGAIN else error})

        self._groups.manager().runtime.write_end_marker(
            index,
            marker.producer_id,
            marker.epoch,
            marker.coordinator_epoch,
            marker.commit,
            decided,
            self._timeout_ms,
            marker.version,
        )


def _batch(marker: Marker, now_ms: int) -> Checked:
    return trusted_batch(
        build_end_marker(
            marker.commit,
            producer_id=marker.producer_id,
            producer_epoch=marker.epoch,
            coordinator_epoch=marker.coordinator_epoch,
            timestamp=now_ms,
        )
    )
