"""What consumer groups write to `__consumer_offsets`: types, order and contents of records, as Kafka's.

Hashes and times are left out: only that they are there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coordinator.placement import partition_for
from coordinator.ports import TopicFacts
from protocol import messages as m
from protocol.records.batch import batches, records
from tests.support.consumer_member import STATIC_LEAVE, ConsumerMember
from tests.support.group_member import Member, form
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient
from tests.unit.coordinator.group.consumer.play import Play

New = Callable[..., ConsumerMember]
VALUES: dict[int, Any] = {
    2: m.GroupMetadataValue,
    3: m.ConsumerGroupMetadataValue,
    5: m.ConsumerGroupMemberMetadataValue,
    6: m.ConsumerGroupTargetAssignmentMetadataValue,
    7: m.ConsumerGroupTargetAssignmentMemberValue,
    8: m.ConsumerGroupCurrentMemberAssignmentValue,
    16: m.ConsumerGroupRegularExpressionValue,
}


class Log:
    """The group's records, told since the last look."""

    def __init__(self, wire: WireClient, group: str) -> None:
        self.wire, self.group = wire, group
        [topic] = wire.metadata("__consumer_offsets").topics
        self.partition = partition_for(group, len(topic.partitions))
        self.offset = wire.list_offset("__consumer_offsets", -1, self.partition).offset

    def news(self) -> list[tuple[int, str, Any]]:
        """(type, second part of the key, value or None) of each new record of this group."""
        answer = self.wire.fetch("__consumer_offsets", self.offset, self.partition)
        found = []
        data = bytes(answer.records or b"")
        for at, _ in batches(data):
            for record in records(data, at):
                if record.offset < self.offset:
                    continue
                self.offset = record.offset + 1
                key = record.key
                kind, length = int.from_bytes(key[:2], "big"), int.from_bytes(key[2:4], "big")
                if key[4 : 4 + length].decode() == self.group and kind in VALUES:
                    name = key[6 + length :].decode()
                    found.append((kind, name, _value(kind, record.value)))
        return found


def _value(kind: int, value: bytes | None) -> Any:
    if value is None:
        return None
    read, end = VALUES[kind].decode(int.from_bytes(value[:2], "big"), value, 2)
    assert end == len(value)
    return read


@pytest.fixture
def log(member: New, wire: WireClient, name: str) -> Log:
    """The log of the test's own group, from now on."""
    return Log(wire, name)


def kinds(news: list[tuple[int, str, Any]]) -> list[tuple[int, str] | tuple[int, str, None]]:
    return [(kind, name, None) if value is None else (kind, name) for kind, name, value in news]


def test_a_member_that_joins(member: New, log: Log, name: str, topic_id: bytes) -> None:
    member("a", assignor="range").join(rack_id="r")
    news = log.news()
    assert kinds(news) == [(5, "a"), (3, ""), (7, "a"), (6, ""), (8, "a")]
    said, epoch, target, made, current = (value for _, _, value in news)
    assert said == m.ConsumerGroupMemberMetadataValue(
        instance_id=None,
        rack_id="r",
        client_id="wire",
        client_host="/127.0.0.1",
        subscribed_topic_names=[name],
        subscribed_topic_regex="",
        rebalance_timeout_ms=30_000,
        server_assignor="range",
        classic_member_metadata=None,
    )
    assert (epoch.epoch, epoch.metadata_hash != 0) == (2, True)
    part = m.ConsumerGroupTargetAssignmentMemberValue.TopicPartition
    assert target.topic_partitions == [part(topic_id=topic_id, partitions=[0, 1, 2, 3])]
    assert (made.assignment_epoch, made.assignment_timestamp > 0) == (2, True)
    part = m.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions
    given = part(topic_id=topic_id, partitions=[0, 1, 2, 3], assignment_epochs=[2, 2, 2, 2])
    assert current == m.ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=2,
        previous_member_epoch=0,
        state=0,
        assigned_partitions=[given],
        partitions_pending_revocation=[],
    )


def test_steps_of_a_reconciliation(member: New, log: Log, topic_id: bytes) -> None:
    first, second = member("a"), member("b")
    first.join()
    log.news()
    second.join()
    wait_until(lambda: second.beat(owned={}).member_epoch == 3, "the target to be computed")
    news = log.news()
    assert [(kind, name) for kind, name, _ in news if kind != 8] == [
        (5, "b"), (3, ""), *sorted((kind, name) for kind, name, _ in news if kind == 7), (6, ""),
    ]  # fmt: skip
    [waits] = [value for kind, _, value in news if kind == 8 and value.member_epoch == 3]
    assert (waits.state, waits.assigned_partitions) == (2, [])
    first.beat(owned=first.has)
    [(_, _, told)] = log.news()
    assert (told.member_epoch, told.previous_member_epoch, told.state) == (2, 2, 1)
    assert [len(each.partitions) for each in told.partitions_pending_revocation] == [2]
    assert told.partitions_pending_revocation[0].assignment_epochs == [2, 2]
    first.beat(owned=first.has)
    [(_, _, done)] = log.news()
    assert (done.member_epoch, done.previous_member_epoch, done.state) == (3, 2, 0)
    assert done.assigned_partitions[0].assignment_epochs == [2, 2]
    second.beat(owned={})
    [(_, _, got)] = log.news()
    assert (got.member_epoch, got.previous_member_epoch, got.state) == (3, 3, 0)
    assert got.assigned_partitions[0].assignment_epochs == [3, 3]


def test_a_member_that_leaves_and_a_group_that_is_deleted(member: New, log: Log, name: str) -> None:
    first = member("a")
    first.join()
    log.news()
    first.leave()
    news = log.news()
    assert kinds(news) == [(8, "a", None), (7, "a", None), (5, "a", None), (3, ""), (6, "")]
    assert (news[4][2].assignment_epoch, news[4][2].assignment_timestamp) == (3, 0)
    first.wire.send(m.DeleteGroupsRequest(groups_names=[name]), 2)
    assert kinds(log.news()) == [(6, "", None), (3, "", None)]


def test_a_static_member_that_goes_for_a_while(member: New, log: Log) -> None:
    first = member("a", instance_id="i")
    first.join()
    log.news()
    first.leave(STATIC_LEAVE)
    [(kind, _, away)] = log.news()
    assert (kind, away.member_epoch, away.previous_member_epoch, away.state) == (8, STATIC_LEAVE, 0, 0)
    assert away.assigned_partitions[0].assignment_epochs == [0, 0, 0, 0]
    back = member("b", instance_id="i")
    back.join()
    news = log.news()
    assert kinds(news) == [
        (8, "a", None), (7, "a", None), (5, "a", None), (5, "b"), (7, "b"), (8, "b"), (8, "b"),
    ]  # fmt: skip
    standings = [value for kind, _, value in news if kind == 8 and value is not None]
    assert [(each.member_epoch, each.previous_member_epoch) for each in standings] == [(0, 0), (2, 0)]
    assert standings[1].assigned_partitions[0].assignment_epochs == [0, 0, 0, 0]


def test_a_regular_expression(member: New, log: Log, name: str) -> None:
    first = member("a", None, regex=name)
    first.join()
    wait_until(lambda: first.beat().member_epoch == 2, "the expression to be resolved")
    news = log.news()
    assert kinds(news) == [
        (5, "a"), (8, "a"), (16, name), (3, ""), (7, "a"), (6, ""), (8, "a"),
    ]  # fmt: skip
    assert (news[0][2].subscribed_topic_regex, news[2][2].topics) == (name, [name])
    first.leave()
    assert kinds(log.news()) == [
        (8, "a", None), (7, "a", None), (5, "a", None), (16, name, None), (3, ""), (6, ""),
    ]  # fmt: skip


def test_what_was_written_is_loaded_as_it_was(member: New, wire: WireClient, log: Log, name: str) -> None:
    """Our coordinator reads the partition, whoever wrote it, and shows the group as its broker does."""
    first, second = member("a", instance_id="i"), member("b", regex=f"{name}.*")
    first.join()
    second.join()
    first.settle(second)
    member("c").join()
    first.beat()
    [facts] = wire.metadata(name).topics
    play = Play({})
    play.topics.facts[name] = TopicFacts(name, facts.topic_id, len(facts.partitions))
    shown = first.describe()

    def is_all() -> bool:
        """Expressions and targets are found out meanwhile: whether the log is that of what is shown."""
        nonlocal shown
        before = shown
        play.topic.logs[0] = wire.stored_batches("__consumer_offsets", log.partition)
        shown = first.describe()
        return bool(shown == before)

    wait_until(is_all, "a log that nobody writes to")
    play.restart()
    loaded = play.shard.consumer.described(name)
    for group in (shown, loaded):
        group.members.sort(key=lambda each: each.member_id)
        for each in group.members:
            for part in (*each.assignment.topic_partitions, *each.target_assignment.topic_partitions):
                part.partitions.sort()
    assert loaded == shown


def test_a_classic_group_that_changes_and_changes_back(
    member: New, new_member: Callable[..., Member], log: Log, name: str, topic_id: bytes
) -> None:
    subscription = b"\0\0" + m.ConsumerProtocolSubscription(topics=[name]).encode(0)
    one = new_member(protocols=(("range", subscription),))
    form(one)
    part = m.ConsumerProtocolAssignment.TopicPartition(topic=name, partitions=[0, 1, 2, 3])
    given = b"\0\0" + m.ConsumerProtocolAssignment(assigned_partitions=[part]).encode(0)
    one.sync({one.id: given})
    log.news()
    new = member("new")
    new.join()
    news = log.news()
    split = next(at for at, (kind, name, _) in enumerate(news) if (kind, name) == (5, "new"))
    assert sorted(kinds(news[:split]), key=repr) == sorted(
        [(2, "", None), (3, ""), (5, one.id), (6, ""), (7, one.id), (8, one.id)], key=repr
    )
    old = {kind: value for kind, _, value in news[:split]}
    assert (old[3].epoch, old[6].assignment_epoch, old[8].member_epoch) == (1, 1, 1)
    assert old[8].previous_member_epoch == 1
    assert old[8].assigned_partitions[0].assignment_epochs == [1, 1, 1, 1]
    assert old[5].classic_member_metadata.session_timeout_ms == 30_000
    assert [each.name for each in old[5].classic_member_metadata.supported_protocols] == ["range"]
    assert news[split + 1][2].epoch == 2
    new.leave()
    news = log.news()
    gone = [(kind, name, None) for kind, name, value in news if value is None]
    assert len(gone) == len(news) - 1
    assert {(kind, name) for kind, name, _ in gone} >= {
        (8, one.id), (8, "new"), (7, one.id), (7, "new"), (6, ""), (5, one.id), (5, "new"), (3, ""),
    }  # fmt: skip
    kind, _, group = news[-1]
    assert (kind, group.generation, group.protocol_type, group.protocol) == (2, 2, "consumer", "range")
    assert [each.member_id for each in group.members] == [one.id]
    assert group.leader == one.id
