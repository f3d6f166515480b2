"""A connection that waits for news of a partition."""

from __future__ import annotations

import pytest

from broker.net.waits import PARKED
from tests.support.net_broker import NetBroker, fetch_request, frame, produce_request

VERSION = 12


@pytest.fixture
def net(tmp_path):
    with NetBroker(tmp_path) as made:
        made.create("orders", 1)
        yield made


@pytest.fixture
def parked(net):
    """A client whose fetch is known by its shape, and waits."""
    client = net.connect()
    request = fetch_request("orders", {0: 0}, max_wait_ms=60_000)
    net.connect().call(produce_request("orders", 0, [b"a"]), 9)
    client.call(request, VERSION)
    client.send(frame(fetch_request("orders", {0: 1}, max_wait_ms=60_000), VERSION, 2))
    return client


def test_it_is_an_entry_of_the_partition_and_of_a_bucket(net, parked):
    connection = parked.connection
    assert connection.waiting is PARKED
    assert list(net.ctx.replicas.get("orders", 0).waiters) == [connection]
    assert connection in connection.bucket


def test_news_answers_it_and_leaves_nothing_behind(net, parked):
    net.connect().call(produce_request("orders", 0, [b"b"]), 9)
    net.run()
    assert [number for number, _ in parked.answers()] == [2]
    assert parked.connection.bucket is None
    assert not net.ctx.replicas.get("orders", 0).waiters
    assert not len(net.hub.deadlines)


def test_the_end_of_its_time_answers_it(net, parked):
    bucket = parked.connection.bucket
    del bucket[parked.connection]
    parked.connection.expire()
    net.run()
    assert [number for number, _ in parked.answers()] == [2]
    assert not parked.connection.late
    assert not net.ctx.replicas.get("orders", 0).waiters
