"""The share coordinator as request handlers and the persister see it: one call for each operation on a share
partition, and the upkeep of its topic.

`done` gets an `Answer` once, perhaps before the call returns. Refusals of a share partition have a message,
errors of the coordinator itself (14, 15, 16, -1) have none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Final

from coordinator.result import CoordinatorError, Result
from coordinator.runtime import CoordinatorRuntime
from coordinator.share.records import ShareKey
from coordinator.share.shard import Answer, ShareShard, StateWrite
from protocol.errors import ErrorCode

COLD_AFTER_MS: Final = 300_000
"""Default of share.coordinator.cold.partition.snapshot.interval.ms."""

Done = Callable[[Answer], None]
_Choose = Callable[[ShareShard], Sequence[ShareKey]]
_Step = Callable[[ShareShard, Sequence[ShareKey]], Result[int]]

_log = logging.getLogger(__name__)


class ShareStateManager:
    """All operations on share partitions; `runtime` is that of `__share_group_state`."""

    def __init__(self, runtime: CoordinatorRuntime[ShareShard], cold_after_ms: int = COLD_AFTER_MS) -> None:
        self.runtime = runtime
        self._cold_after_ms = cold_after_ms

    def initialize(self, key: ShareKey, state_epoch: int, start_offset: int, done: Done) -> None:
        """Begin a share partition. 124 where it has a higher state epoch."""
        self._write(key, lambda shard: shard.initialize(key, state_epoch, start_offset), done)

    def read(self, key: ShareKey, leader_epoch: int, done: Done) -> None:
        """Its state, for the leader at this epoch; 74 where a later one has read."""
        self._write(key, lambda shard: shard.read(key, leader_epoch), done)

    def write(self, key: ShareKey, write: StateWrite, done: Done) -> None:
        """Keep a change; 74 and 124 for epochs that are out of date."""
        self._write(key, lambda shard: shard.write(key, write), done)

    def delete(self, key: ShareKey, done: Done) -> None:
        """Forget it."""
        self._write(key, lambda shard: shard.delete(key), done)

    def summary(self, key: ShareKey, done: Done) -> None:
        """Where it stands."""
        self._write(key, lambda shard: shard.summary(key), done)

    def topics_deleted(self, topic_ids: Sequence[bytes]) -> None:
        """Forget all share partitions of topics that are no more."""
        ids = frozenset(topic_ids)
        self._over_all(lambda shard: shard.of_topics(ids), lambda shard, keys: shard.end(keys))

    def repeat_cold_snapshots(self) -> None:
        """Write anew the state of share partitions whose snapshot is old, so that the log can be cut."""
        self._over_all(
            lambda shard: shard.cold(self._cold_after_ms), lambda shard, keys: shard.repeat_snapshots(keys)
        )

    def needed_from(self) -> list[tuple[int, int]]:
        """(partition, offset) of the topic's partitions served here: what lies before is not needed."""
        found = []
        for partition in self.runtime.active_partitions():
            offset = self.runtime.read(partition, ShareShard.needed_from)
            if offset is not None:
                found.append((partition, offset))
        return found

    def _write(self, key: ShareKey, operation: Callable[[ShareShard], Result[Answer]], done: Done) -> None:
        def decided(error: ErrorCode, answer: Answer | None) -> None:
            done(Answer(error) if answer is None else answer)

        try:
            partition = self.runtime.partition_for(key.text())
        except CoordinatorError as refused:
            decided(refused.error, None)
            return
        self.runtime.write(partition, operation, decided)

    def _over_all(self, choose: _Choose, step: _Step) -> None:
        for partition in self.runtime.active_partitions():
            keys = self.runtime.read(partition, choose)
            if keys:
                self._in_steps(partition, keys, step)

    def _in_steps(self, partition: int, keys: Sequence[ShareKey], step: _Step) -> None:
        """One batch after the other, each when the one before is committed."""

        def decided(error: ErrorCode, count: int | None) -> None:
            if count is None:
                _log.warning("Upkeep of %s-%d ends: %s", self.runtime.topic, partition, error.message)
            elif left := keys[count:]:
                self._in_steps(partition, left, step)

        self.runtime.write(partition, lambda shard: step(shard, keys), decided)
