"""Compares the replicas of a cluster's logs with each other and with what is known about them.

Below the lowest high watermark all logs of a topic's id hold the same batches, with their offsets, epochs
and checksums. Of one leader epoch there is one batch at an offset, wherever it is. Along a log offsets have
no gaps and leader epochs do not fall; none is above the partition's. The cache of leader epochs says the same
as the batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, pairwise
from typing import Any

from tests.simulation.history import TopicPartition
from tests.simulation.inside import Batch, batches_of, replicas_on
from tests.simulation.machine import BrokerMachine
from tests.simulation.watched_tree import WatchedTree

Key = tuple[bytes, int]


class ReplicaChecks:
    """See the module. To be called between steps of the brokers.

    `unclean` has the partitions that lost what was committed: their logs agree at the end only. So do those
    of topics that a power cut may take records from: `keeps` tells the others.
    """

    def __init__(self, machines: Sequence[BrokerMachine], fail: Callable[[str], None]) -> None:
        self._machines, self._fail = list(machines), fail
        self.unclean: dict[Key, None] = {}
        self.keeps: Callable[[str], bool] = lambda topic: True

    def look(self) -> None:
        """At all running brokers."""
        found: dict[Key, list[tuple[str, Any, list[Batch]]]] = {}
        for machine in self._machines:
            for replica in replicas_on(machine):
                batches = batches_of(replica.log)
                self._check_log(f"{replica} on {machine.name}", replica, batches)
                found.setdefault((replica.topic_id, replica.index), []).append(
                    (machine.name, replica, batches)
                )
        for key, logs in found.items():
            for one, other in combinations(logs, 2):
                self._compare(key, one, other)

    def replicas(self, partition: TopicPartition) -> list[tuple[str, Any]]:
        """(broker, replica) where it is there and can be read."""
        return [
            (machine.name, replica)
            for machine in self._machines
            for replica in replicas_on(machine)
            if (replica.topic, replica.index) == partition
        ]

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
            logs = {name: batches_of(replica.log) for name, replica in self.replicas(partition)}
            if len({tuple(batches) for batches in logs.values()}) != 1:
                self._fail(f"{partition}: the logs differ at the end: {sorted(logs)}")

    def _check_log(self, where: str, replica: Any, batches: Sequence[Batch]) -> None:
        for (_, last, epoch, _), (first, _, next_epoch, _) in pairwise(batches):
            if first != last + 1:
                self._fail(f"{where}: offset {first} after {last}")
            if next_epoch < epoch:
                self._fail(f"{where}@{first}: leader epoch {next_epoch} after {epoch}")
        if batches and 0 <= replica.leader_epoch < batches[-1][2]:
            self._fail(f"{where}: a batch of epoch {batches[-1][2]} in epoch {replica.leader_epoch}")
        self._check_epochs(where, replica.log, batches)

    def _check_epochs(self, where: str, log: Any, batches: Sequence[Batch]) -> None:
        entries = log.leader_epochs._entries  # None: nobody has asked for them yet
        if entries is None or log.leader_epochs._range is not None:
            return
        for (epoch, start), (next_epoch, next_start) in pairwise(entries):
            if next_epoch <= epoch or next_start <= start:
                self._fail(f"{where}: epochs {entries}")
        known = -1
        for first, last, epoch, _ in batches:
            if last < log.start_offset:
                continue
            while known + 1 < len(entries) and entries[known + 1][1] <= max(first, log.start_offset):
                known += 1
            if known >= 0 and entries[known][0] != epoch:  # a kill may have lost the start, not the epochs'
                self._fail(f"{where}@{first}: epoch {epoch}, the cache has {entries}")
                return

    def _compare(
        self, key: Key, one: tuple[str, Any, list[Batch]], other: tuple[str, Any, list[Batch]]
    ) -> None:
        if not one[2] or not other[2]:
            return
        what = f"{one[1]}: {one[0]} and {other[0]}"
        known = {batch[0]: batch for batch in one[2]}
        for batch in other[2]:
            same = known.get(batch[0])
            if same is not None and same != batch and same[2] == batch[2]:
                self._fail(f"{what} have {same} and {batch} of one epoch")
        if key in self.unclean or not self.keeps(one[1].topic):
            return
        start = max(one[2][0][0], other[2][0][0])
        upto = min(one[1].log.high_watermark, other[1].log.high_watermark)
        first = [batch for batch in one[2] if start <= batch[0] and batch[1] < upto]
        second = [batch for batch in other[2] if start <= batch[0] and batch[1] < upto]
        if first != second:
            wrong = next((a, b) for a, b in zip([*first, None], [*second, None], strict=False) if a != b)
            self._fail(f"{what} differ below {upto}: {wrong[0]} and {wrong[1]}")
