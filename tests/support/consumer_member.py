"""A member of a consumer group (KIP-848) that sends its heartbeats by hand, for conformance tests.

    with ConsumerMember(servers, "g", topics=["t"]) as member:
        member.join()                   # epoch 0
        member.beat(owned=member.has)   # the epoch it was given last

It remembers its epoch and its assignment from what it is answered. `owned` is topic id to partitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from protocol import messages as m
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

Owned = Mapping[bytes, Sequence[int]]
LEAVE, STATIC_LEAVE = -1, -2


class ConsumerMember:
    """One member, with a connection of its own."""

    def __init__(
        self,
        servers: str,
        group: str,
        member_id: str,
        topics: Sequence[str] | None = (),
        *,
        regex: str | None = None,
        instance_id: str | None = None,
        assignor: str | None = None,
        rebalance_timeout_ms: int = 30_000,
    ) -> None:
        self.wire = WireClient(servers, "wire")
        self.group, self.id, self.topics, self.regex = group, member_id, topics, regex
        self.instance_id, self.assignor = instance_id, assignor
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.epoch = 0
        self.has: dict[bytes, list[int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wire.close()

    def beat(self, *, owned: Owned | None = None, version: int = 1, **fields: Any) -> Any:
        """A heartbeat; what `fields` leave out is unchanged."""
        parts = None
        if owned is not None:
            parts = [
                m.ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=list(numbers))
                for topic_id, numbers in owned.items()
            ]
        fields = {
            "member_id": self.id,
            "member_epoch": self.epoch,
            "instance_id": self.instance_id,
            **fields,
        }
        request = m.ConsumerGroupHeartbeatRequest(group_id=self.group, topic_partitions=parts, **fields)
        answer = self.wire.send(request, version)
        if not answer.error_code:
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                self.has = {each.topic_id: each.partitions for each in answer.assignment.topic_partitions}
        return answer

    def join(self, **fields: Any) -> Any:
        """The heartbeat that joins, with everything it has to say."""
        self.has = {}
        said = {
            "member_epoch": 0,
            "rebalance_timeout_ms": self.rebalance_timeout_ms,
            "subscribed_topic_names": None if self.topics is None else list(self.topics),
            "subscribed_topic_regex": self.regex,
            "server_assignor": self.assignor,
            **fields,
        }
        return self.beat(owned={}, **said)

    def leave(self, epoch: int = LEAVE) -> Any:
        """Go, for good or (-2) for a while."""
        return self.beat(member_epoch=epoch)

    def settle(self, *others: ConsumerMember) -> None:
        """Beat until nobody's epoch or assignment changes any more, at the newest target."""
        members = (self, *others)

        def settled() -> bool:
            for member in members:
                answer = member.beat(owned=member.has)
                assert answer.error_code == 0, answer
            group = self.describe()
            return group.group_state == "Stable" and all(
                member.epoch == group.assignment_epoch == group.group_epoch for member in members
            )

        wait_until(settled, "the group to be stable")

    def describe(self, version: int = 1) -> Any:
        """The group as ConsumerGroupDescribe shows it."""
        [group] = self.wire.send(m.ConsumerGroupDescribeRequest(group_ids=[self.group]), version).groups
        return group

    def partitions(self) -> list[int]:
        """The partitions of the one topic it has; none where it has nothing."""
        [numbers] = self.has.values() if self.has else [[]]
        return sorted(numbers)
