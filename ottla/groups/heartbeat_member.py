"""One member of a group of the newer protocol (KIP-848): the broker assigns, heartbeats carry everything.

A heartbeat's answer says what the member is to have. Its owner gives up what is not in it any more when it
calls join(), which tells the coordinator so; only then another member gets those partitions. What stays is
never interrupted. The member makes its id, and keeps it when it has to begin anew.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ottla.client import KafkaClient
from ottla.groups.admin import Place
from ottla.groups.membership import CountPartitions, Membership
from protocol import messages as m
from protocol.errors import ErrorCode

JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH = 0, -1, -2
FIRST_INTERVAL_MS = 1000

Told = Mapping[bytes, tuple[int, ...]]  # partitions by topic id


@dataclass(slots=True)
class HeartbeatMemberSettings:
    """What a consumer's properties say of its membership; times in ms. The broker decides about sessions."""

    group_id: str
    rebalance_timeout_ms: int = 300_000
    instance_id: str | None = None
    remote_assignor: str | None = None


class HeartbeatMember(Membership):
    """See the module. `generation` is the member's epoch."""

    keeps = True
    first_generation = JOIN_EPOCH
    unknown = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH)
    again = (ErrorCode.STALE_MEMBER_EPOCH,)

    def __init__(self, client: KafkaClient, settings: HeartbeatMemberSettings) -> None:
        super().__init__(client, settings.group_id, settings.instance_id)
        self.settings = settings
        self.member_id = str(uuid.uuid4())
        self._told: Told = {}
        self._beats_every_ms = FIRST_INTERVAL_MS
        self._names: dict[bytes, str] = {}

    def _join_once(
        self, topics: Sequence[str], partition_counts: CountPartitions, deadline: float | None
    ) -> list[Place]:
        """Says what the member wants and has, until it has what it is told to have."""
        if self.generation == JOIN_EPOCH:
            self._told = {}
        while True:
            had = self._told
            self._take(
                self._ask(
                    rebalance_timeout_ms=self.settings.rebalance_timeout_ms,
                    subscribed_topic_names=sorted(topics),
                    server_assignor=self.settings.remote_assignor,
                    topic_partitions=[
                        m.ConsumerGroupHeartbeatRequest.TopicPartitions(
                            topic_id=each, partitions=list(numbers)
                        )
                        for each, numbers in had.items()
                    ],
                )
            )
            if self._told == had:
                return self._places(topics)

    def _places(self, topics: Sequence[str]) -> list[Place]:
        """Topics by their names; one that has gone meanwhile is left out."""
        if not self._told.keys() <= self._names.keys():
            found = self._client.metadata(topics) if topics else []
            self._names.update({each.topic_id: each.name or "" for each in found})
        return [
            (self._names[topic_id], number)
            for topic_id, numbers in self._told.items()
            if topic_id in self._names
            for number in numbers
        ]

    def _say_farewell(self) -> None:
        """A static member may come back."""
        if self.generation > JOIN_EPOCH:
            self.generation = LEAVE_EPOCH if self._instance_id is None else STATIC_LEAVE_EPOCH
            self._ask()

    def _interval_ms(self) -> int:
        return self._beats_every_ms

    def _beat(self) -> None:
        if self.generation == JOIN_EPOCH:
            return  # join() is the next sign of life
        had = self._told
        self._take(self._ask())
        if self._told != had:
            self.rejoins = True

    def _ask(self, **said: Any) -> m.ConsumerGroupHeartbeatResponse:
        """A heartbeat; what is left out is as before. Raises ClientError."""
        fields: dict[str, Any] = {"topic_partitions": None, "subscribed_topic_names": None, **said}
        answer: m.ConsumerGroupHeartbeatResponse = self._coordinators.ask(
            self.group_id,
            m.ConsumerGroupHeartbeatRequest(
                group_id=self.group_id,
                member_id=self.member_id,
                member_epoch=self.generation,
                instance_id=self._instance_id,
                **fields,
            ),
        )
        self._coordinators.check(self.group_id, answer.error_code, answer.error_message)
        return answer

    def _take(self, answer: m.ConsumerGroupHeartbeatResponse) -> None:
        self.generation = answer.member_epoch
        self._beats_every_ms = answer.heartbeat_interval_ms
        if answer.assignment is not None:
            self._told = {
                each.topic_id: tuple(sorted(each.partitions)) for each in answer.assignment.topic_partitions
            }
