"""What the operations of consumer groups work with, apart from the group itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from coordinator.group.consumer.settings import ConsumerSettings
from coordinator.group.consumer.tables import ConsumerTables
from coordinator.group.consumer.watch import Watch
from coordinator.group.modern.ports import ShardParts
from coordinator.group.modern.steps import LongWork
from coordinator.ports import Topics
from protocol.uuids import uuid_to_text


@dataclass(slots=True)
class Environment:
    """`seen` is the version of the cluster's topics that a group's epoch takes account of; a group that is
    not in it looks again at the next heartbeat. `resolved` are the groups whose regular expressions have been
    resolved since the load. `assigning` are target assignments that take longer.
    """

    parts: ShardParts
    settings: ConsumerSettings
    tables: ConsumerTables
    watch: Watch
    assigning: LongWork
    seen: dict[str, int] = field(default_factory=dict)
    resolved: dict[str, None] = field(default_factory=dict)

    @property
    def topics(self) -> Topics:
        return self.parts.topics

    def forget(self, group_id: str) -> None:
        """The group is about to go. What is remembered beside its records is made again where it stays."""
        self.seen.pop(group_id, None)
        self.resolved.pop(group_id, None)
        self.assigning.forget(group_id)

    def now_ms(self) -> int:
        return self.parts.clock.now_ms()

    def new_member_id(self) -> str:
        """For members of old clients, which cannot make their own."""
        return uuid_to_text(self.parts.random.uuid())
