"""Where incoming bytes lie until they make a frame: one shared buffer, and memory only for unfinished frames.

All connections of a loop read into one buffer, because nothing else runs between `get_buffer` and
`buffer_updated`. What is left of a read after the complete frames were handled is kept by its connection: a
small rest as `bytes`, an unfinished frame of more than 32 KiB, once 4 KiB of it are there, in a buffer of its
own, into which the rest of it is then read without another copy. That buffer grows with the bytes that have
arrived, first step at most 256 KiB and eight times of them, then doubling (large ones in place), and never
by the size the frame announces; a spare buffer of the right size, which is memory that exists already, is
taken whole.

Unfinished frames, and finished ones that wait to be handled, share a budget. Half of it is for the oldest
unfinished frame, which is always read on. When the other half is used up the others stand still, and frames
that hold memory without getting on are given up, so that a stranger who sends halves cannot stop the others.

A connection uses it like this:

    def get_buffer(self, hint):           return self.receiver.get_buffer()
    def buffer_updated(self, n):          self.run(self.receiver.received(n))
    def run(self, end):                   # frames lie in receiver.buffer[0:end]
        ... handle complete frames from `at` on, stop early if answers must wait ...
        self.receiver.keep(at)            # what was not handled comes again with the next `received` or
        `again`
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable

SHARED_BYTES = 256 << 10
OWN_BUFFER_FROM_BYTES = 32 << 10  # frames from here on are read into a buffer of their own
OWN_BUFFER_AFTER_BYTES = 4 << 10  # once so many are there: four bytes shall not cost 256 KiB
FIRST_STEP_BYTES = 256 << 10
FIRST_STEP_TIMES = 8
BUDGET_BYTES = 256 << 20
IN_PLACE_FROM_BYTES = 8 << 20  # larger buffers are not copied when they grow
ROUND_BYTES = 64 << 10  # sizes of new buffers, so that a spare one fits the next frame of the same kind
SPARE_BYTES = 32 << 20
SPARE_COUNT = 64
SCARCE_READ_BYTES = 16 << 10  # most that a connection reads at once while the budget is used up
STALL_CHECK_SECONDS = 1.0
STALL_PROGRESS_BYTES = 64 << 10  # a frame that got less than this in a check's time may be given up

_SIZE = struct.Struct(">i")
_ZEROS = bytes(64 << 10)


class ReceivePool:
    """The shared buffer, the spare ones and the budget of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, budget_bytes: int = BUDGET_BYTES) -> None:
        self.budget_bytes = budget_bytes
        self.held_bytes = 0  # in unfinished frames and rests
        self.shared = bytearray(SHARED_BYTES)
        self.shared_view = memoryview(self.shared)
        self._loop = loop
        self._spare: list[bytearray] = []
        self._spare_bytes = 0
        self._unfinished: dict[FrameReceiver, None] = {}  # oldest first
        self._check: asyncio.TimerHandle | None = None

    def take(self, wanted: int, allowed: int) -> bytearray:
        """A buffer of at most `wanted` bytes: a spare one that fits, else a new one of at most `allowed`."""
        spare = self._spare
        for i in range(len(spare) - 1, -1, -1):  # the one used last is likely still in the caches
            size = len(spare[i])
            if wanted <= size <= 2 * wanted:
                self._spare_bytes -= size
                return spare.pop(i)
        return bytearray(min(wanted + ROUND_BYTES & -ROUND_BYTES, allowed))

    def recycle(self, buffer: bytearray) -> None:
        """Give back a buffer that nothing looks into any more, from `take` or `FrameReceiver.take_buffer`."""
        size = len(buffer)
        if size > SPARE_BYTES // 2:
            return
        while len(self._spare) >= SPARE_COUNT or self._spare_bytes + size > SPARE_BYTES:
            self._spare_bytes -= len(self._spare.pop(0))
        self._spare.append(buffer)
        self._spare_bytes += size

    def started(self, receiver: FrameReceiver) -> None:
        self._unfinished[receiver] = None

    def ended(self, receiver: FrameReceiver) -> None:
        """A frame is complete or was given up: those that stand still may go on."""
        self._unfinished.pop(receiver, None)
        self._resume()

    def released(self, count: int) -> None:
        """Bytes that were held are free again."""
        self.held_bytes -= count
        if self._unfinished:
            self._resume()

    def may_grow(self, receiver: FrameReceiver, by: int) -> bool:
        """Whether this frame may take more memory now; if not, it is resumed later."""
        if next(iter(self._unfinished), None) is receiver or self.held_bytes + by <= self.budget_bytes // 2:
            return True
        if self._check is None:
            for each in self._unfinished:
                each.seen_bytes = each.have
            self._check = self._loop.call_later(STALL_CHECK_SECONDS, self._give_up_stalled)
        return False

    def _resume(self) -> None:
        for receiver in list(self._unfinished):
            if receiver.waiting and not receiver.go_on():
                break

    def _give_up_stalled(self) -> None:
        self._check = None
        waiting = False
        for receiver in list(self._unfinished):
            if receiver.waiting:
                waiting = True
            elif receiver.have - receiver.seen_bytes < STALL_PROGRESS_BYTES:
                receiver.give_up()
        if waiting:
            self._resume()
            if any(receiver.waiting for receiver in self._unfinished) and self._check is None:
                for each in self._unfinished:
                    each.seen_bytes = each.have
                self._check = self._loop.call_later(STALL_CHECK_SECONDS, self._give_up_stalled)


class FrameReceiver:
    """The receiving side of one connection. While nothing is unfinished it holds no buffer.

    `buffer` and `view` are where the bytes lie that `received` counted; they are valid until `keep`, and no
    other connection of the loop may come to `received` or `again` in between. A connection that stops early
    pauses its reading. A frame announced as larger than `max_frame_bytes` is never collected: its size comes
    with the next `received`, and the connection closes.

    `pause(True)` is called when the connection must not read, `pause(False)` when it may again.
    `on_give_up` is called when the unfinished frame was dropped: the connection closes.
    """

    __slots__ = (
        "_need",
        "_own",
        "_own_view",
        "_pool",
        "_rest",
        "_size",
        "buffer",
        "have",
        "max_frame_bytes",
        "on_give_up",
        "pause",
        "seen_bytes",
        "view",
        "waiting",
    )

    def __init__(
        self,
        pool: ReceivePool,
        max_frame_bytes: int,
        pause: Callable[[bool], None],
        on_give_up: Callable[[], None],
    ) -> None:
        self.max_frame_bytes = max_frame_bytes
        self.pause = pause
        self.on_give_up = on_give_up
        self.buffer = pool.shared
        self.view = pool.shared_view
        self.have = 0  # bytes of the unfinished frame in its own buffer
        self.seen_bytes = 0
        self.waiting = False  # for the budget
        self._pool = pool
        self._rest = b""
        self._own: bytearray | None = None
        self._own_view = pool.shared_view
        self._size = 0  # that a large buffer is to have at the next read
        self._need = 0  # size of the unfinished frame with its length field

    def get_buffer(self) -> memoryview:
        """Where the next read goes."""
        if self._own is not None:
            if self.have == len(self._own):
                self._lengthen()
            return self._own_view[self.have : self._need]
        pool, rest = self._pool, len(self._rest)
        if pool.held_bytes >= pool.budget_bytes // 2:
            return pool.shared_view[rest : rest + SCARCE_READ_BYTES]
        return pool.shared_view[rest:] if rest else pool.shared_view

    def received(self, count: int) -> int:
        """Take note of `count` bytes in the buffer of `get_buffer`.

        Returns how many bytes lie in `buffer` for handling: all that are held, or 0 while a frame in a
        buffer of its own is not complete.
        """
        if self._own is not None:
            self.have += count
            if self.have == self._need:
                self.buffer, self.view = self._own, self._own_view
                self._pool.ended(self)
                return self._need
            if self.have == len(self._own):
                self._grow()
            return 0
        pool = self._pool
        self.buffer, self.view = pool.shared, pool.shared_view
        if rest := self._rest:
            pool.shared[: len(rest)] = rest
            self.have = count + len(rest)
            pool.held_bytes -= len(rest)
            self._rest = b""
        else:
            self.have = count
        return self.have

    def again(self) -> int:
        """As `received` without new bytes: to handle what was kept when the connection could not go on."""
        if self._own is not None:
            return self._need if self.have == self._need else 0
        return self.received(0) if self._rest else 0

    def keep(self, at: int) -> None:
        """Everything before `at` is handled; hold the rest until more comes."""
        pool, end = self._pool, self.have
        if self._own is not None:
            assert at in (0, end), "a frame in a buffer of its own is handled whole"
            if at:
                own, self._own = self._own, None
                self.buffer, self.view, self._own_view = pool.shared, pool.shared_view, pool.shared_view
                self.have = 0
                pool.recycle(own)
                pool.released(len(own))
            return
        self.have = 0
        if at >= end:  # beyond it after `take_buffer`
            return
        if end - at >= 4:
            need = _SIZE.unpack_from(self.buffer, at)[0] + 4
            if (
                OWN_BUFFER_FROM_BYTES <= need <= self.max_frame_bytes + 4
                and OWN_BUFFER_AFTER_BYTES <= end - at < need
            ):
                self._start(at, end, need)
                return
        self._rest = bytes(self.view[at:end])
        pool.held_bytes += end - at

    def take_buffer(self) -> bytearray | None:
        """Keep the buffer of the frame being handled beyond `keep`, if it is the frame's own.

        The taker gives it to `ReceivePool.recycle` when it is done. None: the frame lies in the shared
        buffer and what must outlive `keep` has to be copied.
        """
        own, pool = self._own, self._pool
        if own is not None:
            self._own = None
            self._own_view = pool.shared_view
            self.have = 0
            pool.released(len(own))
        return own

    def close(self) -> None:
        """The connection is lost: let go of memory, and of the callbacks, which refer back to it."""
        pool = self._pool
        self.pause, self.on_give_up = _ignore_pause, _ignore
        pool.held_bytes -= len(self._rest)
        self._rest = b""
        if self._own is not None:
            pool.held_bytes -= max(self._size, len(self._own))
            self._own = None
            self._own_view = pool.shared_view
            self.waiting = False
            pool.ended(self)

    def go_on(self) -> bool:
        """Called by the pool: try again to take memory. False if there is still none."""
        self._grow()
        return not self.waiting

    def give_up(self) -> None:
        """Called by the pool: drop the unfinished frame and have the connection closed."""
        tell = self.on_give_up
        self.close()
        tell()

    def _start(self, at: int, end: int, need: int) -> None:
        have = end - at
        pool = self._pool
        scarce = pool.held_bytes >= pool.budget_bytes // 2
        step = max(have, min(FIRST_STEP_BYTES, FIRST_STEP_TIMES * have))
        self._own = pool.take(need, have if scarce else step)
        self._own_view = memoryview(self._own)
        self._own_view[:have] = self.view[at:end]
        self.have, self._need, self._size = have, need, 0
        self.seen_bytes = -STALL_PROGRESS_BYTES
        pool.held_bytes += len(self._own)
        pool.started(self)
        if have == len(self._own) or scarce:
            self._grow()

    def _lengthen(self) -> None:
        """Bring a large buffer to the size that `_grow` planned. Nothing looks into it before a read."""
        own = self._own
        assert own is not None
        self._own_view.release()
        while len(own) < self._size:
            own += _ZEROS[: self._size - len(own)]
        self._own_view = memoryview(own)

    def _grow(self) -> None:
        assert self._own is not None
        old, pool = self._own, self._pool
        more = min(self._need, 2 * len(old)) - len(old) if self.have == len(old) >= self._size else 0
        in_place = len(old) >= IN_PLACE_FROM_BYTES
        copied = 0 if in_place else len(old)  # the old and the new are both there while it is copied
        if not pool.may_grow(self, copied + more if more else 0):
            if not self.waiting:
                self.waiting = True
                self.pause(True)
            return
        if more and in_place:
            self._size = len(old) + more
            pool.held_bytes += more
        elif more:
            new = pool.take(self._need, 2 * len(old))
            view = memoryview(new)
            view[: self.have] = self._own_view[: self.have]
            self._own, self._own_view = new, view
            pool.held_bytes += len(new) - len(old)
            pool.recycle(old)
        if self.waiting:
            self.waiting = False
            self.pause(False)


def _ignore() -> None:
    return None


def _ignore_pause(pause: bool) -> None:
    return None
