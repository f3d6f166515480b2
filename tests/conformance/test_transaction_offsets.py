"""Offsets of groups in transactions: they appear with them, or not at all (KIP-98, KIP-447)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode as E
from tests.support.transactions import TxnProducer, committed_values, until_settled
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient


def fetched(wire: WireClient, group: str, cell: tuple[str, int], *, stable: bool = False) -> tuple[int, int]:
    """(offset, error) of OffsetFetch."""
    request = m.OffsetFetchRequest
    topics = [request.OffsetFetchRequestTopics(name=cell[0], partition_indexes=[cell[1]])]
    asked = request.OffsetFetchRequestGroup(group_id=group, topics=topics)
    [found] = wire.send(request(groups=[asked], require_stable=stable), 8).groups
    [topic] = found.topics
    [partition] = topic.partitions
    return partition.committed_offset, partition.error_code


@pytest.fixture
def group(new_member: Callable[..., object], name: str) -> str:
    """The name of a group; its coordinator serves."""
    return name


@pytest.mark.parametrize("commit", [True, False])
def test_offsets_appear_with_the_transaction_or_not_at_all(
    wire: WireClient, topic: str, group: str, producer: TxnProducer, commit: bool
) -> None:
    cell = (topic, 0)
    assert producer.add_offsets(group) == E.NONE
    assert producer.commit_offset(group, cell, 7) == E.NONE
    assert fetched(wire, group, cell) == (-1, E.NONE)
    assert fetched(wire, group, cell, stable=True) == (-1, E.UNSTABLE_OFFSET_COMMIT)
    assert producer.end(commit) == E.NONE
    producer.await_state("CompleteCommit" if commit else "CompleteAbort")
    assert fetched(wire, group, cell, stable=True) == (7 if commit else -1, E.NONE)


@pytest.mark.parametrize("version", range(5))
def test_offsets_that_were_not_added(topic: str, group: str, producer: TxnProducer, version: int) -> None:
    error = E.TRANSACTION_ABORTABLE if version >= 4 else E.INVALID_TXN_STATE
    assert producer.commit_offset(group, (topic, 0), 7, version) == error


def test_a_broker_that_adds_offsets_by_itself(
    wire: WireClient, topic: str, group: str, producer: TxnProducer
) -> None:
    assert producer.commit_offset(group, (topic, 0), 7, 5) == E.NONE
    assert producer.state() == "Ongoing"
    assert producer.end(commit=True, version=5) == E.NONE
    wait_until(lambda: fetched(wire, group, (topic, 0)) == (7, E.NONE), "the offset")


def test_offsets_from_who_is_no_member(topic: str, group: str, producer: TxnProducer) -> None:
    assert producer.add_offsets(group) == E.NONE
    cell = (topic, 0)
    stranger = {"member_id": "nobody", "generation_id_or_member_epoch": 3}
    assert producer.commit_offset(group, cell, 7, **stranger) == E.ILLEGAL_GENERATION
    assert producer.commit_offset(group, ("not-there", 0), 7) == E.UNKNOWN_TOPIC_OR_PARTITION
    assert producer.commit_offset(group, cell, 7) == E.NONE
    assert producer.end(commit=True) == E.NONE


def test_offsets_of_a_producer_that_died_before_the_end(
    wire: WireClient, topic: str, group: str, producer: TxnProducer
) -> None:
    """The next instance has the transaction aborted, and goes on where the last commit had come to."""
    cell = (topic, 0)
    for offset, ends in ((3, True), (7, False)):
        assert until_settled(lambda: producer.add_offsets(group)) == E.NONE
        assert producer.reach_add(cell) == E.NONE
        assert producer.produce(topic, b"%d" % offset) == E.NONE
        assert producer.commit_offset(group, cell, offset) == E.NONE
        if ends:
            assert producer.end(commit=True) == E.NONE
    assert fetched(wire, group, cell, stable=True) == (-1, E.UNSTABLE_OFFSET_COMMIT)
    following = TxnProducer(wire, producer.id)
    assert following.try_init() == E.CONCURRENT_TRANSACTIONS
    assert until_settled(following.try_init) == E.NONE
    assert fetched(wire, group, cell, stable=True) == (3, E.NONE)
    assert committed_values(wire, topic) == [b"3"]


def test_two_transactions_on_one_offset(
    wire: WireClient, topic: str, group: str, producer: TxnProducer
) -> None:
    other = TxnProducer(wire, f"{producer.id}-other").init()
    cell = (topic, 0)
    for each, offset in ((producer, 3), (other, 5)):
        assert each.add_offsets(group) == E.NONE
        assert each.commit_offset(group, cell, offset) == E.NONE
    assert producer.end(commit=True) == E.NONE
    producer.await_state("CompleteCommit")
    assert fetched(wire, group, cell) == (3, E.NONE)
    assert fetched(wire, group, cell, stable=True) == (-1, E.UNSTABLE_OFFSET_COMMIT)
    assert other.end(commit=False) == E.NONE
    other.await_state("CompleteAbort")
    assert fetched(wire, group, cell, stable=True) == (3, E.NONE)


def test_a_group_that_is_deleted_loses_what_is_pending(
    wire: WireClient, topic: str, group: str, producer: TxnProducer
) -> None:
    assert producer.add_offsets(group) == E.NONE
    assert producer.commit_offset(group, (topic, 0), 7) == E.NONE
    [deleted] = wire.send(m.DeleteGroupsRequest(groups_names=[group]), 2).results
    assert deleted.error_code == E.NONE
    assert producer.end(commit=True) == E.NONE
    producer.await_state("CompleteCommit")
    assert fetched(wire, group, (topic, 0), stable=True) == (-1, E.NONE)
