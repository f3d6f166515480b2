"""What time and the broker's settings do to classic groups (coordinators.md 3.2, 7.16 to 7.20, 7.24, 7.29).

One broker of each kind with short times serves this module. This process may stand still for longer than
those times. So what has to come within one waits at the broker behind the request before it, or a test looks
at how long it took.
"""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from protocol.errors import ErrorCode
from tests.support.group_member import PATIENT, Member, await_coordinator, await_members, settle
from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

NewMember = Callable[..., Member]
MAX_SIZE = 3
DELAY_MS = 300
SHORT_MS = 2000
SHORT_S = SHORT_MS / 1000
SETTINGS = {
    "group.initial.rebalance.delay.ms": str(DELAY_MS),
    "group.max.session.timeout.ms": "50000",
    "group.max.size": str(MAX_SIZE),
    "group.min.session.timeout.ms": "100",
    "offset.metadata.max.bytes": "10",
    "offsets.topic.num.partitions": "3",
}

_numbers = itertools.count()


@pytest.fixture(scope="module", params=[OttlaProcess, pytest.param(KafkaProcess, marks=pytest.mark.kafka)])
def broker(request: pytest.FixtureRequest) -> Iterator[OttlaProcess | KafkaProcess]:
    with request.param(overrides=SETTINGS) as running:
        yield running


@pytest.fixture(scope="module")
def servers(broker: OttlaProcess | KafkaProcess) -> str:
    return broker.bootstrap_servers


@pytest.fixture
def new_member(servers: str) -> Iterator[NewMember]:
    group = f"g{next(_numbers)}"
    with WireClient(servers) as wire:  # each partition of the offsets is loaded by itself
        await_coordinator(wire, group)
    with ExitStack() as members:
        yield lambda **fields: members.enter_context(Member(servers, group, **fields))


def gone(member: Member) -> bool:
    return member.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


@contextmanager
def stopped(broker: OttlaProcess | KafkaProcess) -> Iterator[None]:
    """What is sent within the block comes to the broker at once."""
    os.kill(broker.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(broker.pid, signal.SIGCONT)


def join_the_next(member: Member) -> Any:
    """The member's answer in a generation after its own, which a heartbeat tells of. Where it hears of that
    later than its rebalance timeout, it has been left behind itself, and comes as another one.
    """
    since = time.monotonic()

    def told() -> bool:
        nonlocal since
        asked = time.monotonic()
        answer = member.heartbeat()
        if answer == ErrorCode.NONE:
            since = asked
        return answer in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.UNKNOWN_MEMBER_ID)

    wait_until(told, "a rebalance")
    answer = member.join()
    if answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
        assert time.monotonic() - since > SHORT_S
        member.id = ""
        answer = member.enter()
    assert answer.error_code == ErrorCode.NONE
    return answer


@pytest.mark.parametrize("timeout_ms", [99, 50_001])
def test_the_bounds_of_sessions(new_member: NewMember, timeout_ms: int) -> None:
    assert new_member(session_timeout_ms=timeout_ms).join().error_code == ErrorCode.INVALID_SESSION_TIMEOUT


def test_an_unused_id_ends_with_its_session_and_the_join_phase_goes_on(new_member: NewMember) -> None:
    member, unused = new_member(), new_member(session_timeout_ms=SHORT_MS)
    settle(member)
    unused.get_id()
    answer = member.join()
    assert (answer.error_code, answer.generation_id) == (0, 2)
    assert unused.join().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_who_joins_within_the_initial_delay_is_in_the_first_generation(
    broker: OttlaProcess | KafkaProcess, new_member: NewMember
) -> None:
    members = [new_member() for _ in range(MAX_SIZE)]
    for member in members:
        member.get_id()
    with stopped(broker):
        posted = [member.post_join() for member in members]
    answers = [member.joined(join) for member, join in zip(members, posted, strict=True)]
    assert {answer.generation_id for answer in answers} == {1}
    assert sorted(len(answer.members) for answer in answers) == [0, 0, MAX_SIZE]


def test_the_initial_delay_ends_with_the_rebalance_timeout(new_member: NewMember) -> None:
    """One that would wait for a second time does not, as nothing of its time is left."""
    member = new_member(rebalance_timeout_ms=DELAY_MS // 2)
    assert member.enter().generation_id == 1


def test_one_that_does_not_join_again_is_left_behind(new_member: NewMember) -> None:
    leader, silent = new_member(), new_member(rebalance_timeout_ms=SHORT_MS)
    settle(leader, silent)
    leader.rebalance_timeout_ms = SHORT_MS
    answer = leader.join()
    assert (answer.error_code, len(answer.members)) == (0, 1)
    assert silent.join().error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_one_that_does_not_sync_is_left_behind(new_member: NewMember) -> None:
    leader, silent = (new_member(rebalance_timeout_ms=SHORT_MS) for _ in range(2))
    leader.enter(**PATIENT)
    silent_join = silent.post_enter()
    await_members(leader, 2)
    joining = leader.post_join()
    syncing = leader.post_sync({}, generation_id=2)
    beating = leader.post_heartbeat(generation_id=2)
    assert silent.joined(silent_join).generation_id == 2
    assert leader.joined(joining).leader == leader.id
    assert leader.wire.receive(syncing).error_code == 0
    assert leader.wire.receive(beating).error_code == ErrorCode.NONE
    assert len(join_the_next(leader).members) == 1
    assert gone(silent)


def test_a_leader_that_does_not_sync_is_left_behind(new_member: NewMember) -> None:
    leader, follower = (new_member(rebalance_timeout_ms=SHORT_MS) for _ in range(2))
    leader.enter(**PATIENT)
    joining = follower.post_enter()
    syncing = follower.post_sync(version=4, generation_id=2)
    again = follower.post_join()
    await_members(leader, 2)
    assert leader.join().leader == leader.id
    assert follower.joined(joining).generation_id == 2
    assert follower.wire.receive(syncing).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    answer = follower.joined(again)
    assert (answer.error_code, answer.leader, len(answer.members)) == (0, follower.id, 1)
    assert gone(leader)


def test_a_session_ends(new_member: NewMember) -> None:
    short, other = new_member(session_timeout_ms=SHORT_MS), new_member()
    settle(short, other)
    wait_until(lambda: other.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS, "the end of the session")
    assert gone(short)
    assert [member.member_id for member in other.describe().members] == [other.id]


def test_heartbeats_and_commits_keep_it(servers: str, new_member: NewMember) -> None:
    """Where a heartbeat comes too late for its session, it is done again."""
    with WireClient(servers) as wire:
        wire.create_topic("kept")

    def others_are_kept() -> bool:
        beating, committing = (new_member(session_timeout_ms=SHORT_MS) for _ in range(2))
        other = new_member(session_timeout_ms=2 * SHORT_MS)
        times = [time.monotonic()]
        settle(beating, committing, other)
        late: list[bool] = []

        def is_over() -> bool:
            times.append(time.monotonic())
            committed, beat = committing.commit("kept", 1), beating.heartbeat()
            late[:] = [time.monotonic() - times[-2] > SHORT_S]
            if late != [True]:
                assert committed in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)
                assert beat in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)
            return late == [True] or beat == ErrorCode.REBALANCE_IN_PROGRESS

        wait_until(is_over, "the end of the third session")
        if late == [True]:
            for member in (beating, committing, other):
                member.leave()
            return False
        assert gone(other)
        return True

    wait_until(others_are_kept, "heartbeats in time")


def test_a_parked_member_does_not_lose_its_session(new_member: NewMember) -> None:
    waiting, silent = new_member(), new_member(rebalance_timeout_ms=2 * SHORT_MS)
    settle(waiting, silent)
    waiting.protocols = [("range", b"changed")]
    waiting.session_timeout_ms, waiting.rebalance_timeout_ms = SHORT_MS, 2 * SHORT_MS
    joining = waiting.post_join()  # parked until the other one's rebalance timeout
    syncing = waiting.post_sync({}, generation_id=waiting.generation + 1)
    answer = waiting.joined(joining)
    assert (answer.error_code, len(answer.members)) == (0, 1)
    assert waiting.wire.receive(syncing).error_code == 0


def test_a_connection_that_breaks_in_the_join_phase_is_found_out_later(new_member: NewMember) -> None:
    """Its member takes part in the generation, and is removed because it never syncs."""
    member, lost = new_member(), new_member(rebalance_timeout_ms=SHORT_MS)
    settle(member)
    lost.post_enter()
    await_members(member, 2)
    lost.wire.close()
    member.rebalance_timeout_ms = SHORT_MS
    joining = member.post_join()
    syncing = member.post_sync({}, generation_id=2)
    answer = member.joined(joining)
    assert (answer.error_code, answer.generation_id, len(answer.members)) == (0, 2, 2)
    assert member.wire.receive(syncing).error_code == 0
    assert len(join_the_next(member).members) == 1


def test_a_static_member_ends_with_its_session_alone(new_member: NewMember) -> None:
    static, other = new_member(instance_id="i", session_timeout_ms=SHORT_MS), new_member()
    settle(static, other)
    wait_until(lambda: other.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS, "the end of the session")
    assert gone(static)
    again = new_member(instance_id="i")
    posted = again.post_join()
    wait_until(lambda: len(other.describe().members) == 2, "both members")
    other.join()
    assert again.joined(posted).error_code == 0


def test_a_full_group(new_member: NewMember) -> None:
    members = [new_member() for _ in range(MAX_SIZE)]
    settle(*members)
    answer = new_member().join()
    assert (answer.error_code, answer.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert new_member(instance_id="i").join().error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert {member.heartbeat() for member in members} == {ErrorCode.NONE}
    assert members[0].leave() == ErrorCode.NONE
    late = new_member()
    posted = late.post_enter()
    joins = [(member, member.post_join()) for member in members[1:]]
    assert {member.joined(join).error_code for member, join in joins} == {0}
    assert late.joined(posted).error_code == 0


def test_a_full_group_may_join_again(new_member: NewMember) -> None:
    members = [new_member() for _ in range(MAX_SIZE)]
    leader = settle(*members)
    leader.protocols = [("range", b"changed")]
    posted = {leader: leader.post_join()}
    wait_until(lambda: new_member().describe().group_state == "PreparingRebalance", "the rebalance")
    posted |= {member: member.post_join() for member in members if member is not leader}
    assert {member.joined(join).error_code for member, join in posted.items()} == {0}


def test_ids_that_are_not_used_take_no_room_in_the_join_phase(new_member: NewMember) -> None:
    ids = [new_member(session_timeout_ms=SHORT_MS) for _ in range(MAX_SIZE + 1)]
    assert {member.join().error_code for member in ids} == {ErrorCode.MEMBER_ID_REQUIRED}


def test_the_length_of_metadata(servers: str, new_member: NewMember) -> None:
    with WireClient(servers) as wire:
        wire.create_topic("described")
    member = new_member()
    assert member.commit("described", 1, "x" * 10) == ErrorCode.NONE
    assert member.commit("described", 1, "x" * 11) == ErrorCode.OFFSET_METADATA_TOO_LARGE
