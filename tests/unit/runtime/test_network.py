"""Listening and dialling on both loops."""

import asyncio
import socket

import pytest

from runtime.network import LoopNetwork, grow_send_buffer
from tests.unit.runtime.loops import LOOPS, connect, run_on


class Echo(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.transport.write(data)


@pytest.mark.parametrize("loop", LOOPS)
def test_listen_takes_a_free_port_and_dial_reaches_it(loop):
    async def main():
        network = LoopNetwork(asyncio.get_running_loop())
        listener = await network.listen("127.0.0.1", 0, Echo)
        host, port = listener.address
        assert host == "127.0.0.1"
        assert port > 0
        got = asyncio.get_running_loop().create_future()

        class Client(asyncio.Protocol):
            def data_received(self, data):
                got.set_result(data)

        transport, _ = await network.dial(host, port, Client)
        transport.write(b"ping")
        assert await got == b"ping"
        transport.close()
        listener.close()
        with pytest.raises(ConnectionRefusedError):
            await network.dial(host, port, Client)

    run_on(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
def test_who_connects_before_anybody_accepts_waits_with_what_it_has_sent(loop):
    made = []

    class Counted(Echo):
        def connection_made(self, transport):
            made.append(transport)
            super().connection_made(transport)

    async def main():
        network = LoopNetwork(asyncio.get_running_loop())
        listener = await network.listen("127.0.0.1", 0, Counted, accepting=False)
        reader, writer = await asyncio.open_connection(*listener.address)
        writer.write(b"early")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.1)
        assert made == []
        await listener.accept()
        assert await reader.readexactly(5) == b"early"
        writer.close()
        listener.close()

    run_on(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
def test_a_listener_that_never_accepted_can_be_closed(loop):
    async def main():
        network = LoopNetwork(asyncio.get_running_loop())
        listener = await network.listen("127.0.0.1", 0, Echo, accepting=False)
        listener.close()
        again = await network.listen("127.0.0.1", listener.address[1], Echo)
        again.close()

    run_on(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
def test_a_taken_port_is_an_error(loop):
    async def main():
        network = LoopNetwork(asyncio.get_running_loop())
        listener = await network.listen("127.0.0.1", 0, Echo)
        with pytest.raises(OSError, match=r"[Aa]ddress already in use"):
            await network.listen("127.0.0.1", listener.address[1], Echo)
        listener.close()

    run_on(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
def test_the_empty_host_takes_every_address_under_one_port(loop):
    async def main():
        listener = await LoopNetwork(asyncio.get_running_loop()).listen("", 0, Echo)
        port = listener.address[1]
        with socket.create_connection(("127.0.0.1", port)):
            pass
        if socket.has_dualstack_ipv6():
            with socket.create_connection(("::1", port)):
                pass
        listener.close()

    run_on(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
def test_accepted_sockets_inherit_send_buffer_keep_alive_and_send_at_once(loop):
    async def main():
        made = asyncio.get_running_loop().create_future()

        class Side(asyncio.Protocol):
            def connection_made(self, transport):
                made.set_result(transport)

        listener = await LoopNetwork(asyncio.get_running_loop()).listen(
            "127.0.0.1", 0, Side, send_buffer_bytes=102400
        )
        client = await connect(listener.address)
        accepted = (await made).get_extra_info("socket")
        assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) in (102400, 2 * 102400)
        assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        (await made).close()
        client.close()
        listener.close()

    run_on(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
def test_a_send_buffer_grows_and_does_not_shrink(loop):
    async def main():
        network = LoopNetwork(asyncio.get_running_loop())
        listener = await network.listen("127.0.0.1", 0, Echo, send_buffer_bytes=16_384)
        transport, _ = await network.dial(*listener.address, asyncio.Protocol)
        connection = transport.get_extra_info("socket")

        def size():
            return connection.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)

        grow_send_buffer(transport, 16_384)
        grow_send_buffer(transport, 2 * size())
        grown = size()
        grow_send_buffer(transport, 16_384)
        assert size() == grown
        transport.close()
        listener.close()

    run_on(loop, main())


def test_what_has_no_socket_has_no_buffer_to_grow():
    class Simulated(asyncio.Transport):
        pass

    grow_send_buffer(Simulated(), 1 << 20)
