from broker.net.idle import TICKS, IdleSweep
from protocol import messages as m
from tests.support.net_broker import frame


def test_who_is_silent_for_the_idle_time_is_closed_and_who_speaks_is_not(broker):
    sweep = IdleSweep(broker.hub, 10_000)
    silent, lively = broker.connect(), broker.connect()
    for _ in range(TICKS):
        sweep.sweep()
        lively.send(frame(m.ApiVersionsRequest(), 0))
    assert not silent.transport.closed
    sweep.sweep()
    assert silent.transport.closed
    assert not lively.transport.closed
    sweep.sweep()
    assert silent.transport.aborted  # it did not even take the end
    sweep.stop()


def test_a_negative_idle_time_closes_nobody(broker):
    sweep = IdleSweep(broker.hub, -1)
    client = broker.connect()
    for _ in range(3 * TICKS):
        sweep.sweep()
    assert not client.transport.closed
    sweep.stop()
