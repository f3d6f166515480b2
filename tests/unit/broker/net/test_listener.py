import asyncio

import pytest

from broker.net.limits import ConnectionLimits
from broker.net.listener import Listener
from protocol import messages as m
from tests.support.net_broker import frame


def test_over_the_limit_of_an_address_a_connection_is_closed_at_once(broker):
    broker.hub.limits = ConnectionLimits(100, 2, {"10.0.0.2": 3})
    clients = [broker.connect("10.0.0.1") for _ in range(3)]
    assert [client.transport.aborted for client in clients] == [False, False, True]
    clients[2].lose()
    clients[0].lose()
    assert not broker.connect("10.0.0.1").transport.aborted
    assert [broker.connect("10.0.0.2").transport.aborted for _ in range(4)] == [False, False, False, True]


def test_over_the_brokers_limit_the_quietest_connection_goes(broker):
    broker.hub.limits = ConnectionLimits(2, 100, {})
    first, second = broker.connect(), broker.connect()
    broker.hub.tick += 1
    first.send(frame(m.ApiVersionsRequest(), 0))
    third = broker.connect()
    assert [client.transport.closed for client in (first, second, third)] == [False, True, False]


def test_before_the_broker_serves_who_connects_waits_with_all_that_it_has_sent(broker):
    """What is sent meanwhile must not meet a broker that knows no topics yet."""

    async def story():
        early = Listener(broker.hub, "EARLY", "127.0.0.1", 0)
        await early.open(10)
        reader, writer = await asyncio.open_connection(early.host, early.port)
        writer.write(frame(m.ApiVersionsRequest(), 0, 7))
        await writer.drain()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.1)
        assert not broker.hub.connections
        await early.serve()
        answer = await reader.readexactly(8)
        early.close()
        writer.close()
        return answer[4:]

    assert broker.run(story()) == (7).to_bytes(4, "big")


def test_a_closed_listener_takes_nobody_and_keeps_who_is_there(broker):
    client = broker.connect()
    broker.listener.close()
    assert broker.connect().transport.aborted
    assert not client.transport.closed
