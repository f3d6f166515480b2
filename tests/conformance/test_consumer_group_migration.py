"""Groups that change their protocol while they have members: classic to consumer and back (KIP-848)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode as E
from tests.support.consumer_member import ConsumerMember
from tests.support.group_member import Member, form, reach
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

New = Callable[..., ConsumerMember]
NewClassic = Callable[..., Member]


def embedded(topic: str, *partitions: int) -> bytes:
    """A member's assignment."""
    part = m.ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=list(partitions))
    return b"\x00\x01" + m.ConsumerProtocolAssignment(assigned_partitions=[part]).encode(1)


def owning(topic: str, partitions: list[int]) -> bytes:
    """A subscription of a cooperative consumer that has partitions."""
    part = m.ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=partitions)
    parts = [part] if partitions else []
    return b"\x00\x01" + m.ConsumerProtocolSubscription(topics=[topic], owned_partitions=parts).encode(1)


def partitions_of(assignment: bytes) -> list[int]:
    read, _ = m.ConsumerProtocolAssignment.decode(0, assignment, 2)
    return sorted(number for each in read.assigned_partitions for number in each.partitions)


def group_type(wire: WireClient, group: str) -> str:
    [found] = [each for each in wire.send(m.ListGroupsRequest(), 5).groups if each.group_id == group]
    return str(found.group_type)


@pytest.fixture
def classic(new_member: NewClassic, name: str) -> NewClassic:
    """Makes members of the classic protocol that subscribe to the test's topic."""
    return lambda **fields: new_member(**{"protocols": (("range", owning(name, [])),), **fields})


def stable(name: str, *members: Member) -> None:
    """Bring classic members into a group that has shared four partitions in equal parts."""
    leader = form(*members)
    each = 4 // len(members)
    parts = {
        member.id: embedded(name, *range(at * each, (at + 1) * each)) for at, member in enumerate(members)
    }
    posted = [(member, member.post_sync(parts if member is leader else None)) for member in members]
    for member, sync in posted:
        assert member.wire.receive(sync).error_code == E.NONE
    reach(members[0], "Stable")


def rejoin(member: Member, name: str, owned: list[int]) -> Any:
    """Join again as a consumer that still has these partitions; its new assignment."""
    member.protocols = (("range", owning(name, owned)),)
    answer = member.join()
    assert answer.error_code == E.NONE, answer
    assert (answer.leader, answer.members, answer.protocol_type) == ("", [], "consumer")
    synced = member.sync()
    assert synced.error_code == E.NONE, synced
    return partitions_of(synced.assignment)


def test_a_classic_group_goes_on_as_a_consumer_group_and_back(
    classic: NewClassic, member: New, wire: WireClient, name: str
) -> None:
    one, two = classic(), classic()
    stable(name, one, two)
    assert group_type(wire, name) == "classic"
    three = member("three")
    answer = three.join()
    assert answer.error_code == E.NONE
    assert group_type(wire, name) == "consumer"
    wait_until(lambda: three.beat(owned=three.has).member_epoch == two.generation + 1, "the target")
    shown = {each.member_id: each.member_type for each in three.describe().members}
    assert shown == {one.id: 0, two.id: 0, "three": 1}
    assert (one.heartbeat(), two.heartbeat()) == (E.REBALANCE_IN_PROGRESS,) * 2
    has = {one: [0, 1], two: [2, 3]}
    for each in (one, two):
        has[each] = rejoin(each, name, has[each])
    for each in (one, two):
        if each.heartbeat() == E.REBALANCE_IN_PROGRESS:
            has[each] = rejoin(each, name, has[each])

    def shared() -> bool:
        assert three.beat(owned=three.has).error_code == E.NONE
        return sorted(has[one] + has[two] + three.partitions()) == [0, 1, 2, 3]

    wait_until(shared, "all to have their part")
    assert (one.heartbeat(), two.heartbeat()) == (E.NONE, E.NONE)
    assert one.heartbeat(generation_id=one.generation + 1) == E.ILLEGAL_GENERATION
    assert one.commit(name, 5) == E.NONE
    assert one.commit(name, 5, generation_id_or_member_epoch=one.generation + 1) == E.ILLEGAL_GENERATION
    assert three.leave().error_code == E.NONE
    assert group_type(wire, name) == "classic"
    assert {each.member_id for each in one.describe().members} == {one.id, two.id}
    assert one.describe().group_state == "PreparingRebalance"
    for each in (one, two):
        each.protocols = (("range", owning(name, [])),)
    posted = [(each, each.post_join()) for each in (one, two)]
    for each, join in posted:
        assert each.joined(join).error_code == E.NONE


def test_parked_requests_of_a_group_that_changes(
    classic: NewClassic, member: New, wire: WireClient, name: str
) -> None:
    one, two = classic(), classic()
    leader = form(one, two)
    [follower] = [each for each in (one, two) if each is not leader]
    posted = follower.post_sync()
    wait_until(lambda: leader.describe().group_state == "CompletingRebalance", "the second phase")
    new = member("new")
    assert new.join().error_code == E.NONE
    assert follower.wire.receive(posted).error_code == E.REBALANCE_IN_PROGRESS
    assert leader.sync({leader.id: b""}).error_code in (E.NONE, E.REBALANCE_IN_PROGRESS)


@pytest.mark.parametrize("protocol_type", ["connect", "consumer"])
def test_groups_that_cannot_change(
    new_member: NewClassic, member: New, name: str, protocol_type: str
) -> None:
    """Another protocol type, or bytes that are no subscription."""
    one = new_member(protocol_type=protocol_type, protocols=(("range", b"?"),))
    form(one)
    assert member("new").join().error_code == E.GROUP_ID_NOT_FOUND
    assert one.describe().group_state == "CompletingRebalance"


def test_an_empty_classic_group_changes(
    classic: NewClassic, member: New, wire: WireClient, name: str
) -> None:
    one = classic()
    form(one)
    one.leave()
    reach(one, "Empty")
    assert member("new").join().member_epoch == 2
    assert group_type(wire, name) == "consumer"


def test_an_empty_consumer_group_changes(
    classic: NewClassic, member: New, wire: WireClient, name: str
) -> None:
    new = member("new")
    new.join()
    new.leave()
    one = classic()
    form(one)
    assert group_type(wire, name) == "classic"
    assert new.describe().error_code == E.GROUP_ID_NOT_FOUND


def test_a_classic_member_joins_a_consumer_group(
    classic: NewClassic, member: New, wire: WireClient, name: str
) -> None:
    new = member("new")
    new.join()
    one = classic()
    one.get_id()
    answer = one.join()
    assert (answer.error_code, answer.leader, answer.protocol_name) == (E.NONE, "", "range")
    wait_until(lambda: new.beat(owned=new.has).member_epoch == 3, "a new target")
    new.beat(owned=new.has)

    def takes_part() -> bool:
        if one.heartbeat() == E.REBALANCE_IN_PROGRESS:
            return len(rejoin(one, name, [])) == 2
        return False

    wait_until(takes_part, "the classic member to get its part")
    assert one.leave() == E.NONE
    assert one.heartbeat() == E.UNKNOWN_MEMBER_ID


def test_classic_requests_that_a_consumer_group_refuses(classic: NewClassic, member: New, name: str) -> None:
    new = member("new")
    new.join()
    one = classic(protocol_type="connect")
    assert one.join().error_code == E.INCONSISTENT_GROUP_PROTOCOL
    one = classic()
    one.id, one.generation, one.protocol = "new", new.epoch, "range"
    assert one.heartbeat() == E.UNKNOWN_MEMBER_ID
    assert one.sync().error_code == E.UNKNOWN_MEMBER_ID
    one.id = "stranger"
    assert one.heartbeat() == E.UNKNOWN_MEMBER_ID
    assert one.sync().error_code == E.UNKNOWN_MEMBER_ID
    assert one.leave() == E.UNKNOWN_MEMBER_ID
    one.id = "new"
    assert one.leave() == E.NONE  # administrators remove members so
    assert new.beat().error_code == E.UNKNOWN_MEMBER_ID


def test_a_static_member_comes_back_as_a_classic_one(
    classic: NewClassic, member: New, wire: WireClient, name: str
) -> None:
    new = member("new", instance_id="one")
    new.join()
    new.leave(-2)
    one = classic(instance_id="one")
    answer = one.join()
    assert answer.error_code == E.NONE
    assert group_type(wire, name) == "classic"
    assert partitions_of(one.sync().assignment) == [0, 1, 2, 3]
    assert one.heartbeat() == E.NONE


def test_a_static_classic_member_comes_back_as_a_consumer(
    classic: NewClassic, member: New, wire: WireClient, name: str
) -> None:
    one = classic(instance_id="one")
    stable(name, one)
    new = member("new", instance_id="one")
    answer = new.join()
    assert (answer.error_code, new.partitions()) == (E.NONE, [0, 1, 2, 3])
    assert group_type(wire, name) == "consumer"
    assert one.heartbeat() == E.FENCED_INSTANCE_ID
    [shown] = new.describe().members
    assert (shown.member_id, shown.member_type) == ("new", 1)
