"""APIs 90 to 92 (describe, alter and delete offsets of share groups), and DeleteGroups of share groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode as E
from tests.support.group_member import await_coordinator, create_for_groups
from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.share_group_member import ShareGroupMember
from tests.support.share_member import ACCEPT, ShareMember
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

New = Callable[..., ShareGroupMember]
ALL = [0, 1, 2, 3]
NO_ID = bytes(16)
UNKNOWN = (E.UNKNOWN_TOPIC_OR_PARTITION, E.UNKNOWN_TOPIC_OR_PARTITION.message)


class Offsets:
    """Requests about the offsets of one group."""

    def __init__(self, wire: WireClient, group: str) -> None:
        self.wire, self.group = wire, group

    def alter(self, topics: Mapping[str, Mapping[int, int]], group: str | None = None) -> Any:
        request = m.AlterShareGroupOffsetsRequest
        asked = [
            request.AlterShareGroupOffsetsRequestTopic(
                topic_name=name,
                partitions=[
                    request.AlterShareGroupOffsetsRequestPartition(partition_index=index, start_offset=offset)
                    for index, offset in offsets.items()
                ],
            )
            for name, offsets in topics.items()
        ]
        return self.wire.send(request(group_id=self.group if group is None else group, topics=asked), 0)

    def start(self, topics: Mapping[str, Mapping[int, int]]) -> None:
        """Alter, again while a coordinator does not know a topic that was just made, and await the rows."""

        def accepted() -> bool:
            return all(error == 0 for error, _ in altered(self.alter(topics)).values())

        wait_until(accepted, "the coordinator to know the topics")
        count = sum(map(len, topics.values()))
        wait_until(lambda: len(self.rows()) == count, "initialized partitions")

    def describe(self, topics: Mapping[str, Sequence[int]] | None = None, version: int = 1) -> Any:
        request = m.DescribeShareGroupOffsetsRequest
        asked = None
        if topics is not None:
            asked = [
                request.DescribeShareGroupOffsetsRequestTopic(topic_name=name, partitions=list(indexes))
                for name, indexes in topics.items()
            ]
        group = request.DescribeShareGroupOffsetsRequestGroup(group_id=self.group, topics=asked)
        [found] = self.wire.send(request(groups=[group]), version).groups
        return found

    def rows(
        self, topics: Mapping[str, Sequence[int]] | None = None
    ) -> dict[tuple[str, int], tuple[int, int]]:
        """Start offset and lag of each partition."""
        found = self.describe(topics)
        assert (found.error_code, found.error_message) == (0, None)
        return {
            (topic.topic_name, row.partition_index): (row.start_offset, row.lag)
            for topic in found.topics
            for row in topic.partitions
        }

    def delete(self, *topics: str, group: str | None = None) -> Any:
        request = m.DeleteShareGroupOffsetsRequest
        asked = [request.DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in topics]
        return self.wire.send(request(group_id=self.group if group is None else group, topics=asked), 0)

    def delete_group(self) -> int:
        [result] = self.wire.send(m.DeleteGroupsRequest(groups_names=[self.group]), 2).results
        return int(result.error_code)

    def state(self) -> tuple[int, str]:
        [found] = self.wire.send(m.ShareGroupDescribeRequest(group_ids=[self.group]), 1).groups
        return (found.error_code, found.group_state)


def altered(answer: Any) -> dict[tuple[str, int], tuple[int, str | None]]:
    assert (answer.error_code, answer.error_message) == (0, None)
    return {
        (topic.topic_name, row.partition_index): (row.error_code, row.error_message)
        for topic in answer.responses
        for row in topic.partitions
    }


def deleted(answer: Any) -> dict[str, tuple[bytes, int, str | None]]:
    assert (answer.error_code, answer.error_message) == (0, None)
    return {
        topic.topic_name: (topic.topic_id, topic.error_code, topic.error_message)
        for topic in answer.responses
    }


@pytest.fixture
def offsets(wire: WireClient, name: str, topic_id: bytes) -> Offsets:
    """Of a group called as its topic, which has four partitions."""
    await_coordinator(wire, name)
    return Offsets(wire, name)


@pytest.fixture
def share_member(either_broker: OttlaProcess | KafkaProcess, offsets: Offsets, name: str) -> Iterator[New]:
    """Makes members of the group."""
    with ExitStack() as members:
        yield lambda member_id="a", topics=(name,): members.enter_context(
            ShareGroupMember(either_broker.bootstrap_servers, name, member_id, topics)
        )


def test_altering_makes_a_group(offsets: Offsets, name: str, topic_id: bytes) -> None:
    offsets.wire.produce_values(name, *[b"%d" % each for each in range(5)])
    answer = offsets.alter({name: {0: 3, 2: 0}})
    assert altered(answer) == {(name, 0): (0, None), (name, 2): (0, None)}
    [topic] = answer.responses
    assert topic.topic_id == topic_id
    wait_until(lambda: len(offsets.rows()) == 2, "initialized partitions")
    assert offsets.rows() == {(name, 0): (3, 2), (name, 2): (0, 0)}
    [group] = offsets.wire.send(m.ShareGroupDescribeRequest(group_ids=[name]), 1).groups
    assert (group.error_code, group.group_state, group.group_epoch) == (0, "Empty", 1)
    assert (group.assignment_epoch, group.assignor_name, group.members) == (1, "simple", [])
    assert altered(offsets.alter({name: {0: 1}})) == {(name, 0): (0, None)}
    assert offsets.rows({name: [0]}) == {(name, 0): (1, 4)}


def test_altering_what_is_not_there(offsets: Offsets, name: str) -> None:
    answer = offsets.alter({name + "-absent": {0: 0, 7: 1}})
    assert altered(answer) == {(name + "-absent", 0): UNKNOWN, (name + "-absent", 7): UNKNOWN}
    assert answer.responses[0].topic_id == NO_ID
    assert offsets.state()[0] == E.GROUP_ID_NOT_FOUND
    answer = offsets.alter({name: {0: 0, 4: 1}, name + "-absent": {0: 0}})
    assert altered(answer) == {
        (name, 0): (0, None),
        (name, 4): UNKNOWN,
        (name + "-absent", 0): UNKNOWN,
    }
    assert [topic.topic_name for topic in answer.responses] == [name + "-absent", name]
    assert offsets.state() == (0, "Empty")
    nothing = offsets.alter({})
    assert (nothing.error_code, nothing.responses) == (0, [])


def test_a_group_with_members_is_not_altered(
    offsets: Offsets, share_member: New, name: str, topic_id: bytes
) -> None:
    member = share_member()
    member.join()
    member.settle({topic_id: ALL})
    wanted = (E.NON_EMPTY_GROUP, E.NON_EMPTY_GROUP.message)
    for answer in (offsets.alter({name: {0: 0}}), offsets.delete(name)):
        assert (answer.error_code, answer.error_message) == wanted
        assert answer.responses == []
    assert offsets.delete_group() == E.NON_EMPTY_GROUP


def test_groups_of_other_types_are_not_altered(
    offsets: Offsets, member: Callable[..., Any], name: str
) -> None:
    member().join()
    text = f"Group {name} is not a share group."
    for answer in (offsets.alter({name: {0: 0}}), offsets.delete(name)):
        assert (answer.error_code, answer.error_message) == (E.GROUP_ID_NOT_FOUND, text)
    assert offsets.rows() == {}


def test_a_group_without_a_name(offsets: Offsets, name: str) -> None:
    for answer in (offsets.alter({name: {0: 0}}, group=""), offsets.delete(name, group="")):
        assert (answer.error_code, answer.responses) == (E.INVALID_GROUP_ID, [])


def test_describing(offsets: Offsets, share_member: New, name: str, topic_id: bytes) -> None:
    assert offsets.rows() == {}
    assert offsets.rows({}) == {}
    found = offsets.describe({name: [0, 3], name + "-absent": [1]})
    shown = {
        (topic.topic_name, topic.topic_id, row.partition_index): (
            row.start_offset,
            row.leader_epoch,
            row.lag,
            row.error_code,
            row.error_message,
        )
        for topic in found.topics
        for row in topic.partitions
    }
    nothing = (-1, 0, -1, 0, None)
    assert shown == {
        (name, topic_id, 0): nothing,
        (name, topic_id, 3): nothing,
        (name + "-absent", NO_ID, 1): nothing,
    }
    member = share_member()
    member.join()
    member.settle({topic_id: ALL})
    assert offsets.rows() == {(name, index): (-1, -1) for index in ALL}


def test_lag_follows_what_is_accepted(
    offsets: Offsets, share_member: New, wire: WireClient, name: str, topic_id: bytes
) -> None:
    wire.produce_values(name, *[b"%d" % each for each in range(10)])
    offsets.alter({name: dict.fromkeys(ALL, 0)})
    member = share_member()
    member.join()
    member.settle({topic_id: ALL})
    assert offsets.rows() == {(name, 0): (0, 10)} | {(name, index): (0, 0) for index in (1, 2, 3)}
    reader = ShareMember(wire, name, topic_id)

    def acquired() -> bool:
        return bool(reader.fetch().acquired)

    wait_until(acquired, "records")
    assert reader.acknowledge((0, 3, ACCEPT), (5, 6, ACCEPT)).error_code == 0
    assert offsets.rows({name: [0]}) == {(name, 0): (0, 4)}  # the start moves with a later write
    found = offsets.describe({name: [0]}, version=0)
    assert (found.topics[0].partitions[0].start_offset, found.topics[0].partitions[0].lag) == (0, -1)


def test_deleting_offsets(offsets: Offsets, wire: WireClient, name: str, topic_id: bytes) -> None:
    other = create_for_groups(wire, name + "-other")
    create_for_groups(wire, name + "-unread")
    offsets.start({name: {0: 0, 1: 0}, name + "-other": {0: 0}})
    answer = offsets.delete(name, name + "-unread", name + "-absent")
    assert deleted(answer) == {
        name: (topic_id, 0, None),
        name + "-unread": (
            NO_ID,
            E.UNKNOWN_TOPIC_OR_PARTITION,
            "There is no offset information to delete.",
        ),
        name + "-absent": (NO_ID, *UNKNOWN),
    }
    assert offsets.rows() == {(name + "-other", 0): (0, 0)}
    assert offsets.rows({name: [0]}) == {(name, 0): (-1, -1)}
    assert deleted(offsets.delete(name + "-other")) == {name + "-other": (other, 0, None)}
    assert offsets.rows() == {}
    assert offsets.state() == (0, "Empty")


def test_deleting_offsets_of_no_group(offsets: Offsets, name: str) -> None:
    answer = offsets.delete(name)
    assert (answer.error_code, answer.error_message) == (E.GROUP_ID_NOT_FOUND, f"Group {name} not found.")


def test_deleting_a_group(offsets: Offsets, share_member: New, name: str, topic_id: bytes) -> None:
    assert offsets.delete_group() == E.GROUP_ID_NOT_FOUND
    member = share_member()
    member.join()
    member.settle({topic_id: ALL})
    assert offsets.delete_group() == E.NON_EMPTY_GROUP
    member.leave()
    assert offsets.delete_group() == 0
    assert offsets.state()[0] == E.GROUP_ID_NOT_FOUND
    assert offsets.delete_group() == E.GROUP_ID_NOT_FOUND
    assert offsets.rows() == {}
    assert member.join().member_epoch == 2
    member.settle({topic_id: ALL})


def test_deleting_a_group_removes_its_state(offsets: Offsets, name: str) -> None:
    offsets.start({name: {0: 0}})
    assert offsets.delete_group() == 0
    assert offsets.rows({name: [0]}) == {(name, 0): (-1, -1)}


def test_a_deleted_topic_goes(offsets: Offsets, wire: WireClient, name: str) -> None:
    create_for_groups(wire, name + "-other")
    offsets.start({name: {0: 0}, name + "-other": {0: 0}})
    states = [m.DeleteTopicsRequest.DeleteTopicState(name=name + "-other", topic_id=NO_ID)]
    wire.send(m.DeleteTopicsRequest(topics=states, timeout_ms=30_000), 6)
    wait_until(lambda: offsets.rows() == {(name, 0): (0, 0)}, "the topic to go")
    wire.create_topic(name + "-other")
    assert offsets.rows({name + "-other": [0]}) == {(name + "-other", 0): (-1, -1)}
