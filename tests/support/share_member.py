"""A member of a share group at the level of requests, for one topic: fetches, acknowledges, counts the
epochs of its session.

    with WireClient(broker.bootstrap_servers) as wire:
        topic_id = wire.create_topic("t")
        initialize(wire, "g", topic_id)
        member = ShareMember(wire, "g", topic_id)
        member.fetch().acquired      # [(0, 9, 1)]
        member.acknowledge((0, 9, ACCEPT))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from protocol import messages as m
from protocol.uuids import uuid_to_text
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
STATE_TOPIC = "__share_group_state"

Ack = tuple[Any, ...]
"""First offset, last offset, then one type or one for each offset."""


def initialize(
    wire: WireClient, group: str, topic_id: bytes, partitions: int = 1, start_offset: int = 0
) -> None:
    """Have the share coordinator know the partitions, as the group coordinator does for a member's topics."""
    key = f"{group}:{uuid_to_text(topic_id)}:0"
    find = m.FindCoordinatorRequest(key_type=2, coordinator_keys=[key])
    wait_until(lambda: wire.send(find, 6).coordinators[0].error_code == 0, "a share coordinator")
    request = m.InitializeShareGroupStateRequest
    data = [
        request.PartitionData(partition=index, state_epoch=0, start_offset=start_offset)
        for index in range(partitions)
    ]
    body = request(group_id=group, topics=[request.InitializeStateData(topic_id=topic_id, partitions=data)])

    def done() -> bool:
        response = wire.send(body, 0)
        return all(each.error_code == 0 for topic in response.results for each in topic.partitions)

    wait_until(done, "initialized share partitions")


@dataclass
class Fetched:
    """An answer to ShareFetch; `rows` by partition."""

    response: Any

    @property
    def error(self) -> int:
        return int(self.response.error_code)

    @property
    def rows(self) -> dict[int, Any]:
        return {row.partition_index: row for topic in self.response.responses for row in topic.partitions}

    @property
    def acquired(self) -> list[tuple[int, int, int]]:
        """Of partition 0: first offset, last offset, delivery count."""
        row = self.rows.get(0)
        return ranges_of(row) if row is not None else []


def ranges_of(row: Any) -> list[tuple[int, int, int]]:
    return [(each.first_offset, each.last_offset, each.delivery_count) for each in row.acquired_records]


def _batches(request: Any, acks: Sequence[Ack]) -> list[Any]:
    return [
        request.AcknowledgementBatch(first_offset=ack[0], last_offset=ack[1], acknowledge_types=list(ack[2:]))
        for ack in acks
    ]


class ShareMember:
    """See the module."""

    def __init__(
        self, wire: WireClient, group: str, topic_id: bytes, member_id: str = "ann", partitions: int = 1
    ) -> None:
        self.wire, self.group, self.topic_id, self.member_id = wire, group, topic_id, member_id
        self.partitions = partitions
        self.epoch = 0

    def fetch_request(
        self,
        *acks: Ack,
        epoch: int | None = None,
        partitions: Sequence[int] | None = None,
        forget: Sequence[int] = (),
        **fields: Any,
    ) -> m.ShareFetchRequest:
        """The next fetch, with acknowledgements of partition 0. The first one names all partitions."""
        request = m.ShareFetchRequest
        epoch = self.epoch if epoch is None else epoch
        if partitions is None:
            partitions = range(self.partitions) if epoch == 0 else [0] if acks else []
        places = [
            request.FetchPartition(
                partition_index=index, acknowledgement_batches=_batches(request, acks if index == 0 else ())
            )
            for index in partitions
        ]
        forgotten = (
            [request.ForgottenTopic(topic_id=self.topic_id, partitions=list(forget))] if forget else []
        )
        limits = {
            "max_wait_ms": 500,
            "min_bytes": 1,
            "max_bytes": 1 << 20,
            "max_records": 500,
            "batch_size": 500,
            "group_id": self.group,
            "member_id": self.member_id,
            **fields,
        }
        topics = [request.FetchTopic(topic_id=self.topic_id, partitions=places)] if places else []
        return request(share_session_epoch=epoch, topics=topics, forgotten_topics_data=forgotten, **limits)

    def fetch(self, *acks: Ack, version: int = 2, **fields: Any) -> Fetched:
        found = Fetched(self.wire.send(self.fetch_request(*acks, **fields), version))
        if found.error == 0 and fields.get("epoch") is None:
            self.epoch += 1
        return found

    def fetch_until(self, enough: int = 1, **fields: Any) -> list[tuple[int, int, int]]:
        """Fetch until so many ranges were acquired; Kafka's first answers may be empty."""
        ranges: list[tuple[int, int, int]] = []

        def more() -> bool:
            ranges.extend(self.fetch(**fields).acquired)
            return len(ranges) >= enough

        wait_until(more, "records")
        return ranges

    def acknowledge(self, *acks: Ack, version: int = 2, epoch: int | None = None, **fields: Any) -> Any:
        """Acknowledge records of partition 0; the whole answer."""
        request = m.ShareAcknowledgeRequest
        place = request.AcknowledgePartition(
            partition_index=0, acknowledgement_batches=_batches(request, acks)
        )
        topics = [request.AcknowledgeTopic(topic_id=self.topic_id, partitions=[place])] if acks else []
        body = request(
            **{
                "group_id": self.group,
                "member_id": self.member_id,
                "share_session_epoch": self.epoch if epoch is None else epoch,
                "topics": topics,
                **fields,
            }
        )
        answer = self.wire.send(body, version)
        if answer.error_code == 0 and epoch is None:
            self.epoch += 1
        return answer

    def ack_error(self, *acks: Ack, **fields: Any) -> int:
        """The error of partition 0."""
        answer = self.acknowledge(*acks, **fields)
        assert answer.error_code == 0, answer
        return int(answer.responses[0].partitions[0].error_code)
