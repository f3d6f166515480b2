"""What share groups write to `__consumer_offsets`: types, order and contents of records, as Kafka's.

Hashes and times are left out: only that they are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from protocol import messages as m
from tests.conformance.test_consumer_group_records import VALUES, Log, kinds
from tests.support.group_member import await_coordinator
from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.share_group_member import ShareGroupMember
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

New = Callable[..., ShareGroupMember]
ALL = [0, 1, 2, 3]
STATE = m.ShareGroupStatePartitionMetadataValue
VALUES.update(
    {
        10: m.ShareGroupMemberMetadataValue,
        11: m.ShareGroupMetadataValue,
        12: m.ShareGroupTargetAssignmentMetadataValue,
        13: m.ShareGroupTargetAssignmentMemberValue,
        14: m.ShareGroupCurrentMemberAssignmentValue,
        15: STATE,
    }
)


@pytest.fixture
def share_member(
    either_broker: OttlaProcess | KafkaProcess, name: str, topic_id: bytes, wire: WireClient
) -> Iterator[New]:
    """Makes members of a share group of the test's own, which subscribe to its topic."""
    await_coordinator(wire, name)
    with ExitStack() as members:
        yield lambda member_id="a", topics=(name,): members.enter_context(
            ShareGroupMember(either_broker.bootstrap_servers, name, member_id, topics)
        )


@pytest.fixture
def log(share_member: New, wire: WireClient, name: str) -> Log:
    """The log of the test's own group, from now on."""
    return Log(wire, name)


class Seen:
    """All records of the group since the test began, by type."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.news: list[tuple[int, str, Any]] = []

    def of(self, kind: int) -> list[Any]:
        self.news += self.log.news()
        return [value for seen, _, value in self.news if seen == kind]


def test_a_member_that_joins(share_member: New, log: Log, name: str, topic_id: bytes) -> None:
    seen = Seen(log)
    member = share_member()
    member.join(rack_id="r")
    wait_until(lambda: len(seen.of(15)) == 2, "initialized state")
    [said] = seen.of(10)
    assert said == m.ShareGroupMemberMetadataValue(
        rack_id="r", client_id="wire", client_host="/127.0.0.1", subscribed_topic_names=[name]
    )
    [epoch] = seen.of(11)
    assert (epoch.epoch, epoch.metadata_hash != 0) == (2, True)
    info = STATE.TopicPartitionsInfo(topic_id=topic_id, topic_name=name, partitions=ALL)
    first, second = seen.of(15)
    for value in (first, second):
        for each in (*value.initializing_topics, *value.initialized_topics):
            each.partitions.sort()
    assert first == STATE(initializing_topics=[info])
    assert second == STATE(initialized_topics=[info])
    member.settle({topic_id: ALL})
    target = m.ShareGroupTargetAssignmentMemberValue
    target_all = target(topic_partitions=[target.TopicPartition(topic_id=topic_id, partitions=ALL)])
    last = seen.of(13)[-1]
    for each in last.topic_partitions:
        each.partitions.sort()
    assert last == target_all
    made = seen.of(12)[-1]
    assert (made.assignment_epoch, made.assignment_timestamp > 0) == (3, True)
    current = m.ShareGroupCurrentMemberAssignmentValue
    now = seen.of(14)[-1]
    for each in now.assigned_partitions:
        each.partitions.sort()
    assert now == current(
        member_epoch=3,
        previous_member_epoch=2,
        state=0,
        assigned_partitions=[current.TopicPartitions(topic_id=topic_id, partitions=ALL)],
    )


def test_the_first_epochs(share_member: New, log: Log, name: str) -> None:
    seen = Seen(log)
    member = share_member()
    member.join()
    wait_until(lambda: bool(seen.of(14)) or member.beat() is None, "a current assignment")
    first = seen.of(14)[0]
    assert (first.member_epoch, first.previous_member_epoch, first.state) == (2, 0, 0)


def test_a_member_that_leaves(share_member: New, log: Log, topic_id: bytes) -> None:
    members = [share_member(each) for each in "ab"]
    for member in members:
        member.join()
    wait_until(
        lambda: (
            all(each.beat().member_epoch == members[0].epoch for each in members)
            and sum(len(each.has.get(topic_id, ())) for each in members) == 4
        ),
        "assignments",
    )
    log.news()
    members[0].leave()
    news = log.news()
    assert kinds(news) == [(14, "a", None), (13, "a", None), (10, "a", None), (11, "")]
    epoch = news[-1][2].epoch
    members[1].leave()
    news = log.news()
    last = [(14, "b", None), (13, "b", None), (10, "b", None), (11, ""), (12, "")]
    assert kinds(news[-5:]) == last
    assert (news[-2][2].epoch, news[-1][2].assignment_epoch) == (epoch + 1, epoch + 1)
    assert news[-1][2].assignment_timestamp == 0


def test_a_group_that_is_deleted(
    share_member: New, log: Log, wire: WireClient, name: str, topic_id: bytes
) -> None:
    member = share_member()
    member.join()
    member.settle({topic_id: ALL})
    member.leave()
    log.news()
    [result] = wire.send(m.DeleteGroupsRequest(groups_names=[name]), 2).results
    assert result.error_code == 0
    news = log.news()
    assert kinds(news) == [(15, ""), (12, "", None), (15, "", None), (11, "", None)]
    assert news[0][2] == STATE(deleting_topics=[STATE.TopicInfo(topic_id=topic_id, topic_name=name)])
