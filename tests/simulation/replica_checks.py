"""Looks into the brokers of a cluster: who leads, and whether the replicas' logs agree.

In one leader epoch one broker leads. Below the lowest high watermark all logs hold the same batches, with
their offsets, epochs and checksums. Along a log offsets have no gaps and leader epochs do not fall.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, pairwise
from typing import Any

from storage.scan import scan
from tests.simulation.history import TopicPartition
from tests.simulation.machine import BrokerMachine
from tests.simulation.watched_tree import WatchedTree

Batch = tuple[int, int, int, int]  # first and last offset, leader epoch, CRC


class ReplicaChecks:
    """See the module. To be called between steps of the brokers."""

    def __init__(self, machines: Sequence[BrokerMachine], fail: Callable[[str], None]) -> None:
        self._machines, self._fail = list(machines), fail
        self._leaders: dict[tuple[TopicPartition, int], str] = {}

    def look(self, partitions: Sequence[TopicPartition]) -> None:
        """At all running brokers."""
        for partition in partitions:
            found = self.replicas(partition)
            for name, replica in found:
                if replica.is_leader:
                    self._leads(partition, replica.leader_epoch, name)
            logs = [(name, replica.log.high_watermark, self.batches(replica.log)) for name, replica in found]
            for name, _, batches in logs:
                self._check_log(f"{partition} on {name}", batches)
            for (one, mark, batches), (other, other_mark, others) in combinations(logs, 2):
                self._compare(partition, (one, batches), (other, others), min(mark, other_mark))

    def replicas(self, partition: TopicPartition) -> list[tuple[str, Any]]:
        """(broker, replica) where it is there and can be read."""
        found = []
        for machine in self._machines:
            if machine.serving and machine.process is not None:
                replica = machine.process.broker.hub.dispatcher._context.replicas.get(*partition)
                if replica is not None and not replica.offline and not replica.log.closed:
                    found.append((machine.name, replica))
        return found

    def batches(self, log: Any) -> list[Batch]:
        """The batches in a log's files, below its end. To look at them is no operation of the disk's."""
        disk = log.local.files
        draw, disk.draw = disk.draw, _no_fault
        try:
            return [
                (facts.base_offset, facts.last_offset, facts.leader_epoch, facts.crc)
                for segment in log.local.segments
                for facts in scan(segment.handle, 0, segment.size)
                if facts.last_offset < log.end_offset
            ]
        finally:
            disk.draw = draw

    def settled(self, partitions: Sequence[TopicPartition], tree: WatchedTree) -> bool:
        """Whether all replicas are in sync, on brokers that serve, and nobody has more than the others."""
        for topic, index in partitions:
            state = tree.state(topic, index)
            if state is None or state.leader < 0:
                return False
            wanted = tree.replicas(topic, index)
            if sorted(state.isr) != sorted(wanted):
                return False
            replicas = [replica for _, replica in self.replicas((topic, index))]
            marks = {(replica.log.end_offset, replica.log.high_watermark) for replica in replicas}
            if len(replicas) < len(wanted) or len(marks) != 1 or any(end != mark for end, mark in marks):
                return False
        return True

    def check_equal(self, partitions: Sequence[TopicPartition]) -> None:
        """All replicas hold the same batches."""
        for partition in partitions:
            logs = {name: self.batches(replica.log) for name, replica in self.replicas(partition)}
            if len({tuple(batches) for batches in logs.values()}) != 1:
                self._fail(f"{partition}: the logs differ at the end: {sorted(logs)}")

    def _leads(self, partition: TopicPartition, epoch: int, name: str) -> None:
        leader = self._leaders.setdefault((partition, epoch), name)
        if leader != name:
            self._fail(f"{partition}: {leader} and {name} lead in epoch {epoch}")

    def _check_log(self, where: str, batches: Sequence[Batch]) -> None:
        for (_, last, epoch, _), (first, _, next_epoch, _) in pairwise(batches):
            if first != last + 1:
                self._fail(f"{where}: offset {first} after {last}")
            if next_epoch < epoch:
                self._fail(f"{where}@{first}: leader epoch {next_epoch} after {epoch}")

    def _compare(
        self,
        partition: TopicPartition,
        one: tuple[str, Sequence[Batch]],
        other: tuple[str, Sequence[Batch]],
        upto: int,
    ) -> None:
        if not one[1] or not other[1]:
            return
        start = max(one[1][0][0], other[1][0][0])
        first = [batch for batch in one[1] if start <= batch[0] and batch[1] < upto]
        second = [batch for batch in other[1] if start <= batch[0] and batch[1] < upto]
        if first != second:
            wrong = next((a, b) for a, b in zip([*first, None], [*second, None], strict=False) if a != b)
            self._fail(f"{partition}: below {upto} {one[0]} and {other[0]} differ: {wrong[0]} and {wrong[1]}")


def _no_fault(operation: str, path: str) -> None:
    """Nothing is wrong with the disk."""
