"""The simulated loop and network must behave as asyncio and TCP do, or runs on them prove nothing."""

from __future__ import annotations

import asyncio

import pytest

from tests.simulation.loop import HostLoop
from tests.simulation.network import SimNetwork
from tests.simulation.wire import Wire, WireSettings
from tests.simulation.world import MS_US, SECOND_US, SimulationFailed, World

WINDOW = 4_000


class Noting(asyncio.Protocol):
    """Keeps what happens to it."""

    def __init__(self):
        self.data, self.events = b"", []
        self.transport = None

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.data += data

    def eof_received(self):
        self.events.append("eof")

    def connection_lost(self, exc):
        self.events.append("lost" if exc is None else type(exc).__name__)

    def pause_writing(self):
        self.events.append("pause")

    def resume_writing(self):
        self.events.append("resume")


class Buffered(Noting, asyncio.BufferedProtocol):
    """The same, as the broker's connections take their bytes."""

    def __init__(self):
        super().__init__()
        self.buffer = bytearray(100)

    def get_buffer(self, sizehint):
        return memoryview(self.buffer)

    def buffer_updated(self, nbytes):
        self.data += self.buffer[:nbytes]


class Pair:
    """A client on host `c` and a server on host `s`, connected."""

    def __init__(self, seed=1, server=Noting, backlog=10):
        self.world = World(seed)
        self.wire = Wire(self.world, WireSettings(window_bytes=WINDOW, split=0.3))
        self.loops = {name: HostLoop(self.world, name) for name in ("c", "s")}
        self.networks = {
            name: SimNetwork(self.wire, self.wire.kernel(name), loop) for name, loop in self.loops.items()
        }
        self.servers = []
        self.client = None
        self.error = None

        def accept():
            self.servers.append(server())
            return self.servers[-1]

        async def listen():
            await self.networks["s"].listen("s", 9092, accept, backlog=backlog)

        self.task("s", listen())
        self.world.run(MS_US)

    def task(self, host, work):
        self.loops[host].create_task(work)

    async def _dial(self, port):
        try:
            _, self.client = await self.networks["c"].dial("s", port, Noting)
        except OSError as error:
            self.error = error

    def connect(self, port=9092):
        self.task("c", self._dial(port))
        self.run(0.2)
        return self

    def run(self, seconds):
        self.world.run(self.world.now_us + int(seconds * SECOND_US))

    @property
    def server(self):
        return self.servers[-1]


@pytest.fixture
def pair():
    return Pair().connect()


def test_bytes_arrive_whole_and_in_order_in_both_directions(pair):
    sent = bytes(range(256)) * 50
    for at in range(0, len(sent), 333):
        pair.client.transport.write(sent[at : at + 333])
    pair.server.transport.write(memoryview(b"answer"))
    pair.run(1)
    assert (pair.server.data, pair.client.data) == (sent, b"answer")


def test_a_buffered_protocol_gets_them_as_its_buffer_allows():
    pair = Pair(server=Buffered).connect()
    pair.client.transport.write(b"x" * 1234 + b"end")
    pair.run(1)
    assert pair.server.data == b"x" * 1234 + b"end"


def test_who_reads_nothing_stops_who_writes_until_it_reads_again(pair):
    pair.server.transport.pause_reading()
    pair.client.transport.set_write_buffer_limits(0)
    pair.client.transport.write(b"x" * (WINDOW + 10))
    pair.run(1)
    assert pair.client.events == ["pause"]
    assert pair.client.transport.get_write_buffer_size() == 10
    pair.server.transport.resume_reading()
    pair.run(1)
    assert pair.client.events == ["pause", "resume"]
    assert len(pair.server.data) == WINDOW + 10


def test_close_sends_what_was_written_and_the_peer_sees_the_end(pair):
    pair.client.transport.write(b"x" * 3 * WINDOW)
    pair.client.transport.close()
    assert pair.client.transport.is_closing()
    pair.run(1)
    assert len(pair.server.data) == 3 * WINDOW
    assert pair.server.events == ["eof", "lost"]
    assert "lost" in pair.client.events


def test_a_reset_in_between_loses_the_rest_on_both_sides(pair):
    (socket,) = pair.wire.kernel("s").sockets
    pair.client.transport.write(b"x" * 3 * WINDOW)
    pair.wire.reset(socket)
    pair.run(1)
    assert "ConnectionResetError" in pair.client.events
    assert pair.server.events[-1] == "ConnectionResetError"
    with pytest.raises(RuntimeError):
        pair.client.transport.write(b"more")


def test_what_cannot_pass_comes_after_the_way_is_open_again(pair):
    pair.wire.cut("c", "s")
    pair.client.transport.write(b"one")
    pair.server.transport.write(b"two")
    pair.run(2)
    assert (pair.server.data, pair.client.data) == (b"", b"two")
    pair.wire.heal("c", "s")
    pair.run(1)
    assert pair.server.data == b"one"


def test_nobody_is_told_of_a_power_loss_until_the_host_is_back_and_asked(pair):
    pair.wire.power_off(pair.wire.kernel("s"))
    pair.loops["s"].die()
    pair.run(5)
    pair.client.transport.write(b"there?")
    pair.run(5)
    assert pair.client.events == []
    pair.wire.boot(pair.wire.kernel("s"))
    pair.run(1)
    assert pair.client.events == ["ConnectionResetError"]


def test_the_kernel_closes_what_a_killed_process_had_open(pair):
    pair.loops["s"].die()
    pair.wire.process_ended(pair.wire.kernel("s"), pair.loops["s"])
    pair.run(1)
    assert pair.client.events == ["eof", "lost"]


def test_a_paused_process_accepts_and_reads_when_it_goes_on(pair):
    pair.loops["s"].pause()
    pair.client.transport.write(b"later")
    pair.connect()
    pair.client.transport.write(b"second")
    pair.run(1)
    assert [server.data for server in pair.servers] == [b""]
    pair.loops["s"].resume()
    pair.run(1)
    assert [server.data for server in pair.servers] == [b"later", b"second"]


def test_dialing_where_nobody_listens_or_nothing_passes():
    refused = Pair().connect(port=1)
    assert isinstance(refused.error, ConnectionRefusedError)
    lost = Pair()
    lost.wire.cut("s", "c")
    lost.connect()
    assert lost.error is None
    assert lost.client is None
    lost.wire.heal("s", "c")
    lost.run(10)
    assert lost.client is not None
    never = Pair()
    never.wire.cut("c", "s")
    never.connect()
    never.run(20)
    assert isinstance(never.error, TimeoutError)


def test_a_way_back_that_is_cut_stops_the_writer_too(pair):
    """Acknowledgements travel that way."""
    pair.wire.cut("s", "c")
    pair.client.transport.write(b"x" * 3 * WINDOW)
    pair.run(2)
    assert len(pair.server.data) == WINDOW
    pair.wire.heal("s", "c")
    pair.run(2)
    assert len(pair.server.data) == 3 * WINDOW


def test_timers_are_never_early_and_calls_keep_their_order():
    world = World(3)
    loop = HostLoop(world, "h")
    told = []
    for number in range(5):
        loop.call_soon(told.append, number)
    at = loop.time() + 0.25
    loop.call_at(at, lambda: told.append(loop.time() >= at))
    loop.call_later(0.1, told.append, "earlier")
    loop.call_later(0.1, told.append, "never").cancel()
    world.run(SECOND_US)
    assert told == [0, 1, 2, 3, 4, "earlier", True]


def test_a_paused_loop_makes_up_for_it_and_a_dead_one_does_not():
    for end in ("pause", "die"):
        world = World(3)
        loop = HostLoop(world, "h")
        told = []
        loop.call_later(0.1, told.append, "timer")
        getattr(loop, end)()
        world.run(SECOND_US)
        assert told == []
        loop.resume()
        world.run(2 * SECOND_US)
        assert told == (["timer"] if end == "pause" else [])


def test_an_error_in_a_callback_ends_the_run():
    world = World(1)
    loop = HostLoop(world, "h")
    loop.call_soon(lambda: 1 / 0)
    with pytest.raises(SimulationFailed, match="division by zero"):
        world.run(SECOND_US)


def test_a_seed_repeats_itself_and_others_differ():
    def digest(seed):
        pair = Pair(seed).connect()
        pair.client.transport.write(b"x" * 9_000)
        pair.run(1)
        return pair.world.trace.digest

    assert digest(1) == digest(1)
    assert digest(1) != digest(2)
