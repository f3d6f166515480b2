"""Reading an internal topic back from the logs of this broker, for coordinators that load their state.

A slice of a log is looked up on the loop, as for a fetch; its bytes, which may be cold and are up to the
buffer's size, are read by a thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.ports import ReadFailed
from runtime.blocking import BlockingBusy
from runtime.files import FileRegion
from storage.errors import StorageError

if TYPE_CHECKING:
    from replication.replica_manager import ReplicaManager
    from runtime.system import Env
    from storage.partition_log import PartitionLog


class TopicReader:
    """Implements `coordinator.ports.PartitionReader` for one topic."""

    def __init__(self, topic: str, env: Env, replicas: ReplicaManager) -> None:
        self._topic = topic
        self._env = env
        self._replicas = replicas

    def bounds(self, partition: int) -> tuple[int, int]:
        """Start and end of the local log: a new leader's log has all that was committed, and nothing that
        will not be. Raises ReadFailed.
        """
        log = self._log(partition)
        return log.start_offset, log.end_offset

    async def read(self, partition: int, offset: int, max_bytes: int) -> bytes:
        """See the port."""
        log = self._log(partition)
        try:
            found = log.read(offset, max_bytes, log.end_offset)
            if isinstance(found.data, FileRegion):
                return await self._env.run_blocking(found.to_bytes)
            return found.to_bytes()
        except (OSError, StorageError, BlockingBusy) as error:
            raise ReadFailed(f"{self._topic}-{partition} at offset {offset}: {error}") from error

    def _log(self, partition: int) -> PartitionLog:
        replica = self._replicas.get(self._topic, partition)
        if replica is None:
            error = self._replicas.error_of(self._topic, partition)
            raise ReadFailed(f"{self._topic}-{partition} is not on this broker: {error.message}")
        return replica.log
