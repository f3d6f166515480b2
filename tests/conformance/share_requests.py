"""Requests to a share coordinator about one group and one topic."""

from __future__ import annotations

import itertools
from typing import Any

from protocol import messages as m
from protocol.uuids import uuid_to_text
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

STATE_TOPIC = "__share_group_state"
SHARE = 2
_groups = itertools.count()


def find(wire: WireClient, *keys: str) -> list[Any]:
    request = m.FindCoordinatorRequest(key_type=SHARE, coordinator_keys=list(keys))
    return list(wire.send(request, 6).coordinators)


class Share:
    """Requests about one group and one topic of two partitions."""

    def __init__(self, wire: WireClient, topic_id: bytes) -> None:
        self.wire, self.topic_id, self.group = wire, topic_id, f"share-{next(_groups)}"

    def key(self, partition: int = 0) -> str:
        return f"{self.group}:{uuid_to_text(self.topic_id)}:{partition}"

    def _send(self, cls: Any, entry: str, version: int, *partitions: Any, **fields: Any) -> list[Any]:
        topic = getattr(cls, entry)(topic_id=fields.pop("topic_id", self.topic_id), partitions=partitions)
        response = self.wire.send(cls(group_id=self.group, topics=[topic]), version)
        return [each for result in response.results for each in result.partitions]

    def initialize(self, partition: int = 0, state_epoch: int = 0, start: int = 0, **fields: Any) -> Any:
        cls = m.InitializeShareGroupStateRequest
        data = cls.PartitionData(partition=partition, state_epoch=state_epoch, start_offset=start)
        [result] = self._send(cls, "InitializeStateData", 0, data, **fields)
        return result

    def read(self, leader_epoch: int = 0, partition: int = 0, **fields: Any) -> Any:
        cls = m.ReadShareGroupStateRequest
        data = cls.PartitionData(partition=partition, leader_epoch=leader_epoch)
        [result] = self._send(cls, "ReadStateData", 0, data, **fields)
        return result

    def write(
        self,
        *batches: tuple[int, int, int, int],
        start: int = 0,
        leader_epoch: int = 0,
        state_epoch: int = 0,
        complete: int = -1,
        partition: int = 0,
        version: int = 1,
        **fields: Any,
    ) -> Any:
        cls = m.WriteShareGroupStateRequest
        data = cls.PartitionData(
            partition=partition,
            state_epoch=state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start,
            delivery_complete_count=complete,
            state_batches=[
                cls.StateBatch(
                    first_offset=first, last_offset=last, delivery_state=state, delivery_count=count
                )
                for first, last, state, count in batches
            ],
        )
        [result] = self._send(cls, "WriteStateData", version, data, **fields)
        return result

    def delete(self, partition: int = 0, **fields: Any) -> Any:
        cls = m.DeleteShareGroupStateRequest
        [result] = self._send(cls, "DeleteStateData", 0, cls.PartitionData(partition=partition), **fields)
        return result

    def summary(self, partition: int = 0, version: int = 1, **fields: Any) -> Any:
        cls = m.ReadShareGroupStateSummaryRequest
        data = cls.PartitionData(partition=partition, leader_epoch=0)
        [result] = self._send(cls, "ReadStateSummaryData", version, data, **fields)
        return result

    def batches(self, leader_epoch: int = 0) -> list[tuple[int, int, int, int]]:
        found = self.read(leader_epoch)
        assert found.error_code == 0, found
        return [
            (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
            for each in found.state_batches
        ]

    def wait(self) -> None:
        """Until there is a coordinator that serves; Kafka answers 15 until it has made its topic."""
        wait_until(lambda: find(self.wire, self.key())[0].error_code == 0, "a coordinator")
        wait_until(lambda: self.summary().error_code == 0, "a loaded coordinator")
