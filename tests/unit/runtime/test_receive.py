"""Frame assembly: every cut of a stream gives the same frames, and memory follows what arrived."""

import asyncio
import random
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime import receive
from runtime.receive import FrameReceiver, ReceivePool

MAX_FRAME = 100 << 20


class LoopStub:
    """Takes timers and runs them when told."""

    def __init__(self):
        self.later = []

    def call_later(self, delay, callback):
        self.later.append(callback)
        return object()

    def run(self):
        later, self.later = self.later, []
        for callback in later:
            callback()


class Client:
    """A connection in the shape that `receive` documents; `limit` frames at most are handled at once."""

    def __init__(self, pool, limit=1 << 30, take=False):
        self.pool, self.limit, self.take = pool, limit, take
        self.frames, self.paused, self.given_up = [], False, False
        self.receiver = FrameReceiver(pool, MAX_FRAME, self.pause, self.on_give_up)

    def pause(self, paused):
        self.paused = paused

    def on_give_up(self):
        self.given_up = True

    def feed(self, data):
        """As the loop does: into the buffer that is offered; returns what was not read because of a pause."""
        data = memoryview(data)
        while data and not self.paused:
            room = self.receiver.get_buffer()
            assert len(room) > 0
            count = min(len(room), len(data))
            room[:count] = data[:count]
            self.run(self.receiver.received(count))
            data = data[count:]
        return bytes(data)

    def run(self, end):
        at, handled, buffer = 0, 0, self.receiver.buffer
        while end - at >= 4 and handled < self.limit:
            size = struct.unpack_from(">i", buffer, at)[0]
            if end - at - 4 < size:
                break
            self.frames.append(bytes(buffer[at + 4 : at + 4 + size]))
            at, handled = at + 4 + size, handled + 1
        if end:
            if at and self.take and (own := self.receiver.take_buffer()) is not None:
                self.pool.recycle(own)
            self.receiver.keep(at)


def frame(body):
    return struct.pack(">i", len(body)) + body


SIZES = st.one_of(
    st.integers(0, 50),
    st.integers(30_000, 36_000),
    st.integers(0, 700_000),
    st.sampled_from([32_764, 262_140]),
)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(
    st.lists(SIZES, max_size=6),
    st.lists(st.one_of(st.integers(1, 9), st.integers(1, 300_000)), max_size=12),
    st.booleans(),
)
def test_any_cut_of_the_stream_gives_the_same_frames(sizes, cuts, take):
    draw = random.Random(len(sizes))
    bodies = [draw.randbytes(size) for size in sizes]
    stream = b"".join(map(frame, bodies))
    pool = ReceivePool(LoopStub())
    client = Client(pool, take=take)
    at = 0
    for cut in cuts:
        assert client.feed(stream[at : at + cut]) == b""
        at += cut
    client.feed(stream[at:])
    assert client.frames == bodies
    assert pool.held_bytes == 0


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 9_000), min_size=1, max_size=12), st.integers(1, 3))
def test_what_was_not_handled_comes_again_in_order(sizes, limit):
    bodies = [bytes([i]) * size for i, size in enumerate(sizes)]
    pool = ReceivePool(LoopStub())
    client = Client(pool, limit)
    client.feed(b"".join(map(frame, bodies)))
    for _ in sizes:
        if end := client.receiver.again():
            client.run(end)
    assert client.frames == bodies
    assert pool.held_bytes == 0


def test_connections_take_turns_in_the_shared_buffer():
    pool = ReceivePool(LoopStub())
    one, two = Client(pool), Client(pool)
    first, second = frame(b"a" * 100), frame(b"b" * 100)
    for i in range(104):
        one.feed(first[i : i + 1])
        two.feed(second[i : i + 1])
    assert one.frames == [b"a" * 100]
    assert two.frames == [b"b" * 100]


def test_memory_follows_the_bytes_that_arrived_and_not_the_announced_size():
    pool = ReceivePool(LoopStub())
    client = Client(pool)
    client.feed(struct.pack(">i", 90 << 20) + b"x")
    assert pool.held_bytes <= receive.FIRST_STEP_BYTES
    arrived, sizes = 1, []
    while arrived < 3 << 20:
        client.feed(bytes(100_000))
        arrived += 100_000
        sizes.append(pool.held_bytes)
        assert pool.held_bytes <= max(receive.FIRST_STEP_BYTES, 2 * (arrived + 4))
    assert len(set(sizes)) <= 5  # doubling, not growing by each read
    client.receiver.close()
    assert pool.held_bytes == 0


def test_a_few_bytes_cost_a_few_bytes():
    pool = ReceivePool(LoopStub())
    client = Client(pool)
    client.feed(struct.pack(">i", 90 << 20))
    assert pool.held_bytes == 4
    arrived = 4
    for _ in range(100):
        client.feed(bytes(100))
        arrived += 100
        assert pool.held_bytes <= receive.FIRST_STEP_TIMES * arrived
    client.receiver.close()
    assert pool.held_bytes == 0


def test_a_complete_frame_counts_until_it_is_handled():
    pool = ReceivePool(LoopStub())
    client = Client(pool, limit=0)
    client.feed(frame(bytes(400_000)))
    assert pool.held_bytes >= 400_004
    client.receiver.again()
    client.receiver.keep(400_004)
    assert pool.held_bytes == 0


def test_all_together_stay_within_the_budget_while_buffers_are_copied():
    pool = ReceivePool(LoopStub(), budget_bytes=4 << 20)
    clients = [Client(pool) for _ in range(8)]
    left = [frame(bytes(1_500_000)) for _ in clients]
    most = 0
    for _ in range(200):
        for i, client in enumerate(clients):
            if not client.paused and left[i]:
                left[i] = client.feed(left[i][:100_000]) + left[i][100_000:]
                most = max(most, pool.held_bytes)
    assert most <= 4 << 20
    assert [len(client.frames) for client in clients] == [1] * 8


def test_large_buffers_grow_in_place_and_keep_their_bytes():
    pool = ReceivePool(LoopStub())
    client = Client(pool)
    body = random.Random(2).randbytes(40 << 20)
    data = memoryview(frame(body))
    buffers = set()
    for at in range(0, len(data), 1 << 20):
        client.feed(data[at : at + (1 << 20)])
        if client.receiver._own is not None and at >= 2 * receive.IN_PLACE_FROM_BYTES:
            buffers.add(id(client.receiver._own))
            assert pool.held_bytes <= 2 * (at + (1 << 20))
    assert len(buffers) == 1
    assert client.frames == [body]
    assert pool.held_bytes == 0


def test_a_connection_lost_while_a_large_buffer_grows_holds_nothing():
    pool = ReceivePool(LoopStub())
    client = Client(pool)
    client.feed(frame(bytes(40 << 20))[: receive.IN_PLACE_FROM_BYTES])
    client.receiver.close()
    assert pool.held_bytes == 0


def test_an_idle_connection_holds_nothing():
    pool = ReceivePool(LoopStub())
    client = Client(pool)
    client.feed(frame(bytes(500_000)))
    assert client.receiver.buffer is pool.shared


def test_spare_buffers_are_used_again_and_bounded():
    pool = ReceivePool(LoopStub())
    client = Client(pool)
    client.feed(frame(bytes(1 << 20)))
    spare = pool._spare[-1]
    client.feed(frame(bytes(1 << 20))[:300_000])
    assert client.receiver._own is spare
    client.receiver.close()
    for _ in range(200):
        pool.recycle(bytearray(1 << 20))
    assert pool._spare_bytes <= receive.SPARE_BYTES
    assert len(pool._spare) <= receive.SPARE_COUNT


def test_a_taken_buffer_stays_untouched_until_it_is_recycled():
    pool = ReceivePool(LoopStub())
    client = Client(pool, limit=0)
    body = random.Random(1).randbytes(400_000)
    client.feed(frame(body))
    assert client.receiver.again() == 400_004
    own = client.receiver.take_buffer()
    client.receiver.keep(400_004)
    client.limit = 10
    client.feed(frame(bytes(400_000)))
    assert bytes(own[4:400_004]) == body
    assert client.receiver.take_buffer() is None


def test_a_frame_beyond_the_limit_is_not_collected():
    pool = ReceivePool(LoopStub())
    client = Client(pool)
    client.feed(struct.pack(">i", MAX_FRAME + 1) + bytes(1000))
    assert client.receiver._own is None
    assert pool.held_bytes == 1004
    end = client.receiver.again()
    assert struct.unpack_from(">i", client.receiver.buffer, 0)[0] == MAX_FRAME + 1
    client.receiver.keep(end)
    assert pool.held_bytes == 0


@pytest.fixture
def scarce():
    """A budget of 1 MiB, with five connections that each start a frame of 800 KB."""
    loop = LoopStub()
    pool = ReceivePool(loop, budget_bytes=1 << 20)
    clients = [Client(pool) for _ in range(5)]
    body = bytes(800_000)
    left = [client.feed(frame(body)[:300_000]) for client in clients]
    return loop, pool, clients, [rest + frame(body)[300_000:] for rest in left]


def test_beyond_the_budget_only_the_oldest_is_read_on(scarce):
    _loop, pool, clients, left = scarce
    assert not clients[0].paused
    assert all(client.paused for client in clients[2:])
    assert pool.held_bytes <= (1 << 20) + 5 * receive.FIRST_STEP_BYTES
    clients[0].feed(left[0])
    assert len(clients[0].frames) == 1
    for _ in range(5):  # the others follow one after the other
        for i, client in enumerate(clients):
            if i and not client.paused and left[i]:
                left[i] = client.feed(left[i])
    assert [len(client.frames) for client in clients] == [1] * 5
    assert pool.held_bytes == 0
    assert not any(client.given_up for client in clients)


def test_frames_that_stand_still_are_given_up_when_memory_is_short(scarce):
    loop, pool, clients, _left = scarce
    moving = [client for client in clients if not client.paused]
    loop.run()  # one second later nothing has come
    assert [client.given_up for client in moving] == [True] * len(moving)
    assert any(not client.paused for client in clients if client not in moving)
    for client in clients:
        client.receiver.close()
    assert pool.held_bytes == 0


def test_a_frame_that_gets_on_is_not_given_up(scarce):
    loop, _pool, clients, left = scarce
    left[0] = clients[0].feed(left[0][:100_000]) + left[0][100_000:]
    loop.run()
    assert not clients[0].given_up
    clients[0].feed(left[0])
    assert len(clients[0].frames) == 1


def test_closing_lets_the_waiting_ones_go_on(scarce):
    _loop, pool, clients, _left = scarce
    clients[0].receiver.close()
    clients[1].receiver.close()
    assert not clients[2].paused
    for client in clients:
        client.receiver.close()
        client.receiver.close()
    assert pool.held_bytes == 0


def test_a_closed_receiver_does_not_refer_back_to_its_connection():
    client = Client(ReceivePool(asyncio.new_event_loop()))
    client.pool._loop.close()
    client.receiver.close()
    assert client.receiver.pause != client.pause
    assert client.receiver.on_give_up != client.on_give_up
