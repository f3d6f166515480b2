"""ConsumerGroupHeartbeat and ConsumerGroupDescribe (KIP-848), by heartbeats made by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode as E
from tests.support.consumer_member import LEAVE, STATIC_LEAVE, ConsumerMember
from tests.support.group_member import create_for_groups
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

New = Callable[..., ConsumerMember]


def describe(wire: WireClient, group: str) -> Any:
    [found] = wire.send(m.ConsumerGroupDescribeRequest(group_ids=[group]), 1).groups
    return found


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        ({"member_id": ""}, E.INVALID_REQUEST),
        ({"member_id": "  "}, E.INVALID_REQUEST),
        ({"instance_id": ""}, E.INVALID_REQUEST),
        ({"rack_id": ""}, E.INVALID_REQUEST),
        ({"rebalance_timeout_ms": -1}, E.INVALID_REQUEST),
        ({"subscribed_topic_names": None}, E.INVALID_REQUEST),
        ({"member_epoch": -3}, E.INVALID_REQUEST),
        ({"member_epoch": STATIC_LEAVE}, E.INVALID_REQUEST),
        ({"server_assignor": "mine"}, E.UNSUPPORTED_ASSIGNOR),
        ({"subscribed_topic_regex": "(?!x)"}, E.INVALID_REGULAR_EXPRESSION),
        ({"subscribed_topic_regex": "["}, E.INVALID_REGULAR_EXPRESSION),
        ({"subscribed_topic_regex": r"(a)\1"}, E.INVALID_REGULAR_EXPRESSION),
    ],
)
def test_requests_that_are_wrong_whatever_the_group(
    member: New, wire: WireClient, name: str, fields: dict[str, Any], wanted: E
) -> None:
    answer = member().join(**fields)
    assert (answer.error_code, bool(answer.error_message)) == (wanted, True)
    assert describe(wire, name).error_code == E.GROUP_ID_NOT_FOUND


def test_who_joins_owns_nothing(member: New, topic_id: bytes) -> None:
    first = member()
    fields = {"rebalance_timeout_ms": 1000, "subscribed_topic_names": []}
    assert first.beat(owned={topic_id: [0]}, **fields).error_code == E.INVALID_REQUEST
    assert first.beat(owned=None, **fields).error_code == E.INVALID_REQUEST


def test_a_group_begins_with_its_first_member(member: New, topic_id: bytes) -> None:
    first = member("a")
    first.epoch = 5
    assert first.beat().error_code == E.GROUP_ID_NOT_FOUND
    assert first.leave().error_code == E.GROUP_ID_NOT_FOUND
    answer = first.join()
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (E.NONE, "a", 2)
    assert answer.heartbeat_interval_ms == 5000
    assert first.has == {topic_id: [0, 1, 2, 3]}
    stranger = member("b")
    stranger.epoch = 5
    assert stranger.beat().error_code == E.UNKNOWN_MEMBER_ID
    assert stranger.leave().error_code == E.UNKNOWN_MEMBER_ID


def test_version_0_gives_the_member_an_id(member: New) -> None:
    first = member("")
    answer = first.join(version=0)
    assert answer.error_code == E.NONE
    assert len(answer.member_id) == 22
    assert first.beat(version=0).error_code == E.INVALID_REQUEST


def test_a_member_without_topics_is_a_member(member: New) -> None:
    first = member(topics=())
    answer = first.join()
    assert (answer.error_code, answer.member_epoch) == (E.NONE, 1)
    assert answer.assignment.topic_partitions == []
    group = first.describe()
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 1, 1)


def test_an_assignment_is_sent_when_there_is_news(member: New, topic_id: bytes, name: str) -> None:
    first = member()
    assert first.join().assignment is not None
    assert first.beat().assignment is None
    assert first.beat(owned=first.has).assignment is None
    full = {"rebalance_timeout_ms": 30_000, "subscribed_topic_names": [name]}
    assert first.beat(owned=first.has, **full).assignment is not None


def test_epochs_that_are_not_the_members(member: New, topic_id: bytes) -> None:
    first, second = member("a"), member("b")
    first.join()
    second.join()
    first.settle(second)
    known, has = first.epoch, first.has
    assert first.beat(member_epoch=known + 1).error_code == E.FENCED_MEMBER_EPOCH
    assert first.beat(member_epoch=known - 1).error_code == E.FENCED_MEMBER_EPOCH
    assert first.beat(member_epoch=1, owned=has).error_code == E.FENCED_MEMBER_EPOCH
    previous = 2
    assert known == 3
    lost = first.beat(member_epoch=previous, owned=has)
    assert (lost.error_code, lost.member_epoch) == (E.NONE, known)
    gone = {topic_id: [0, 1, 2, 3]}
    assert first.beat(member_epoch=previous, owned=gone).error_code == E.FENCED_MEMBER_EPOCH
    again = first.join()
    assert (again.error_code, again.member_epoch, first.has) == (E.NONE, known, has)


def test_partitions_move_from_one_member_to_the_other_by_revocation(member: New, topic_id: bytes) -> None:
    first, second = member("a"), member("b")
    first.join()
    assert first.has == {topic_id: [0, 1, 2, 3]}
    second.join()
    wait_until(lambda: second.beat(owned={}).member_epoch == 3, "the target to be computed")
    assert second.has == {}
    assert second.describe().group_state == "Reconciling"
    told = first.beat(owned=first.has)
    assert (told.member_epoch, len(first.partitions())) == (2, 2)  # its epoch stays until it has revoked
    assert second.beat(owned={}).assignment is None
    still = first.beat(owned={topic_id: [0, 1, 2, 3]})
    assert (still.member_epoch, still.assignment) == (2, None)
    assert second.beat(owned={}).assignment is None
    assert first.beat(owned=first.has).member_epoch == 3
    assert second.beat(owned={}).assignment is not None
    assert sorted(first.partitions() + second.partitions()) == [0, 1, 2, 3]
    assert second.describe().group_state == "Stable"


def test_a_member_that_leaves_makes_room(member: New, topic_id: bytes, wire: WireClient, name: str) -> None:
    first, second = member("a"), member("b")
    first.join()
    second.join()
    first.settle(second)
    answer = second.leave()
    assert (answer.error_code, answer.member_id, answer.member_epoch) == (E.NONE, "b", LEAVE)
    assert second.leave().error_code == E.UNKNOWN_MEMBER_ID
    first.settle()
    assert first.partitions() == [0, 1, 2, 3]
    first.leave()
    group = describe(wire, name)
    assert (group.error_code, group.group_state, group.members) == (E.NONE, "Empty", [])


def test_what_describe_shows(member: New, topic_id: bytes, name: str) -> None:
    first = member("a", assignor="range")
    first.join(rack_id="r1")
    group = first.describe()
    [shown] = group.members
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 2, 2)
    assert group.assignor_name == "range"
    assert group.authorized_operations == -(2**31)
    asked = m.ConsumerGroupDescribeRequest(group_ids=[name], include_authorized_operations=True)
    assert first.wire.send(asked, 0).groups[0].authorized_operations == 3400
    assert (shown.member_id, shown.instance_id, shown.rack_id) == ("a", None, "r1")
    assert (shown.member_epoch, shown.client_id, shown.client_host) == (2, "wire", "/127.0.0.1")
    assert (shown.subscribed_topic_names, shown.subscribed_topic_regex) == ([name], "")
    assert shown.member_type == 1
    [assigned] = shown.assignment.topic_partitions
    assert (assigned.topic_id, assigned.topic_name, sorted(assigned.partitions)) == (
        topic_id, name, [0, 1, 2, 3],
    )  # fmt: skip
    assert len(shown.target_assignment.topic_partitions) == 1


def test_what_others_show_of_a_consumer_group(member: New, wire: WireClient, name: str) -> None:
    member("a").join()
    listed = wire.send(m.ListGroupsRequest(types_filter=["consumer"]), 5).groups
    [shown] = [each for each in listed if each.group_id == name]
    assert (shown.protocol_type, shown.group_state, shown.group_type) == ("consumer", "Stable", "consumer")
    [old] = wire.send(m.DescribeGroupsRequest(groups=[name]), 5).groups
    assert (old.error_code, old.group_state) == (E.NONE, "Dead")
    [new] = wire.send(m.DescribeGroupsRequest(groups=[name]), 6).groups
    assert new.error_code == E.GROUP_ID_NOT_FOUND
    [deleted] = wire.send(m.DeleteGroupsRequest(groups_names=[name]), 2).results
    assert deleted.error_code == E.NON_EMPTY_GROUP


def test_an_empty_group_can_be_deleted(member: New, wire: WireClient, name: str) -> None:
    first = member("a")
    first.join()
    first.leave()
    [deleted] = wire.send(m.DeleteGroupsRequest(groups_names=[name]), 2).results
    assert deleted.error_code == E.NONE
    assert describe(wire, name).error_code == E.GROUP_ID_NOT_FOUND
    assert first.join().member_epoch == 2


def test_the_range_assignor_gives_runs_and_co_partitions(member: New, wire: WireClient, name: str) -> None:
    create_for_groups(wire, f"{name}-other", 4)
    topics = [name, f"{name}-other"]
    first, second = member("a", topics, assignor="range"), member("b", topics, assignor="range")
    first.join()
    second.join()
    first.settle(second)
    assert sorted(map(tuple, map(sorted, first.has.values()))) == [(0, 1), (0, 1)]
    assert sorted(map(tuple, map(sorted, second.has.values()))) == [(2, 3), (2, 3)]


def test_new_partitions_are_assigned(member: New, wire: WireClient, name: str) -> None:
    first = member("a")
    first.join()
    grow = m.CreatePartitionsRequest
    topics = [grow.CreatePartitionsTopic(name=name, count=6, assignments=None)]
    [grown] = wire.send(grow(topics=topics, timeout_ms=30_000), 3).results
    assert grown.error_code == E.NONE
    wait_until(lambda: first.beat().member_epoch == 3, "a new epoch")
    assert first.partitions() == [0, 1, 2, 3, 4, 5]


def test_a_topic_that_is_made_later_is_assigned(member: New, wire: WireClient, name: str) -> None:
    first = member("a", [f"{name}-later"])
    assert first.join().member_epoch == 2
    assert first.has == {}
    wire.create_topic(f"{name}-later", 2)
    wait_until(lambda: first.beat().member_epoch == 3, "a new epoch")
    assert first.partitions() == [0, 1]


def test_a_regular_expression_matches_whole_names_and_is_resolved_soon(
    member: New, wire: WireClient, name: str, topic_id: bytes
) -> None:
    create_for_groups(wire, f"{name}-longer")
    first = member("a", None, regex=f"{name[:-1]}.*{name[-1]}")
    answer = first.join()
    assert (answer.error_code, answer.member_epoch) == (E.NONE, 1)
    assert answer.assignment.topic_partitions == []
    wait_until(lambda: first.beat().member_epoch == 2, "the expression to be resolved")
    assert first.has == {topic_id: [0, 1, 2, 3]}
    [shown] = first.describe().members
    assert shown.subscribed_topic_regex == first.regex
    assert first.beat(subscribed_topic_regex="(").error_code == E.INVALID_REGULAR_EXPRESSION


def test_a_regular_expression_matches_internal_topics_too(member: New) -> None:
    first = member("a", None, regex="__consumer_off.*")
    first.join()
    wait_until(lambda: first.beat().member_epoch == 2, "the expression to be resolved")
    assert len(first.partitions()) > 0


def test_names_and_a_regular_expression_together(
    member: New, wire: WireClient, name: str, topic_id: bytes
) -> None:
    other = create_for_groups(wire, f"{name}-longer")
    first = member("a", [name], regex=f"{name}-l.*")
    assert first.join().member_epoch == 2
    assert list(first.has) == [topic_id]
    wait_until(lambda: first.beat().member_epoch == 3, "the expression to be resolved")
    assert first.has == {topic_id: [0, 1, 2, 3], other: [0]}
    first.beat(subscribed_topic_regex="")
    first.settle()
    assert first.has == {topic_id: [0, 1, 2, 3]}
    wait_until(lambda: first.describe().group_epoch == 4, "the group to go on")


def test_unsubscribed_topics_are_taken_back_at_once(
    member: New, wire: WireClient, name: str, topic_id: bytes
) -> None:
    other = create_for_groups(wire, f"{name}-other")
    first = member("a", [name, f"{name}-other"])
    first.join()
    assert first.has == {topic_id: [0, 1, 2, 3], other: [0]}
    answer = first.beat(owned=first.has, subscribed_topic_names=[name])
    assert (answer.error_code, first.has) == (E.NONE, {topic_id: [0, 1, 2, 3]})
    first.settle()


def test_a_static_member_comes_back_without_a_rebalance(member: New, topic_id: bytes) -> None:
    first, second = member("a", instance_id="one"), member("b", instance_id="two")
    first.join()
    second.join()
    first.settle(second)
    epoch, has = first.describe().group_epoch, first.has
    early = member("c", instance_id="one")
    assert early.join().error_code == E.UNRELEASED_INSTANCE_ID
    assert first.join().error_code == E.UNRELEASED_INSTANCE_ID
    first.epoch = epoch
    first.has = has
    answer = first.leave(STATIC_LEAVE)
    assert (answer.error_code, answer.member_epoch) == (E.NONE, STATIC_LEAVE)
    back = member("d", instance_id="one")
    answer = back.join()
    assert (answer.error_code, answer.member_epoch, back.has) == (E.NONE, epoch, has)
    assert back.describe().group_epoch == epoch
    first.epoch = epoch
    assert first.beat().error_code == E.FENCED_INSTANCE_ID
    assert first.leave().error_code == E.FENCED_INSTANCE_ID
    stranger = member("e", instance_id="three")
    stranger.epoch = epoch
    assert stranger.beat().error_code == E.UNKNOWN_MEMBER_ID


def test_a_static_member_that_leaves_for_good(member: New, topic_id: bytes) -> None:
    first, second = member("a", instance_id="one"), member("b")
    first.join()
    second.join()
    first.settle(second)
    assert first.leave(LEAVE).error_code == E.NONE
    second.settle()
    assert second.partitions() == [0, 1, 2, 3]
