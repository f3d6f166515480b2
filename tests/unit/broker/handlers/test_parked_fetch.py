"""A Fetch that waits: woken by news, by the end of its time or by its client's end, it is parked nowhere."""

from __future__ import annotations

import pytest

from broker.handlers.fetch import WaitingFetch
from protocol import messages as m
from protocol.api_keys import ApiKey
from tests.support.net_broker import NetBroker, decode, fetch_request, frame
from tests.unit.broker.handlers.test_fetch import fill, offsets_in, partitions

ALL = {0: 0, 1: 0, 2: 0}


@pytest.fixture
def net(tmp_path):
    with NetBroker(tmp_path) as made:
        made.create("orders", 3)
        yield made


def parked(net, **more):
    """A client, and its request for all partitions, which waits."""
    client = net.connect()
    client.send(frame(fetch_request("orders", ALL, max_wait_ms=60_000, **more), 12, 1))
    waiting = client.connection.waiting
    assert type(waiting) is WaitingFetch
    return client, waiting


def nothing_waits(net):
    return len(net.hub.deadlines) == 0 and all(
        not net.ctx.replicas.get("orders", index).waiters for index in ALL
    )


def test_the_end_of_its_time_answers_with_what_there_is(net):
    client, waiting = parked(net, min_bytes=400)
    fill(net, 2, 1)
    assert client.answers() == []
    waiting.expire()
    [(_, data)] = client.answers()
    answer = partitions(decode(ApiKey.FETCH, 12, data))
    assert [len(offsets_in(answer[index].records or b"")) for index in ALL] == [0, 0, 1]
    assert client.connection.waiting is None
    assert nothing_waits(net)


def test_a_client_that_goes_leaves_nothing_behind(net):
    client, _ = parked(net, min_bytes=1)
    client.lose()
    assert nothing_waits(net)
    fill(net, 0, 1)


def test_a_parked_session_is_woken_within_the_turn(net):
    client = net.connect()
    full = client.call(fetch_request("orders", {0: 0, 1: 0}, session_epoch=0), 12)
    for turn in (1, 2):
        poll = m.FetchRequest(
            max_wait_ms=60_000, min_bytes=1, max_bytes=9999, session_id=full.session_id, session_epoch=turn
        )
        poll.topics = fetch_request("orders", {1: turn - 1}).topics
        client.send(frame(poll, 12, turn) + frame(m.ApiVersionsRequest(), 0, 50))
        assert client.answers() == []
        fill(net, 1, 1)
        (first, data), (second, _) = client.answers()
        assert (first, second) == (turn, 50)
        assert offsets_in(partitions(decode(ApiKey.FETCH, 12, data))[1].records) == [turn - 1]
    client.lose()
    assert len(net.hub.deadlines) == 0


def test_several_partitions_are_waited_for_together(net):
    client = net.connect()
    client.send(frame(fetch_request("orders", {0: 0, 1: 0, 2: 0}, max_wait_ms=60_000, min_bytes=400), 12, 1))
    fill(net, 2, 1)
    assert client.answers() == []
    fill(net, 0, 2)
    [(_, data)] = client.answers()
    assert [
        len(offsets_in(p.records or b"")) for p in partitions(decode(ApiKey.FETCH, 12, data)).values()
    ] == [2, 0, 1]
    assert nothing_waits(net)
