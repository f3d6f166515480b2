"""Members of the classic protocol in plays of consumer groups."""

from __future__ import annotations

from typing import Any

from coordinator.group.classic import events as ev
from protocol import messages as m
from protocol.errors import ErrorCode as E
from tests.unit.coordinator.group.consumer.play import Play


def subscription(*topics: str, owned: dict[str, list[int]] | None = None) -> bytes:
    part = m.ConsumerProtocolSubscription.TopicPartition
    parts = [part(topic=topic, partitions=numbers) for topic, numbers in (owned or {}).items()]
    return b"\0\1" + m.ConsumerProtocolSubscription(topics=list(topics), owned_partitions=parts).encode(1)


def assignment(topic: str, *partitions: int, user_data: bytes | None = None) -> bytes:
    part = m.ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=list(partitions))
    message = m.ConsumerProtocolAssignment(assigned_partitions=[part], user_data=user_data)
    return b"\0\1" + message.encode(1)


def partitions_of(data: bytes) -> list[int]:
    read, _ = m.ConsumerProtocolAssignment.decode(1, data, 2)
    return sorted(number for each in read.assigned_partitions for number in each.partitions)


class ClassicClient:
    """One member that knows its id and generation."""

    def __init__(
        self, play: Play, *topics: str, instance_id: str | None = None, protocol_type: str = "consumer"
    ) -> None:
        self.play, self.topics, self.instance_id = play, topics, instance_id
        self.protocol_type = protocol_type
        self.id, self.generation = "", -1
        self.protocols: tuple[tuple[str, bytes], ...] = (("range", subscription(*topics)),)

    def post_join(self, version: int = 9, **fields: Any) -> list[Any]:
        """A JoinGroup; its answers, perhaps later."""
        said: dict[str, Any] = {
            "version": version,
            "member_id": self.id,
            "session_timeout_ms": 30_000,
            "rebalance_timeout_ms": 20_000,
            "protocol_type": self.protocol_type,
            "protocols": self.protocols,
            "instance_id": self.instance_id,
            **fields,
        }
        return self.play.classic(lambda token: ev.JoinGroup(token, **said))

    def take(self, answers: list[Any]) -> Any:
        (answer,) = answers
        if answer.error_code in (E.NONE, E.MEMBER_ID_REQUIRED):
            self.id = answer.member_id
        if answer.error_code == E.NONE:
            self.generation = answer.generation_id
        return answer

    def join(self, **fields: Any) -> Any:
        answer = self.take(self.post_join(**fields))
        if answer.error_code == E.MEMBER_ID_REQUIRED:
            answer = self.take(self.post_join(**fields))
        return answer

    def rejoin(self, topic: str, owned: list[int]) -> list[int]:
        """Join with what it still has, and sync; what it gets."""
        self.protocols = (("range", subscription(*self.topics, owned={topic: owned} if owned else {})),)
        assert self.join().error_code == E.NONE
        answer = self.sync()
        assert answer.error_code == E.NONE
        return partitions_of(answer.assignment)

    def post_sync(self, given: dict[str, bytes] | None = None) -> list[Any]:
        return self.play.classic(
            lambda token: ev.SyncGroup(
                token, 5, self.id, self.generation, self.instance_id, "consumer", "range", given
            )
        )

    def sync(self, given: dict[str, bytes] | None = None) -> Any:
        (answer,) = self.post_sync(given)
        return answer

    def heartbeat(self) -> E:
        (answer,) = self.play.classic(
            lambda token: ev.Heartbeat(token, 4, self.id, self.generation, self.instance_id)
        )
        return E(answer.error_code)

    def leave(self) -> E:
        (answer,) = self.play.classic(
            lambda token: ev.LeaveGroup(token, 5, (ev.LeavingMember(self.id, self.instance_id),))
        )
        return E(answer.members[0].error_code)


def stable(play: Play, *clients: ClassicClient, user_data: bytes | None = None) -> None:
    """A Stable classic group whose members share the four partitions of "t"."""
    first = clients[0]
    first.join()
    posted = []
    for client in clients[1:]:
        client.take(client.post_join())
        posted.append((client, client.post_join()))
    if posted:
        posted.append((first, first.post_join()))
    for client, answers in posted:
        client.take(answers)
    each = 4 // len(clients)
    given = {
        client.id: assignment("t", *range(at * each, (at + 1) * each), user_data=user_data)
        for at, client in enumerate(clients)
    }
    synced = [client.post_sync(given if client is first else None) for client in reversed(clients)]
    assert [answers[0].error_code for answers in synced] == [E.NONE] * len(clients)
