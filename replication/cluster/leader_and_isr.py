"""LeaderAndIsr: the controller gives this broker its roles.

A partition takes a state whose leader epoch is newer than its own; an equal or older one is answered with 11,
which the controller expects after it repeats itself. First all logs are made, then leaders are made, then
followers. Between some partitions the loop goes on; each of them changes in one stretch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.uuids import ZERO_UUID
from replication.cluster.control_fence import NO_EPOCH, ControlFence
from replication.cluster.replicas import ClusterReplicas
from replication.controller.slices import slices
from replication.metadata.image import PartitionImage
from replication.partition import Partition

TOPIC_ERRORS_FROM = 5
AT_ONCE = 16  # partitions whose role changes before others get the loop

_Request = m.LeaderAndIsrRequest
_Response = m.LeaderAndIsrResponse


@dataclass(slots=True)
class _Told:
    """One partition of the request, and what becomes of it."""

    topic: str
    topic_id: bytes
    state: PartitionImage
    is_new: bool
    partition: Partition | None = None
    error: ErrorCode = ErrorCode.NONE


class LeaderAndIsr:
    """Serves LeaderAndIsr. `told_epoch` is the registration for which roles came last, and `on_roles` hears
    of each request that was applied.
    """

    def __init__(self, replicas: ClusterReplicas, fence: ControlFence) -> None:
        self._replicas = replicas
        self._fence = fence
        self.told_epoch = NO_EPOCH
        self.on_roles: list[Callable[[], None]] = []

    async def handle(
        self, request: m.LeaderAndIsrRequest, version: int = _Request.MAX_VERSION
    ) -> m.LeaderAndIsrResponse:
        """Apply the request; the error of each partition."""
        told: list[_Told] = []
        async for some in slices(_told(request)):
            told += some
        async with self._fence.lock:
            error = self._fence.check(request)
            if error == ErrorCode.NONE:
                await self._apply(told)
                self.told_epoch = request.broker_epoch
                for listener in self.on_roles:
                    listener()
            else:
                for each in told:
                    each.error = error
        return _response(told, error, version)

    async def _apply(self, told: list[_Told]) -> None:
        self._replicas.learn_leaders(_by_topic(told))
        async for some in slices(told):
            for each in some:
                if self._check(each):
                    await asyncio.sleep(0)  # a log was made, which waits for the disk
        taken = [each for each in told if each.error == ErrorCode.NONE]
        node_id = self._replicas.node_id
        leaders = [each for each in taken if each.state.leader == node_id]
        followers = [each for each in taken if each.state.leader != node_id]
        await self._change(leaders, self._replicas.become_leader)
        await self._change(followers, self._replicas.become_follower)

    def _check(self, told: _Told) -> bool:
        """Find or make the partition, or set the error; whether a log was made."""
        replicas, state = self._replicas, told.state
        known = replicas.get(told.topic, state.index)
        if known is None and replicas.node_id not in state.replicas:
            told.error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return False
        hosted = replicas.host(told.topic, told.topic_id, state.index, told.is_new)
        if not isinstance(hosted, Partition):
            told.error = hosted
        elif state.leader_epoch <= hosted.leader_epoch:
            told.error = ErrorCode.STALE_CONTROLLER_EPOCH
        elif replicas.node_id not in state.replicas:
            told.error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            told.partition = hosted
        return known is None

    @staticmethod
    async def _change(taken: list[_Told], become: Callable[[Partition, PartitionImage], ErrorCode]) -> None:
        for number, each in enumerate(taken, 1):
            assert each.partition is not None, "a partition without an error is hosted"
            each.error = become(each.partition, each.state)
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)


def _told(request: m.LeaderAndIsrRequest) -> Iterator[_Told]:
    for topic in request.topic_states:
        for state in topic.partition_states:
            yield _Told(topic.topic_name, topic.topic_id, _image(state), state.is_new)
    for state in request.ungrouped_partition_states:  # up to v1
        yield _Told(state.topic_name, ZERO_UUID, _image(state), state.is_new)


def _by_topic(told: list[_Told]) -> dict[tuple[str, bytes], list[PartitionImage]]:
    topics: dict[tuple[str, bytes], list[PartitionImage]] = {}
    for each in told:
        topics.setdefault((each.topic, each.topic_id), []).append(each.state)
    return topics


def _image(state: m.LeaderAndIsrRequest.LeaderAndIsrPartitionState) -> PartitionImage:
    return PartitionImage(
        state.partition_index,
        state.leader,
        state.leader_epoch,
        state.partition_epoch,
        tuple(state.isr),
        tuple(state.replicas),
        tuple(state.adding_replicas),
        tuple(state.removing_replicas),
        state.leader_recovery_state != 0,
    )


def _response(told: list[_Told], error: ErrorCode, version: int) -> m.LeaderAndIsrResponse:
    response = m.LeaderAndIsrResponse(error_code=error)
    topics: dict[bytes, list[m.LeaderAndIsrResponse.LeaderAndIsrPartitionError]] = {}
    for each in told:
        answer = _Response.LeaderAndIsrPartitionError(
            topic_name=each.topic, partition_index=each.state.index, error_code=each.error
        )
        if version < TOPIC_ERRORS_FROM:
            response.partition_errors.append(answer)
        else:
            topics.setdefault(each.topic_id, []).append(answer)
    response.topics = [
        _Response.LeaderAndIsrTopicError(topic_id=topic_id, partition_errors=errors)
        for topic_id, errors in topics.items()
    ]
    return response
