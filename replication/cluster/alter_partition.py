"""Asks the controller to change ISRs (AlterPartition, KIP-497).

What leaders propose is collected; one request is in flight, and takes all that has come meanwhile. So of one
partition there is one change in flight at most. A request that the controller refuses as a whole, or that
finds no controller, is sent again after a pause: for ever, since a leader that gave up would not know what
is stored. A partition whose leadership has changed meanwhile throws the answer away.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.cluster.channel import Channel, ChannelLost, Channels
from replication.isr import IsrChange
from replication.leadership import IsrVerdict
from replication.partition import Partition

_log = logging.getLogger(__name__)

_Request = m.AlterPartitionRequest
EPOCHS_FROM, IDS_FROM = 3, 2
Key: TypeAlias = tuple[str, int]


@dataclass(slots=True, frozen=True)
class AlterSettings:
    """`timeout_s` is controller.socket.timeout.ms: a controller that was replaced may never answer."""

    broker_id: int
    version: int = 3
    retry_s: float = 0.05
    timeout_s: float = 30.0


class AlterPartitions:
    """Its `propose` is what leaders call (LeaderContext); `run` is the task that sends.

    `controller` tells the id of the controller, -1 where it is not known.
    """

    def __init__(
        self,
        settings: AlterSettings,
        channels: Channels,
        controller: Callable[[], int],
        broker_epoch: Callable[[], int],
    ) -> None:
        self._settings = settings
        self._channels = channels
        self._controller = controller
        self._broker_epoch = broker_epoch
        self._waiting: dict[Key, tuple[Partition, IsrChange]] = {}
        self._woken = asyncio.Event()
        self._channel: tuple[int, Channel] | None = None

    def propose(self, partition: Partition, change: IsrChange) -> None:
        """Send the change; it replaces one of the partition that has not been sent."""
        self._waiting[partition.topic, partition.index] = (partition, change)
        self._woken.set()

    async def run(self) -> None:
        """For ever, as a task."""
        try:
            while True:
                if not self._waiting:
                    self._woken.clear()
                    await self._woken.wait()
                if not await self.send():
                    await asyncio.sleep(self._settings.retry_s)
        finally:
            await self._leave()

    async def send(self) -> bool:
        """Send all that waits; False if it has to be sent again later."""
        sent, self._waiting = self._waiting, {}
        sent = {key: each for key, each in sent.items() if _is_pending(*each)}
        if not sent:
            return True
        answer = await self._ask(self.request(list(sent.values())))
        if answer is None:
            settled: dict[Key, IsrVerdict] = {}
        else:
            settled = _verdicts(answer, [partition for partition, _ in sent.values()])
        again = False
        for key, (partition, change) in sent.items():
            verdict = settled.get(key)
            leadership = partition.leadership
            if verdict is None or (leadership is not None and leadership.decided(change, verdict)):
                self._waiting.setdefault(key, (partition, change))
                again = True
        return not again

    async def _ask(self, request: m.AlterPartitionRequest) -> m.AlterPartitionResponse | None:
        """The controller's answer; None if there is none that counts."""
        controller = self._controller()
        if self._channel is not None and self._channel[0] != controller:
            await self._leave()
        if controller < 0:
            return None
        if self._channel is None:
            self._channel = (controller, self._channels.to(controller, "alter-partition"))
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                answer: m.AlterPartitionResponse = await self._channel[1].ask(request, self._settings.version)
        except (ChannelLost, TimeoutError) as lost:
            _log.info("Asking controller %d to change ISRs: %s", controller, lost)
            return None
        errors = [answer.error_code, *(p.error_code for t in answer.topics for p in t.partitions)]
        if ErrorCode.NOT_CONTROLLER in errors:
            await self._leave()  # and look for the new one
            return None
        if answer.error_code != ErrorCode.NONE:
            _log.info("The controller refuses to change ISRs: %s", ErrorCode(answer.error_code).name)
            return None
        return answer

    async def _leave(self) -> None:
        if self._channel is not None:
            _, channel = self._channel
            self._channel = None
            await channel.close()

    def request(self, changes: list[tuple[Partition, IsrChange]]) -> m.AlterPartitionRequest:
        """The request for these changes, at the version of the settings."""
        version = self._settings.version
        topics: dict[str, m.AlterPartitionRequest.TopicData] = {}
        for partition, change in changes:
            topic = topics.get(partition.topic)
            if topic is None:
                name = partition.topic if version < IDS_FROM else ""
                topic_id = partition.topic_id if version >= IDS_FROM else bytes(16)
                topic = topics[partition.topic] = _Request.TopicData(topic_name=name, topic_id=topic_id)
            topic.partitions.append(_partition_data(partition, change, version))
        return _Request(
            broker_id=self._settings.broker_id,
            broker_epoch=self._broker_epoch(),
            topics=list(topics.values()),
        )


def _partition_data(
    partition: Partition, change: IsrChange, version: int
) -> m.AlterPartitionRequest.PartitionData:
    """A leader always tells that it has recovered."""
    told = _Request.PartitionData(
        partition_index=partition.index,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
    )
    if version >= EPOCHS_FROM:
        told.new_isr_with_epochs = [
            _Request.BrokerState(broker_id=broker_id, broker_epoch=epoch)
            for broker_id, epoch in change.members
        ]
    else:
        told.new_isr = list(change.isr)
    return told


def _is_pending(partition: Partition, change: IsrChange) -> bool:
    return partition.leadership is not None and partition.leadership.pending is change


def _verdicts(answer: m.AlterPartitionResponse, asked: list[Partition]) -> dict[Key, IsrVerdict]:
    """The controller's verdict on each partition that it names."""
    names = {partition.topic_id: partition.topic for partition in asked}
    return {
        (topic.topic_name or names.get(topic.topic_id, ""), each.partition_index): IsrVerdict(
            ErrorCode(each.error_code), each.leader_epoch, each.partition_epoch, tuple(each.isr)
        )
        for topic in answer.topics
        for each in topic.partitions
    }
