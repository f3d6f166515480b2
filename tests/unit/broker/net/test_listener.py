from broker.net.limits import ConnectionLimits
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


def test_before_the_broker_serves_a_connection_waits(broker):
    from broker.net.listener import Listener
    from tests.support.net_broker import Client

    early = Listener(broker.hub, "EARLY", "127.0.0.1", 0)
    broker.listener = early
    client = Client(broker)
    assert client.transport.paused
    early.serve()
    assert not client.transport.paused
    assert not Client(broker).transport.paused


def test_a_closed_listener_takes_nobody_and_keeps_who_is_there(broker):
    client = broker.connect()
    broker.listener.close()
    assert broker.connect().transport.aborted
    assert not client.transport.closed
