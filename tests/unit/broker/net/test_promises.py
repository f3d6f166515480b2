"""Answers that wait for replicas: in order, once, and without holding up what may go on."""

from __future__ import annotations

import errno
from types import SimpleNamespace

import pytest

from broker.net.promises import PROMISED, PROMISES_MAX
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from tests.support.net_broker import NetBroker, decode, frame, produce_request
from tests.support.replicated import Replicated

VERSION = 9


@pytest.fixture
def net(tmp_path):
    with NetBroker(tmp_path) as made:
        made.create("orders", 2)
        yield made


@pytest.fixture
def topic(net):
    return Replicated(net, "orders")


def known(net, topic, **fields):
    """A client whose acks=all produces are known."""
    client = net.connect()
    send(client, 0, **fields)
    net.end_turn()
    topic.follow(topic.partition.log.end_offset)
    client.answers()
    return client


def send(client, number, values=(b"a",), acks=-1, partition=0, batch=None):
    request = produce_request("orders", partition, list(values), acks=acks)
    if batch is not None:
        request.topic_data[0].partition_data[0].records = batch
    client.send(frame(request, VERSION, number))


def told(client):
    """(correlation id, error, base offset) of the answers so far."""
    return [
        (number, got.error_code, got.base_offset)
        for number, data in client.answers()
        for got in decode(ApiKey.PRODUCE, VERSION, data).responses[0].partition_responses
    ]


def test_requests_are_served_while_those_before_wait_and_answered_in_order(net, topic, monkeypatch):
    client = known(net, topic)
    monkeypatch.setattr(net.hub, "dispatcher", None)  # nothing needs the general way
    for number in (1, 2, 3):
        send(client, number)
        net.end_turn()
    assert topic.partition.log.end_offset == 4
    assert told(client) == []
    topic.follow(3, 2)
    assert told(client) == []
    topic.follow(3, 3)
    net.run()
    assert told(client) == [(1, 0, 1), (2, 0, 2)]
    topic.follow(4)
    assert told(client) == [(3, 0, 3)]
    assert not topic.partition.commits


def test_the_last_answer_leaves_at_once_and_several_leave_together(net, topic):
    client = known(net, topic)
    for number in (1, 2):
        send(client, number)
        net.end_turn()
    topic.follow(3)
    assert len(client.transport.writes) == 1
    assert [number for number, _, _ in told(client)] == [1, 2]


def test_answers_of_the_turn_leave_before_promises(net, topic):
    client = known(net, topic)
    send(client, 1, acks=1)  # remembered, too
    net.end_turn()
    client.answers()
    send(client, 2, acks=1)
    send(client, 3)
    net.end_turn()
    assert told(client) == [(2, 0, 2)]
    topic.follow(4)
    assert told(client) == [(3, 0, 3)]


def test_what_is_of_another_kind_waits_until_all_promises_are_kept(net, topic):
    client = known(net, topic)
    send(client, 1)
    send(client, 2, acks=1)
    client.send(frame(m.ApiVersionsRequest(), 0, 3))
    net.end_turn()
    assert client.connection.waiting is PROMISED
    assert topic.partition.log.end_offset == 2
    topic.follow(2)
    net.run()
    assert [number for number, _ in client.answers()] == [1, 2, 3]
    assert topic.partition.log.end_offset == 3


def test_a_refusal_keeps_its_place(net, topic):
    client = known(net, topic)
    send(client, 1)
    send(client, 2, batch=b"\0" * 61)
    send(client, 3)
    net.end_turn()
    assert told(client) == []
    topic.follow(3)
    assert [(number, bool(error)) for number, error, _ in told(client)] == [(1, False), (2, True), (3, False)]


def test_no_more_than_so_many_wait(net, topic):
    client = known(net, topic)
    for number in range(1, PROMISES_MAX + 3):
        send(client, number)
    net.end_turn()
    assert topic.partition.log.end_offset == 1 + PROMISES_MAX
    topic.follow(topic.partition.log.end_offset)
    net.run()
    assert [number for number, _, _ in told(client)] == list(range(1, PROMISES_MAX + 1))
    topic.follow(topic.partition.log.end_offset)
    net.run()
    assert [number for number, _, _ in told(client)] == [PROMISES_MAX + 1, PROMISES_MAX + 2]


def test_lost_leadership_is_told(net, topic):
    client = known(net, topic)
    send(client, 1)
    net.end_turn()
    topic.step_back()
    assert [(number, error) for number, error, _ in told(client)] == [(1, 6)]


def test_a_newer_epoch_of_the_same_leader_changes_nothing(net, topic):
    client = known(net, topic)
    send(client, 1)
    net.end_turn()
    topic.lead((1, 2))
    assert told(client) == []
    topic.follow(2)
    assert told(client) == [(1, 0, 1)]


def test_when_its_time_is_over_7_is_told_and_later_ones_go_on(net, topic):
    client = known(net, topic)
    send(client, 1)
    send(client, 2)
    net.end_turn()
    client.connection.promised[0].expire()
    net.run()
    assert [(number, error) for number, error, _ in told(client)] == [(1, 7)]
    topic.follow(3)
    assert told(client) == [(2, 0, 2)]


def test_all_deadlines_of_a_connection_are_one_entry(net, topic):
    client = known(net, topic)
    for number in (1, 2, 3):
        send(client, number)
    net.end_turn()
    assert len(net.hub.deadlines) == 1
    client.lose()
    assert len(net.hub.deadlines) == 0


def test_when_the_earliest_deadline_comes_those_that_are_due_expire_and_the_next_is_looked_at(
    net, topic, monkeypatch
):
    client = known(net, topic)
    send(client, 1)
    send(client, 2)
    net.end_turn()
    queue = client.connection.promised
    queue.forget()
    queue[0].deadline = 0.0
    queue.expire()
    net.run()
    assert [(number, error) for number, error, _ in told(client)] == [(1, 7)]
    assert len(net.hub.deadlines) == 1
    topic.follow(3)
    queue.forget()
    queue.expire()
    assert told(client) == [(2, 0, 2)]
    assert len(net.hub.deadlines) == 0


def test_a_shorter_time_out_behind_a_longer_one_counts(net, topic):
    client = known(net, topic)
    send(client, 1)
    net.end_turn()
    queue = client.connection.promised
    [bucket] = [queue._bucket]
    queue.look_at(0.0)
    assert queue not in bucket
    assert queue in queue._bucket
    queue.look_at(1e9)
    assert queue._due == 0.0


def test_a_write_that_fails_is_told(net, topic, monkeypatch):
    client = known(net, topic)

    def full(parts):
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr(topic.partition.log, "handle", SimpleNamespace(append=full))
    send(client, 1)
    net.end_turn()
    assert [(number, error) for number, error, _ in told(client)] == [(1, 56)]
    assert topic.partition.log.end_offset == 1
    assert not topic.partition.commits


def test_a_client_that_goes_leaves_nothing(net, topic):
    client = known(net, topic)
    send(client, 1)
    send(client, 2, acks=1)
    net.end_turn()
    client.lose()
    assert not topic.partition.commits
    assert len(net.hub.deadlines) == 0
    topic.follow(2)
    assert client.answers() == []


def test_below_the_minimum_isr_the_general_way_refuses_behind_the_promises(net, topic):
    client = known(net, topic)
    send(client, 1)
    net.end_turn()
    topic.partition.isr = ()
    send(client, 2)
    net.end_turn()
    assert client.connection.waiting is PROMISED
    client.connection.promised[0].expire()
    net.run()
    assert [(number, error) for number, error, _ in told(client)] == [(1, 7), (2, 19)]
    assert topic.partition.log.end_offset == 2


def test_a_duplicate_of_what_is_committed_is_answered_with_the_turn(net, topic):
    records = [Record(0, 1_700_000_000_000, None, b"x")]
    client = known(net, topic, batch=build_batch(records, producer_id=7, producer_epoch=0, base_sequence=0))
    send(client, 1, batch=build_batch(records, producer_id=7, producer_epoch=0, base_sequence=0))
    net.end_turn()
    net.run()
    assert told(client) == [(1, 0, 0)]
    assert topic.partition.log.end_offset == 1


def test_a_partition_without_followers_is_served_when_nothing_is_owed(net, topic):
    client = known(net, topic)
    send(client, 1)
    send(client, 2, partition=1)
    net.end_turn()
    assert told(client) == []
    topic.follow(2)
    net.run()
    net.end_turn()
    assert [(number, error) for number, error, _ in told(client)] == [(1, 0), (2, 0)]
