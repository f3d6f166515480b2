"""What a share group does with records: acquire, acknowledge, renew, release, deliver again."""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from typing import Any

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from tests.support.share_member import (
    ACCEPT,
    GAP,
    REJECT,
    RELEASE,
    RENEW,
    Fetched,
    ShareMember,
    initialize,
    ranges_of,
)
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

WAIT_MS = 300
WRONG_STATE = ErrorCode.INVALID_RECORD_STATE
NO_RECORDS = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0, "is_renew_ack": True}


@pytest.fixture
def member(wire: WireClient, topic: str) -> Callable[..., ShareMember]:
    """Makes members of a group of the test's own on its topic of one partition."""
    topic_id = bytes(wire.metadata(topic).topics[0].topic_id)
    initialize(wire, topic, topic_id)
    return lambda member_id="ann", **fields: ShareMember(
        fields.pop("wire", wire), topic, topic_id, member_id, **fields
    )


def produce(wire: WireClient, topic: str, *batches: int) -> None:
    """Batches of so many records."""
    for size in batches:
        wire.produce_values(topic, *(b"x" * 10 for _ in range(size)))


def begun(member: ShareMember) -> ShareMember:
    """Its session is open and the share partition, which has no records yet, is loaded: a fetch waits, where
    Kafka answers at once while it loads. An answer that is there tells, however late it is looked for.
    """

    def waits() -> bool:
        posted = member.wire.post(member.fetch_request(max_wait_ms=WAIT_MS), 2)
        at_once, _, _ = select.select([member.wire.socket], [], [], WAIT_MS / 2000)
        got = Fetched(member.wire.receive(posted))
        assert (got.error, got.acquired) == (0, [])
        member.epoch += 1
        return not at_once

    wait_until(waits, "a fetch that waits")
    return member


def loaded(wire: WireClient, topic: str, member: ShareMember) -> ShareMember:
    """The share partition is loaded for certain: the member has accepted record 0, so offsets begin at 1."""
    produce(wire, topic, 1)
    assert member.fetch_until() == [(0, 0, 1)]
    assert member.ack_error((0, 0, ACCEPT)) == 0
    return member


def state_of(wire: WireClient, member: ShareMember) -> tuple[int, list[tuple[int, int, int, int]]]:
    """Start offset and batches (first, last, state, delivery count) as they are stored."""
    request = m.ReadShareGroupStateRequest
    data = request.PartitionData(partition=0, leader_epoch=0)
    topics = [request.ReadStateData(topic_id=member.topic_id, partitions=[data])]
    answer = wire.send(request(group_id=member.group, topics=topics), 0)
    found = answer.results[0].partitions[0]
    assert found.error_code == 0, found
    batches = [
        (each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in found.state_batches
    ]
    return found.start_offset, batches


def test_records_are_acquired_once(wire: WireClient, topic: str, member: Callable[..., ShareMember]) -> None:
    produce(wire, topic, 3, 2)
    ann, bob = member("ann"), member("bob")
    assert ann.fetch_until() == [(0, 4, 1)]
    assert bob.fetch(max_wait_ms=100).acquired == []
    produce(wire, topic, 1)
    assert bob.fetch().acquired == [(5, 5, 1)]


def test_records_come_as_whole_batches(
    wire: WireClient, topic: str, member: Callable[..., ShareMember]
) -> None:
    ann = loaded(wire, topic, member())
    produce(wire, topic, 3, 3, 3)
    got = ann.fetch(max_records=4)
    assert got.acquired == [(1, 6, 1)]
    assert bytes(got.rows[0].records) == b"".join(wire.stored_batches(topic)[1:3])
    assert ann.fetch(max_records=1).acquired == [(7, 9, 1)]


def test_batch_size_cuts_acquired_records_at_batches(
    wire: WireClient, topic: str, member: Callable[..., ShareMember]
) -> None:
    produce(wire, topic, 2, 2, 2, 5, 1)
    assert member().fetch_until(batch_size=3) == [(0, 3, 1), (4, 10, 1), (11, 11, 1)]


def test_record_limit_gives_no_record_more(
    wire: WireClient, topic: str, member: Callable[..., ShareMember]
) -> None:
    ann, bob = member("ann"), member("bob")
    produce(wire, topic, 10)
    limited = {"share_acquire_mode": 1}
    assert ann.fetch_until(max_records=3, **limited) == [(0, 2, 1)]
    bob.fetch(max_wait_ms=0, max_records=0)
    assert bob.fetch(max_records=2, **limited).acquired == [(3, 4, 1)]
    assert bob.fetch(max_records=2).acquired == [(5, 9, 1)]


def test_accepted_records_are_done(wire: WireClient, topic: str, member: Callable[..., ShareMember]) -> None:
    produce(wire, topic, 5)
    ann = member()
    assert ann.fetch_until() == [(0, 4, 1)]
    assert ann.ack_error((0, 4, ACCEPT)) == 0
    assert ann.ack_error((0, 4, ACCEPT)) == 0  # below the start: passed over
    produce(wire, topic, 1)
    assert ann.fetch((3, 4, REJECT)).acquired == [(5, 5, 1)]


def test_each_type_does_what_it_says(
    wire: WireClient, topic: str, member: Callable[..., ShareMember]
) -> None:
    produce(wire, topic, 6)
    ann = member()
    assert ann.fetch_until() == [(0, 5, 1)]
    assert ann.ack_error((0, 4, RELEASE, ACCEPT, RELEASE, REJECT, GAP)) == 0
    assert ann.fetch().acquired == [(0, 0, 2), (2, 2, 2)]
    assert ann.ack_error((0, 0, ACCEPT), (2, 2, ACCEPT), (5, 5, RELEASE)) == 0
    assert ann.fetch().acquired == [(5, 5, 2)]


def test_what_is_not_held_is_121(wire: WireClient, topic: str, member: Callable[..., ShareMember]) -> None:
    ann, bob = member("ann"), member("bob")
    produce(wire, topic, 4, 4)
    bob.fetch(max_wait_ms=0, max_records=0)
    assert ann.fetch_until(max_records=1) == [(0, 3, 1)]
    assert bob.ack_error((0, 3, ACCEPT)) == WRONG_STATE
    assert bob.ack_error((1, 2, ACCEPT)) == WRONG_STATE
    assert ann.ack_error((1, 2, ACCEPT)) == 0
    assert ann.ack_error((1, 1, ACCEPT)) == WRONG_STATE
    assert ann.ack_error((0, 3, ACCEPT)) == WRONG_STATE
    assert bob.fetch().acquired == [(4, 7, 1)]
    assert ann.ack_error((0, 0, ACCEPT), (4, 4, ACCEPT)) == WRONG_STATE
    assert ann.ack_error((0, 0, ACCEPT), (3, 3, ACCEPT)) == 0  # the refused request had no effect


def test_what_was_never_acquired_is_42_behind_and_121_where_nothing_is(
    wire: WireClient, topic: str, member: Callable[..., ShareMember]
) -> None:
    ann = loaded(wire, topic, member())
    produce(wire, topic, 4, 4)
    assert ann.ack_error((1, 2, ACCEPT)) == WRONG_STATE
    assert ann.fetch(max_records=1).acquired == [(1, 4, 1)]
    assert ann.ack_error((4, 5, ACCEPT)) == ErrorCode.INVALID_REQUEST
    assert ann.ack_error((7, 8, ACCEPT)) == ErrorCode.INVALID_REQUEST


def test_texts_of_refusals(wire: WireClient, topic: str, member: Callable[..., ShareMember]) -> None:
    produce(wire, topic, 4)
    ann, bob = member("ann"), member("bob")
    assert ann.fetch_until() == [(0, 3, 1)]
    bob.fetch(max_wait_ms=0, max_records=0)

    def text(who: ShareMember, *acks: Any) -> str:
        return str(who.acknowledge(*acks).responses[0].partitions[0].error_message)

    assert text(bob, (0, 3, ACCEPT)) == "Member is not the owner of batch record"
    assert text(ann, (0, 0, RELEASE)) == "None"
    assert text(ann, (0, 3, ACCEPT)) == "The offset cannot be acknowledged. The offset is not acquired."
    assert text(bob, (2, 2, ACCEPT)) == "Member is not the owner of offset"
    assert (
        text(ann, (9, 9, ACCEPT))
        == "Batch record not found. The first offset in request is past acquired records."
    )


def test_acknowledgements_ride_on_a_fetch(
    wire: WireClient, topic: str, member: Callable[..., ShareMember]
) -> None:
    ann = member()
    produce(wire, topic, 2, 2)
    assert ann.fetch_until(max_records=1) == [(0, 1, 1)]
    both = ann.fetch((0, 1, ACCEPT))
    assert (both.acquired, both.rows[0].acknowledge_error_code) == ([(2, 3, 1)], 0)
    wrong = ann.fetch((0, 9, ACCEPT), max_wait_ms=0)
    row = wrong.rows[0]
    assert (row.error_code, row.acknowledge_error_code) == (0, ErrorCode.INVALID_REQUEST)


def test_a_release_counts_as_a_delivery_and_the_last_one_archives(
    wire: WireClient, topic: str, member: Callable[..., ShareMember]
) -> None:
    produce(wire, topic, 1)
    ann = member()
    assert ann.fetch_until() == [(0, 0, 1)]
    for count in (2, 3, 4, 5):
        assert ann.ack_error((0, 0, RELEASE)) == 0
        assert ann.fetch().acquired == [(0, 0, count)]
    assert ann.ack_error((0, 0, RELEASE)) == 0
    assert ann.fetch(max_wait_ms=300).acquired == []
    produce(wire, topic, 1)
    assert ann.fetch().acquired == [(1, 1, 1)]


def test_often_delivered_records_come_in_ever_smaller_parts(
    wire: WireClient, topic: str, member: Callable[..., ShareMember]
) -> None:
    """Delivery limit 5: from the third delivery on half of the batch, then a quarter, at last one by one."""
    produce(wire, topic, 8)
    ann = member()
    assert ann.fetch_until() == [(0, 7, 1)]
    for count in (2, 3):
        assert ann.ack_error((0, 7, RELEASE)) == 0
        assert ann.fetch().acquired == [(0, 7, count)]
    assert ann.ack_error((0, 7, RELEASE)) == 0
    assert ann.fetch().acquired == [(0, 3, 4)]
    assert ann.fetch().acquired == [(4, 7, 4)]
    assert ann.ack_error((0, 7, RELEASE)) == 0
    for offset in range(3):
        assert ann.fetch().acquired == [(offset, offset, 5)]


def test_the_end_of_a_session_gives_back_what_is_held(
    wire: WireClient, topic: str, member: Callable[..., ShareMember]
) -> None:
    """The delivery counts, as 4.4 has it."""
    produce(wire, topic, 4)
    ann, bob = member("ann"), member("bob")
    assert ann.fetch_until() == [(0, 3, 1)]
    bob.fetch(max_wait_ms=0, max_records=0)
    assert ann.ack_error((1, 1, ACCEPT)) == 0
    assert ann.fetch(epoch=-1).error == 0
    assert bob.fetch_until(2) == [(0, 0, 2), (2, 3, 2)]
    assert bob.acknowledge((0, 0, ACCEPT), epoch=-1).responses[0].partitions[0].error_code == 0
    cat = member("cat")
    assert cat.fetch_until() == [(2, 3, 3)]


def test_a_session_that_is_begun_anew_keeps_what_is_held(
    wire: WireClient, topic: str, member: Callable[..., ShareMember]
) -> None:
    produce(wire, topic, 2)
    ann = member("ann")
    assert ann.fetch_until() == [(0, 1, 1)]
    ann.epoch = 0
    assert ann.fetch(max_wait_ms=0).acquired == []
    assert ann.ack_error((0, 1, ACCEPT)) == 0


def test_a_lost_connection_gives_back_what_is_held(
    either_broker, wire: WireClient, topic: str, member: Callable[..., ShareMember]
) -> None:
    produce(wire, topic, 2)
    bob = member("bob")
    bob.fetch(max_wait_ms=0, max_records=0)
    with WireClient(either_broker.bootstrap_servers) as other:
        assert member("ann", wire=other).fetch_until() == [(0, 1, 1)]
    assert bob.fetch_until() == [(0, 1, 2)]


def test_a_fetch_waits_for_records(
    either_broker, wire: WireClient, topic: str, member: Callable[..., ShareMember]
) -> None:
    ann = loaded(wire, topic, member())
    posted = wire.post(ann.fetch_request(max_wait_ms=50_000), 2)
    with WireClient(either_broker.bootstrap_servers) as other:
        other.produce_values(topic, b"a")
    assert Fetched(wire.receive(posted)).acquired == [(1, 1, 1)]


def test_a_fetch_waits_for_released_records(
    either_broker, wire: WireClient, topic: str, member: Callable[..., ShareMember]
) -> None:
    """Kafka's takes them when its time is over, so that has to be short: it may be over before them."""
    produce(wire, topic, 3)
    with WireClient(either_broker.bootstrap_servers) as other:
        ann, bob = member("ann", wire=other), member("bob")
        assert ann.fetch_until() == [(0, 2, 1)]
        bob.fetch(max_wait_ms=0)
        began = time.monotonic()
        posted = wire.post(bob.fetch_request(max_wait_ms=3000), 2)
        assert ann.ack_error((0, 2, RELEASE)) == 0
        late = time.monotonic() - began > 3
        assert Fetched(wire.receive(posted)).acquired == [(0, 2, 2)] or late


def test_min_bytes_are_waited_for(wire: WireClient, topic: str, member: Callable[..., ShareMember]) -> None:
    produce(wire, topic, 1)
    assert member().fetch_until(max_wait_ms=400, min_bytes=10_000) == [(0, 0, 1)]


def test_renewed_locks_are_no_news(wire: WireClient, topic: str, member: Callable[..., ShareMember]) -> None:
    produce(wire, topic, 3)
    ann = member()
    assert ann.fetch_until() == [(0, 2, 1)]
    assert ann.ack_error((0, 2, RENEW), is_renew_ack=True) == 0
    assert ann.ack_error((0, 2, RENEW, ACCEPT, RENEW), is_renew_ack=True) == 0
    got = ann.fetch((0, 0, RENEW), **NO_RECORDS)
    assert (got.error, got.rows[0].acknowledge_error_code, got.acquired) == (0, 0, [])
    assert ann.ack_error((1, 1, RENEW), is_renew_ack=True) == WRONG_STATE
    assert ann.ack_error((0, 0, ACCEPT), (2, 2, ACCEPT)) == 0


def test_state_is_stored(wire: WireClient, topic: str, member: Callable[..., ShareMember]) -> None:
    produce(wire, topic, 5)
    ann = member()
    assert ann.fetch_until() == [(0, 4, 1)]
    assert ann.ack_error((1, 3, ACCEPT, RELEASE, REJECT)) == 0
    start, batches = state_of(wire, ann)
    assert (start, batches) == (0, [(1, 1, 2, 1), (2, 2, 0, 1), (3, 3, 4, 1)])


def test_deleted_records_are_passed_over(
    wire: WireClient, topic: str, member: Callable[..., ShareMember]
) -> None:
    ann = member()
    produce(wire, topic, 3, 3, 3)
    assert ann.fetch_until(max_records=1) == [(0, 2, 1)]
    delete = m.DeleteRecordsRequest
    place = delete.DeleteRecordsPartition(partition_index=0, offset=7)
    wire.send(
        delete(topics=[delete.DeleteRecordsTopic(name=topic, partitions=[place])], timeout_ms=30_000), 2
    )
    first, last, count = ann.fetch_until()[0]
    assert (last, count) == (8, 1)
    assert first in (6, 7)  # Kafka gives the deleted record 6 as well, because its batch is still there
    assert ann.ack_error((0, 2, ACCEPT)) == 0


def test_partitions_share_an_answer(wire: WireClient, name: str) -> None:
    topic_id = wire.create_topic(name, 3)
    initialize(wire, name, topic_id, 3)
    ann = ShareMember(wire, name, topic_id, partitions=3)
    ann.fetch(max_wait_ms=0)
    for partition in range(3):
        wire.produce_values(name, b"a", b"b", partition=partition)
    got: dict[int, Any] = {}
    while len(got) < 3:
        rows = ann.fetch(max_records=4).rows
        got.update({index: ranges_of(row) for index, row in rows.items() if row.acquired_records})
    assert got == {index: [(0, 1, 1)] for index in range(3)}
    assert ann.fetch(forget=[0, 1], max_wait_ms=0).error == 0
    for partition in range(3):
        wire.produce_values(name, b"c", partition=partition)
    assert set(ann.fetch().rows) == {2}


def test_a_group_that_never_read_begins_at_the_end(wire: WireClient, topic: str) -> None:
    produce(wire, topic, 3)
    topic_id = bytes(wire.metadata(topic).topics[0].topic_id)
    initialize(wire, topic, topic_id, start_offset=-1)
    ann = begun(ShareMember(wire, topic, topic_id))
    produce(wire, topic, 1)
    assert ann.fetch_until() == [(3, 3, 1)]


def test_without_initialized_state_nothing_is_served(wire: WireClient, topic: str) -> None:
    topic_id = bytes(wire.metadata(topic).topics[0].topic_id)
    initialize(wire, "another-group", topic_id)
    ann = ShareMember(wire, topic, topic_id)
    errors: set[int] = set()

    def told() -> bool:
        errors.update(row.error_code for row in ann.fetch(max_wait_ms=1000).rows.values())
        return bool(errors)

    wait_until(told, "an answer")
    assert errors == {ErrorCode.UNKNOWN_SERVER_ERROR}
