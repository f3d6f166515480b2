"""What memberships have in common, seen through one that does as it is told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.client import ClientError, KafkaClient
from ottla.groups.membership import CONNECTIONS_TRIED, Membership
from protocol.errors import ErrorCode as E
from tests.support.waiting import wait_until
from tests.unit.ottla.groups.scripted_group import ScriptedGroup

LOST = ClientError("the connection is gone")


class Told(Membership):
    """Raises what stands in `joins` and `beats`, one by one."""

    keeps, first_generation = False, -1
    unknown, again = (E.UNKNOWN_MEMBER_ID,), (E.REBALANCE_IN_PROGRESS,)

    def __init__(self, client: KafkaClient) -> None:
        super().__init__(client, "g", None)
        self.joins: list[Exception] = []
        self.beats: list[Exception] = []
        self.beaten = self.farewells = 0

    def _join_once(self, topics, partition_counts, deadline):
        if self.joins:
            raise self.joins.pop(0)
        self.generation = 7
        return [("t", 0)]

    def _beat(self) -> None:
        self.beaten += 1
        if self.beats:
            raise self.beats.pop(0)

    def _interval_ms(self) -> int:
        return 10

    def _say_farewell(self) -> None:
        self.farewells += 1
        raise LOST


@pytest.fixture
def member() -> Iterator[Told]:
    with ScriptedGroup({}) as group, KafkaClient(group.address) as client:
        told = Told(client)
        yield told
        told.leave()


def refusal(error: E) -> ClientError:
    return ClientError(error.message, error)


def join(member: Told, timeout_s: float | None = None) -> list[tuple[str, int]]:
    return member.join(["t"], lambda topics: {}, timeout_s)


def test_a_join_is_tried_again_while_that_helps(member: Told) -> None:
    member.joins = [refusal(E.COORDINATOR_LOAD_IN_PROGRESS), LOST, refusal(E.UNKNOWN_MEMBER_ID)]
    assert join(member) == [("t", 0)]
    assert (member.rejoins, member.lost, member.generation) == (False, False, 7)


@pytest.mark.parametrize("error", [[LOST] * (CONNECTIONS_TRIED + 1), [refusal(E.GROUP_AUTHORIZATION_FAILED)]])
def test_and_given_up_where_it_does_not(member: Told, error: list[Exception]) -> None:
    member.joins = list(error)
    with pytest.raises(ClientError):
        join(member)


def test_time_that_is_over_is_a_timeout(member: Told) -> None:
    member.joins = [refusal(E.REBALANCE_IN_PROGRESS)] * 100
    with pytest.raises(TimeoutError):
        join(member, 0.05)


def test_beats_begin_with_the_first_join_and_go_on_after_a_broken_connection(member: Told) -> None:
    assert member.beaten == 0
    member.beats = [LOST, refusal(E.REBALANCE_IN_PROGRESS)]
    join(member)
    wait_until(lambda: member.beaten > 3, "more heartbeats")
    assert (member.rejoins, member.lost) == (True, False)


def test_a_group_that_goes_on_without_us(member: Told) -> None:
    member.beats = [refusal(E.UNKNOWN_MEMBER_ID)]
    join(member)
    wait_until(lambda: member.rejoins, "the heartbeat to say so")
    assert (member.lost, member.generation) == (True, -1)


def test_what_ends_it_is_told_by_check(member: Told) -> None:
    member.beats = [refusal(E.GROUP_AUTHORIZATION_FAILED)]
    join(member)
    wait_until(lambda: member._failure is not None, "the heart to stop")
    with pytest.raises(ClientError):
        member.check()


def test_a_farewell_that_is_not_heard_is_no_failure(member: Told) -> None:
    join(member)
    member.leave()
    assert member.farewells == 1


def test_nothing_to_commit_is_committed(member: Told) -> None:
    assert member.commit({})
