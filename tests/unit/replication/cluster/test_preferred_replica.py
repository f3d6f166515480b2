"""Where a consumer should rather read from (KIP-392)."""

from __future__ import annotations

from replication.cluster.preferred_replica import nearest, rack_aware
from replication.fetch import FetchParams, read_all
from replication.metadata.image import BrokerImage, EndpointImage
from tests.unit.replication.cluster import wanted
from tests.unit.replication.leading import Led

ENDPOINTS = {"IN": EndpointImage("h", 1)}


def brokers(*racks):
    return {number: BrokerImage(number, 1, ENDPOINTS, rack) for number, rack in enumerate(racks, 1)}


def led(ends=(5, 5), starts=(0, 0)):
    made = Led()
    made.produce(5)
    for broker_id, end, start in zip((2, 3), ends, starts, strict=True):
        made.fetch(broker_id, end, start=start)
    return made


def choose(made, offset=0, rack="b", racks=("a", "b", "b"), listener="IN"):
    return nearest(made.partition, offset, rack, listener, brokers(*racks))


def test_a_follower_in_the_rack_is_chosen_and_the_leader_if_it_is_there():
    made = led()
    assert choose(made, racks=("a", "b", "c")) == 2
    assert choose(made, racks=("b", "b", "b")) == -1
    assert choose(made, racks=("a", "c", "c")) == -1


def test_the_furthest_wins_then_who_was_caught_up_last_then_the_greatest_id():
    assert choose(led(ends=(5, 4))) == 2
    assert choose(led(ends=(4, 5))) == 3
    assert choose(led()) == 3
    made = led()
    made.fetch(2, 5, after_ms=10)
    assert choose(made) == 2


def test_who_does_not_have_the_offset_is_not_offered():
    assert choose(led(ends=(3, 4)), offset=4) == 3
    assert choose(led(ends=(3, 3)), offset=4) == -1
    assert choose(led(starts=(2, 0)), offset=1) == 3


def test_nor_is_who_lags_out_of_the_isr_or_is_not_reached():
    made = led()
    made.partition.isr = (1, 2)
    assert choose(made) == 2
    assert choose(made, listener="OUT") == -1


def test_without_a_rack_there_is_nothing_to_choose():
    assert rack_aware("", "IN", dict) is None


def test_the_answer_sends_the_consumer_on_and_has_no_records():
    made = led()
    redirect = rack_aware("b", "IN", lambda: brokers("a", "b", "c"))
    params = FetchParams(12, 500, 1, 1 << 20, redirect=redirect)
    answer = read_all([wanted("t")], lambda _: made.partition, params)
    [row] = answer.rows
    assert (row.preferred_replica, row.length, row.high_watermark) == (2, 0, 5)
    assert answer.ready


def test_replicas_are_never_sent_on():
    made = led()
    redirect = rack_aware("b", "IN", lambda: brokers("a", "b", "c"))
    params = FetchParams(12, 500, 1, 1 << 20, replica_id=2, redirect=redirect)
    [row] = read_all([wanted("t")], lambda _: made.partition, params).rows
    assert (row.preferred_replica, row.length > 0) == (-1, True)
