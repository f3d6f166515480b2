"""StopReplica: a replica leaves this broker, with or without its log.

A request carries the leader epoch under which it was decided. An older one is refused (74), but for two
values: -2, while the topic is being deleted, and -1, from controllers that do not send any. A partition that
is not here is stopped already; its log may still lie here from before a restart, and goes with `delete`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.cluster.control_fence import ControlFence
from replication.cluster.replicas import ClusterReplicas

EPOCH_DURING_DELETE, NO_EPOCH = -2, -1
AT_ONCE = 16

_Stopped = tuple[str, int, int, bool]


class StopReplica:
    """Serves StopReplica."""

    def __init__(self, replicas: ClusterReplicas, fence: ControlFence) -> None:
        self._replicas = replicas
        self._fence = fence

    async def handle(self, request: m.StopReplicaRequest) -> m.StopReplicaResponse:
        """Apply the request; the error of each partition."""
        wanted = list(_wanted(request))
        errors: list[ErrorCode] = []
        async with self._fence.lock:
            error = self._fence.check(request)
            for number, (topic, index, epoch, delete) in enumerate(wanted, 1):
                refused = error if error != ErrorCode.NONE else self._refusal(topic, index, epoch)
                stop = refused == ErrorCode.NONE
                errors.append(self._replicas.stop(topic, index, delete) if stop else refused)
                if number % AT_ONCE == 0:
                    await asyncio.sleep(0)
        return m.StopReplicaResponse(
            error_code=error,
            partition_errors=[
                m.StopReplicaResponse.StopReplicaPartitionError(
                    topic_name=topic, partition_index=index, error_code=answer
                )
                for (topic, index, _, _), answer in zip(wanted, errors, strict=True)
            ],
        )

    def _refusal(self, topic: str, index: int, epoch: int) -> ErrorCode:
        partition = self._replicas.get(topic, index)
        if partition is None:
            offline = (topic, index) in self._replicas.failed
            return ErrorCode.KAFKA_STORAGE_ERROR if offline else ErrorCode.NONE
        if partition.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if epoch not in (EPOCH_DURING_DELETE, NO_EPOCH) and epoch < partition.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.NONE


def _wanted(request: m.StopReplicaRequest) -> Iterator[_Stopped]:
    """(topic, partition, leader epoch, delete), as each version has it."""
    for topic in request.topic_states:
        for state in topic.partition_states:
            yield topic.topic_name, state.partition_index, state.leader_epoch, state.delete_partition
    for named in request.topics:  # v1-2
        for index in named.partition_indexes:
            yield named.name, index, NO_EPOCH, request.delete_partitions
    for each in request.ungrouped_partitions:  # v0
        yield each.topic_name, each.partition_index, NO_EPOCH, request.delete_partitions
