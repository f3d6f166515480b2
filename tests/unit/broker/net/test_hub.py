from broker.net.hub import UNFINISHED_BYTES
from tests.support.net_broker import frame, produce_request


def test_another_generation_makes_every_connection_forget_its_shapes(broker):
    clients = [broker.connect() for _ in range(2)]
    for client in clients:
        client.call(produce_request("orders", 0, [b"a"]), 9)
        assert client.connection._shapes
    before = broker.hub.generation
    broker.hub.forget_shapes()
    assert broker.hub.generation == before + 1
    for client in clients:
        client.send(frame(produce_request("orders", 0, [b"a"]), 9)[:3])  # anything that arrives
        assert not client.connection._shapes


def test_unfinished_frames_have_less_than_what_strangers_may_take(broker):
    assert broker.hub.receiving.budget_bytes == UNFINISHED_BYTES < 256 << 20
