"""The sendfile route on real sockets, on both loops, and its read-and-write fallback."""

import asyncio
import errno
import gc
import os
import random

import pytest

from runtime.blocking import ThreadBlocking
from runtime.descriptors import DescriptorCache
from runtime.files import FileRegion
from runtime.network import LoopNetwork
from runtime.os_files import OsFileSystem
from runtime.outgoing import Outgoing
from tests.unit.runtime.loops import LOOPS, connect, read_exactly, run_on, until

ROUTES = [pytest.param(True, id="sendfile"), pytest.param(False, id="read-write")]


class Side(asyncio.Protocol):
    """The broker's side of a connection."""

    def __init__(self, made, sendfile, blocking=None):
        self.made, self.sendfile, self.blocking = made, sendfile, blocking
        self.lost = asyncio.get_running_loop().create_future()
        self.drained = 0

    def connection_made(self, transport):
        self.transport = transport
        self.outgoing = Outgoing(transport, asyncio.get_running_loop(), self.blocking, sendfile=self.sendfile)
        self.outgoing.on_drained = self.on_drained
        self.made.set_result(self)

    def on_drained(self):
        self.drained += 1

    def pause_writing(self):
        self.outgoing.pause_writing()

    def resume_writing(self):
        self.outgoing.resume_writing()

    def connection_lost(self, exc):
        self.outgoing.close()
        self.lost.set_result(exc)


async def pair(sendfile=True, blocking=None):
    """A connected broker side and client socket, with Kafka's send buffer of 100 KiB."""
    loop = asyncio.get_running_loop()
    made = loop.create_future()
    listener = await LoopNetwork(loop).listen(
        "127.0.0.1", 0, lambda: Side(made, sendfile, blocking), send_buffer_bytes=102400
    )
    client = await connect(listener.address)
    side = await made
    listener.close()
    return side, client


@pytest.fixture
def files():
    return OsFileSystem(DescriptorCache(8))


def make_file(files, path, size, seed=1):
    data = random.Random(seed).randbytes(size)
    handle = files.open(str(path), create=True)
    handle.append([data])
    return handle, data


@pytest.mark.parametrize("sendfile", ROUTES)
@pytest.mark.parametrize("loop", LOOPS)
def test_fifty_interleaved_headers_and_regions_arrive_byte_exact(loop, sendfile, files, tmp_path):
    async def main():
        side, client = await pair(sendfile)
        handle, data = make_file(files, tmp_path / "a", 700_000)
        draw, expected = random.Random(7), []
        for i in range(50):
            parts, start = [], draw.randrange(600_000)
            length = draw.choice([0, 1, 300, 20_000, 99_000])
            parts.append(b"head%d" % i)
            parts.append(FileRegion(handle, start, length))
            expected += [b"head%d" % i, data[start : start + length]]
            if i % 3 == 0:
                parts.append(memoryview(b"tail"))
                expected.append(b"tail")
            if i % 10 == 9:
                side.outgoing.write(b"plain")
                expected.append(b"plain")
            side.outgoing.send(parts)
        # the one write above came before its send
        wanted = b"".join(_in_order(expected))
        assert await read_exactly(client, len(wanted)) == wanted
        client.close()
        await side.lost
        assert handle._pins == []

    run_on(loop, main())


def _in_order(expected):
    """`write` was called before `send` of the same round, but noted after its parts: swap them."""
    pieces = []
    for piece in expected:
        if piece == b"plain":
            at = len(pieces) - 1
            while not pieces[at].startswith(b"head"):
                at -= 1
            pieces.insert(at, piece)
        else:
            pieces.append(piece)
    return pieces


@pytest.mark.parametrize("sendfile", ROUTES)
@pytest.mark.parametrize("loop", LOOPS)
def test_a_slow_reader_gets_everything_and_the_owner_is_told_when_it_left(loop, sendfile, files, tmp_path):
    async def main():
        side, client = await pair(sendfile)
        handle, data = make_file(files, tmp_path / "a", 3_000_000)
        side.outgoing.send([b"h", FileRegion(handle, 0, len(data)), b"t"])
        assert side.outgoing.busy
        assert side.outgoing.buffered_bytes < 2_000_000  # the region takes no memory (a piece of it may)
        assert side.drained == 0
        got = await read_exactly(client, len(data) + 2, lambda: asyncio.sleep(0))
        assert got == b"h" + data + b"t"
        await until(lambda: not side.outgoing.busy)
        assert side.drained == 1
        assert side.outgoing.buffered_bytes == 0
        side.outgoing.write(b"again")
        assert await read_exactly(client, 5) == b"again"
        client.close()
        await side.lost

    run_on(loop, main())


@pytest.mark.parametrize("sendfile", ROUTES)
@pytest.mark.parametrize("loop", LOOPS)
def test_a_peer_that_closes_in_the_middle_leaves_nothing_open(loop, sendfile, files, tmp_path):
    async def main():
        for _ in range(20):  # the next connection gets the numbers of the last one's descriptors
            side, client = await pair(sendfile)
            handle, data = make_file(files, tmp_path / "a", 2_000_000)
            side.outgoing.send([FileRegion(handle, 0, 2_000_000), FileRegion(handle, 5, 10), b"x"])
            await read_exactly(client, 50_000)
            client.close()
            await side.lost
            assert handle._pins == []
            assert side.outgoing._dup == -1
            side.outgoing.write(b"ignored")
            side.outgoing.send([b"ignored", FileRegion(handle, 0, 5)])
            handle.close()
            os.remove(tmp_path / "a")
        side, client = await pair(sendfile)
        handle, data = make_file(files, tmp_path / "a", 500_000)
        side.outgoing.send([b"h", FileRegion(handle, 0, 500_000)])
        assert await read_exactly(client, 500_001) == b"h" + data
        client.close()
        await side.lost

    run_on(loop, main())


@pytest.mark.parametrize("sendfile", ROUTES)
@pytest.mark.parametrize("loop", LOOPS)
def test_a_file_removed_and_evicted_during_the_send_is_sent_whole(loop, sendfile, files, tmp_path):
    async def main():
        side, client = await pair(sendfile)
        handle, data = make_file(files, tmp_path / "a", 2_000_000)
        side.outgoing.send([FileRegion(handle, 0, 2_000_000)])
        handle.rename(str(tmp_path / "a.deleted"))
        os.remove(tmp_path / "a.deleted")
        handle.close()
        for i in range(20):
            files.open(str(tmp_path / f"other{i}"), create=True)
        assert await read_exactly(client, 2_000_000) == data
        await until(lambda: not handle._pins)
        assert handle._fd == -1
        client.close()
        await side.lost

    run_on(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
def test_a_file_that_ends_before_its_region_ends_the_connection(loop, files, tmp_path, caplog):
    async def main():
        side, client = await pair()
        handle, data = make_file(files, tmp_path / "a", 100)
        side.outgoing.send([b"h", FileRegion(handle, 50, 100)])
        assert await read_exactly(client, 1000) == b"h" + data[50:]
        await side.lost
        assert handle._pins == []
        client.close()

    run_on(loop, main())
    assert "ends before the region" in caplog.text


@pytest.mark.parametrize("loop", LOOPS)
def test_a_file_that_is_gone_before_it_was_queued_ends_the_connection(loop, tmp_path, caplog):
    async def main():
        files = OsFileSystem(DescriptorCache(1))
        side, client = await pair()
        handle, _ = make_file(files, tmp_path / "a", 100)
        files.open(str(tmp_path / "b"), create=True)
        os.remove(tmp_path / "a")
        side.outgoing.send([b"h", FileRegion(handle, 0, 100), b"never"])
        assert await read_exactly(client, 1000) == b"h"
        await side.lost
        client.close()

    run_on(loop, main())
    assert "No such file" in caplog.text


@pytest.mark.parametrize("sendfile", ROUTES)
@pytest.mark.parametrize("loop", LOOPS)
def test_finish_lets_everything_leave_and_drops_what_comes_later(loop, sendfile, files, tmp_path):
    async def main():
        side, client = await pair(sendfile)
        handle, data = make_file(files, tmp_path / "a", 1_500_000)
        side.outgoing.send([b"h", FileRegion(handle, 0, 1_500_000), b"t"])
        side.outgoing.finish()
        side.outgoing.write(b"late")
        assert await read_exactly(client, 2_000_000) == b"h" + data + b"t"
        await side.lost
        client.close()
        other, client = await pair(sendfile)
        other.outgoing.write(b"x")
        other.outgoing.finish()
        assert await read_exactly(client, 10) == b"x"
        await other.lost
        client.close()

    run_on(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
def test_a_client_that_does_not_read_is_cut_off_at_the_bound(loop, caplog):
    async def main():
        side, client = await pair()
        side.outgoing.max_buffered_bytes = 1_000_000
        answer = bytes(200_000)
        for _ in range(60):
            side.outgoing.write(answer)
            if side.transport.is_closing():
                break
        assert side.outgoing.buffered_bytes <= 1_000_000 + len(answer)
        assert side.transport.is_closing()
        await side.lost
        client.close()

    run_on(loop, main())
    assert "not read" in caplog.text


@pytest.mark.parametrize("loop", LOOPS)
def test_a_long_region_leaves_other_connections_their_turn(loop, files, tmp_path):
    async def main():
        one, fast = await pair()
        handle, _ = make_file(files, tmp_path / "a", 20_000_000)
        one.outgoing.send([FileRegion(handle, 0, 20_000_000)])
        other, client = await pair()
        other.outgoing.write(b"soon")
        assert await read_exactly(client, 4) == b"soon"
        assert one.outgoing.busy
        for each in (fast, client):
            each.close()
        await asyncio.gather(one.lost, other.lost)

    run_on(loop, main())


@pytest.mark.parametrize("sendfile", ROUTES)
@pytest.mark.parametrize("loop", LOOPS)
def test_more_regions_than_may_be_held_leave_all_the_same(loop, sendfile, files, tmp_path):
    async def main():
        side, client = await pair(sendfile)
        made = [make_file(files, tmp_path / str(i), 100_000, i) for i in range(30)]
        side.outgoing.send([FileRegion(handle, 0, 100_000) for handle, _ in made])
        cache = files.descriptors
        assert side.outgoing.busy
        assert cache.held_count <= cache.held_max
        assert cache.open_count <= cache.limit
        wanted = b"".join(data for _, data in made)
        assert await read_exactly(client, len(wanted), lambda: asyncio.sleep(0)) == wanted
        assert (cache.held_count, [handle._pins for handle, _ in made]) == (0, [[]] * 30)
        client.close()
        await side.lost

    run_on(loop, main())


@pytest.mark.parametrize("gone", [0, 29])
@pytest.mark.parametrize("loop", LOOPS)
def test_a_held_file_may_be_removed_and_one_that_is_not_held_ends_the_connection(
    loop, gone, files, tmp_path, caplog
):
    async def main():
        side, client = await pair()
        made = [make_file(files, tmp_path / str(i), 100_000, i) for i in range(30)]
        side.outgoing.send([FileRegion(handle, 0, 100_000) for handle, _ in made])
        os.remove(tmp_path / str(gone))
        made[gone][0].close()
        wanted = b"".join(data for _, data in made)
        got = await read_exactly(client, len(wanted), lambda: asyncio.sleep(0))
        assert got == wanted[: len(got)]
        assert (len(got) < len(wanted)) == bool(gone)
        client.close()
        await side.lost
        assert files.descriptors.held_count == 0

    run_on(loop, main())
    assert ("is closed" in caplog.text) == bool(gone)


@pytest.mark.parametrize("loop", LOOPS)
def test_without_a_descriptor_for_sendfile_a_region_is_read_and_written(loop, files, tmp_path, monkeypatch):
    def none_left(fd):
        raise OSError(errno.EMFILE, "too many open files")

    async def main():
        side, client = await pair()
        handle, data = make_file(files, tmp_path / "a", 700_000)
        monkeypatch.setattr(os, "dup", none_left)
        side.outgoing.send([b"h", FileRegion(handle, 0, len(data)), b"t"])
        assert await read_exactly(client, len(data) + 2) == b"h" + data + b"t"
        client.close()
        await side.lost
        assert handle._pins == []

    run_on(loop, main())


class ColdOnce:
    """A handle whose bytes are not in the page cache until somebody warms them."""

    def __init__(self, handle, error=None):
        self.handle, self.error, self.warmed, self.cold = handle, error, [], True
        self.path, self.acquire_fd, self.release_fd = handle.path, handle.acquire_fd, handle.release_fd
        self.read_at, self.hold, self.let_go = handle.read_at, handle.hold, handle.let_go

    def is_cached(self, position, length):
        return not self.cold

    def warm(self, position, length):
        if self.error:
            raise self.error
        self.warmed.append((position, length))
        self.cold = False


@pytest.mark.parametrize("sendfile", ROUTES)
@pytest.mark.parametrize("loop", LOOPS)
def test_cold_bytes_are_read_by_a_thread_before_the_loop_sends_them(loop, sendfile, files, tmp_path):
    async def main():
        blocking = ThreadBlocking(asyncio.get_running_loop())
        side, client = await pair(sendfile, blocking)
        handle, data = make_file(files, tmp_path / "a", 200_000)
        cold = ColdOnce(handle)
        side.outgoing.send([b"h", FileRegion(cold, 0, 200_000), b"t"])
        side.outgoing.write(b"!")
        assert side.outgoing.busy
        assert await read_exactly(client, 200_003) == b"h" + data + b"t!"
        assert cold.warmed == [(0, 200_000)]
        assert side.drained >= 1
        assert handle._pins == []
        client.close()
        await side.lost
        blocking.close()

    run_on(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
def test_a_cold_read_that_fails_ends_the_connection(loop, files, tmp_path, caplog):
    async def main():
        blocking = ThreadBlocking(asyncio.get_running_loop())
        side, client = await pair(True, blocking)
        handle, _ = make_file(files, tmp_path / "a", 200_000)
        side.outgoing.send([FileRegion(ColdOnce(handle, OSError(errno.EIO, "bad sector")), 0, 200_000)])
        assert await read_exactly(client, 10) == b""
        await side.lost
        assert handle._pins == []
        client.close()
        blocking.close()

    run_on(loop, main())
    assert "bad sector" in caplog.text


@pytest.mark.parametrize("loop", LOOPS)
def test_made_late_it_does_not_overtake_what_the_transport_holds(loop, files, tmp_path):
    class Late(Side):
        outgoing = None

        def connection_made(self, transport):
            self.transport = transport
            for _ in range(30):
                transport.write(bytes(20_000))  # uvloop keeps these until the turn ends
            self.outgoing = Outgoing(transport, asyncio.get_running_loop())
            self.made.set_result(self)

        def pause_writing(self):
            if self.outgoing is not None:
                self.outgoing.pause_writing()

    async def main():
        running = asyncio.get_running_loop()
        made = running.create_future()
        listener = await LoopNetwork(running).listen(
            "127.0.0.1", 0, lambda: Late(made, True), send_buffer_bytes=102400
        )
        client = await connect(listener.address)
        side = await made
        handle, data = make_file(files, tmp_path / "a", 300_000)
        side.outgoing.send([b"h", FileRegion(handle, 0, 300_000)])
        assert await read_exactly(client, 900_001) == bytes(600_000) + b"h" + data
        client.close()
        await side.lost
        listener.close()

    run_on(loop, main())


@pytest.mark.parametrize("loop", LOOPS)
def test_idle_it_owns_no_buffer(loop):
    async def main():
        side, client = await pair()
        assert side.outgoing._queue is None
        assert not side.outgoing.busy
        held = [o for o in gc.get_referents(side.outgoing) if isinstance(o, (bytes, bytearray, list))]
        assert held == []
        client.close()
        await side.lost

    run_on(loop, main())
