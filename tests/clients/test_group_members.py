"""Members of the client libraries as processes that come and go: assignors, static members, kill -9."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.clients.group_member import LIBRARIES, TOPIC
from tests.clients.group_members import Group, produce
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

PARTITIONS = 4
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
    "offsets.topic.num.partitions": "4",
}
STRATEGIES = [
    *[("kafka-python", name) for name in ("range", "roundrobin", "sticky", "cooperative-sticky")],
    *[("aiokafka", name) for name in ("range", "roundrobin", "sticky")],
    *[("confluent-kafka", name) for name in ("range", "roundrobin", "cooperative-sticky")],
]


# What the libraries call the answers 22 and 27: the member must join again before it commits.
FENCED = {
    "CommitFailedError", "IllegalGenerationError", "RebalanceInProgressError",
    "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS",
}  # fmt: skip


@pytest.fixture(scope="module")
def shared_broker() -> Iterator[OttlaProcess]:
    """With 40 records; each test has a group of its own."""
    with OttlaProcess(SETTINGS) as broker:
        with WireClient(broker.bootstrap_servers) as wire:
            wire.create_topic(TOPIC, PARTITIONS)
        produce(broker, PARTITIONS, 0, 40)
        yield broker


@pytest.fixture
def broker() -> Iterator[OttlaProcess]:
    with OttlaProcess(SETTINGS) as broker:
        with WireClient(broker.bootstrap_servers) as wire:
            wire.create_topic(TOPIC, PARTITIONS)
        yield broker


def everything(last: int) -> set[str]:
    return {str(number) for number in range(last)}


@pytest.mark.parametrize(("library", "strategy"), STRATEGIES)
def test_members_share_and_hand_over(shared_broker: OttlaProcess, library: str, strategy: str) -> None:
    with Group(shared_broker, f"{library}.{strategy}", PARTITIONS) as group:
        first = group.start(library, strategy)
        second = group.start(library, strategy)
        group.wait_for_shares(2, 2)
        group.wait_for(everything(40))
        group.stop(first)
        group.wait_for_shares(4)
        wait_until(lambda: sum(group.committed()) >= 40, "all that was read to be committed")
        group.stop(second)
        refused = {error for member in group.ended for [error] in member.told("refused")}
        assert refused <= FENCED, "a commit fails only where a rebalance came between reading and committing"


def test_different_libraries_in_one_group_restarted_one_by_one(broker: OttlaProcess) -> None:
    with Group(broker, "g", PARTITIONS) as group:
        values = produce(broker, PARTITIONS, 0, 40)
        for library in LIBRARIES:
            group.start(library)
        group.wait_for_shares(1, 1, 2)
        group.wait_for(values)
        for number, (member, library) in enumerate(zip(list(group.running), LIBRARIES, strict=True)):
            group.stop(member)
            group.start(library)
            group.wait_for_shares(1, 1, 2)
            values |= produce(broker, PARTITIONS, 40 + number * 20, 60 + number * 20)
            group.wait_for(values)
        wait_until(lambda: sum(group.committed()) == len(values), "all to be committed")


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_a_killed_member_had_not_committed_is_read_again(
    shared_broker: OttlaProcess, library: str
) -> None:
    """kill -9 in the middle of a batch: nothing is lost, nothing skipped, and what was committed stays so."""
    with Group(shared_broker, f"killed.{library}", PARTITIONS) as group:
        killed = group.start(library, hold_at=7, session_ms=1500)
        wait_until(lambda: killed.told("holding"), "the member to be in the middle of a batch")
        group.kill(killed)
        committed = [max(each, 0) for each in group.committed()]
        other = group.start(library)
        group.wait_for_shares(4)
        group.wait_for(everything(40))
        for partition, start in enumerate(committed):
            offsets = [offset for number, offset, _ in other.records() if number == partition]
            assert offsets == list(range(start, 10)), "each once, from what was committed on"


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_static_member_that_is_killed_and_comes_back_disturbs_nobody(
    shared_broker: OttlaProcess, library: str
) -> None:
    with Group(shared_broker, f"static.{library}", PARTITIONS) as group:
        first = group.start(library, instance="one", session_ms=30_000)
        second = group.start(library, instance="two", session_ms=30_000)
        group.wait_for_shares(2, 2)
        group.wait_for(everything(40))
        had, changes = first.assigned, len(second.told("assigned"))
        group.kill(first)
        again = group.start(library, instance="one", session_ms=30_000)
        wait_until(lambda: again.assigned, "the member to have partitions")
        assert again.assigned == had
        assert len(second.told("assigned")) == changes, "the other one has not noticed"


def test_members_go_on_after_the_broker_was_killed(broker: OttlaProcess) -> None:
    """All libraries in one group; their commits survive kill -9 of the broker, and so does the group."""
    with Group(broker, "g", PARTITIONS) as group:
        values = produce(broker, PARTITIONS, 0, 40)
        for library in LIBRARIES:
            group.start(library)
        group.wait_for_shares(1, 1, 2)
        group.wait_for(values)
        wait_until(lambda: sum(group.committed()) == 40, "all to be committed")
        # Who came while another one had read and not committed has read that again.
        read = sum(int(value) < 40 for _, _, value in group.records())
        broker.kill()
        broker.start()
        assert group.committed() == [10, 10, 10, 10]
        values |= produce(broker, PARTITIONS, 40, 80)
        group.wait_for(values)
        wait_until(lambda: sum(group.committed()) == 80, "all to be committed")
        before = [value for _, _, value in group.records() if int(value) < 40]
        assert len(before) == read, "what was committed is not read again"
