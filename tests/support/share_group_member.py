"""A member of a share group (KIP-932) that sends its heartbeats by hand.

    with ShareGroupMember(servers, "g", "a", ["t"]) as member:
        member.join()                   # epoch 0
        member.settle({topic_id: [0]})  # heartbeats until it has these partitions
        member.leave()

It remembers its epoch and its assignment from what it is answered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from protocol import messages as m
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

JOIN, LEAVE = 0, -1


class ShareGroupMember:
    """One member, with a connection of its own."""

    def __init__(self, servers: str, group: str, member_id: str, topics: Sequence[str] = ()) -> None:
        self.wire = WireClient(servers, "wire")
        self.group, self.id, self.topics = group, member_id, topics
        self.epoch = JOIN
        self.has: dict[bytes, list[int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.wire.close()

    def beat(self, **fields: Any) -> Any:
        """A heartbeat; what `fields` leave out is unchanged."""
        fields = {"group_id": self.group, "member_id": self.id, "member_epoch": self.epoch, **fields}
        answer = self.wire.send(m.ShareGroupHeartbeatRequest(**fields), 1)
        if answer.error_code == 0 and answer.member_epoch >= 0:
            self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.has = {each.topic_id: each.partitions for each in answer.assignment.topic_partitions}
        return answer

    def join(self, **fields: Any) -> Any:
        """The first heartbeat."""
        return self.beat(**{"member_epoch": JOIN, "subscribed_topic_names": list(self.topics), **fields})

    def leave(self) -> Any:
        """The last one."""
        return self.beat(member_epoch=LEAVE)

    def settle(self, wanted: Mapping[bytes, Sequence[int]]) -> None:
        """Send heartbeats until the member has these partitions."""

        def has() -> bool:
            assert self.beat().error_code == 0
            return {topic_id: sorted(each) for topic_id, each in self.has.items()} == dict(wanted)

        wait_until(has, f"an assignment of {wanted}")
