"""One client connection: frames in, answers out, strictly in order.

The whole of a request's life on the hot path happens inside `buffer_updated`: frames are found in the shared
receive buffer, a remembered shape (see `handlers/produce_shapes.py`, `fetch_shapes.py`) or the dispatcher
serves each, and the answers of one read leave in one write, because with uvloop each write is a system call.

States, held in three fields rather than an enum because they are independent of each other:
- `waiting`: the request in front waits (long poll, acks=all, work in a thread or task). What arrived behind
  it stays with the receiver, reading stops as soon as more arrives, and nothing overtakes: answers come in
  request order.
- `full`: the peer does not read its answers; nothing more is served until it has.
- `in_turn`: answers in `out` depend on a write that the turn has yet to make; they leave with `Turn.flush`.

A request may be answered after those behind it were served, as commits of offsets are that one turn writes:
its answer has a place in `out` (`expect_answer`), and nothing leaves before all places are filled. Where one
is not by the end of the turn, the connection waits. Answers to writes that wait for replicas stand in a queue
of their own, behind `out` (see `promises.py`).

Bounds: the receiver counts what is unfinished or waits against the budget that all connections share, and
`out` is passed to the transport once it holds `ANSWER_BYTES`.
"""

from __future__ import annotations

import asyncio
import struct
from typing import TYPE_CHECKING, Any, cast

from broker.net.costly import SLICE_SECONDS
from broker.net.frame_size import FRAME_BYTES_MIN, GENERAL_BYTES_MAX, refusal_of_size
from broker.net.hub import SHAPES_IN_ALL_MAX, log
from broker.net.long_poll import LongPoll
from broker.net.promises import NO_PROMISES, PROMISED, give_up
from broker.net.waits import TAKING_TURNS, UNANSWERED, Waiting
from runtime.outgoing import Outgoing
from runtime.receive import FrameReceiver

if TYPE_CHECKING:
    from broker.net.hub import Hub
    from broker.net.listener import Listener
    from broker.net.promises import Promises
    from broker.net.shape import Shape
    from replication.partition import Partition

HEAD = struct.Struct(">iii")  # frame size, API key and version, correlation id
SIZE = struct.Struct(">i")
ANSWER_BYTES = 256 << 10  # answers held back to leave together
OPEN = b""  # stands in `out` for an answer that is still to come
OPEN_MAX = 32  # such answers of a connection; what is behind them waits
PATIENT_BYTES = 32 << 10  # so much may wait behind a request without a pause of reading
SHAPES_MAX = 1_024  # remembered request shapes of a connection: one for each topic it writes to
SHAPE_BYTES_MAX = 1024  # of a request that is worth remembering, without its records


class Connection(LongPoll, asyncio.BufferedProtocol):
    """See the module. Public fields are for the handlers of the hot APIs and the dispatcher."""

    __slots__ = (
        "_generation",
        "_holding",
        "_last",
        "_lengths",
        "_outgoing",
        "_paused",
        "_receiver",
        "_shapes",
        "client_software",
        "closed",
        "costly",
        "full",
        "have",
        "held_bytes",
        "in_turn",
        "listener",
        "out",
        "peer_ip",
        "peer_port",
        "promised",
        "regions",
        "seen",
        "transport",
        "unanswered",
    )

    def __init__(self, hub: Hub, listener: Listener) -> None:
        self.hub, self.listener = hub, listener
        self.transport: asyncio.Transport = cast(asyncio.Transport, None)
        self.peer_ip, self.peer_port = "", 0
        self.out: list[Any] = []
        self.regions = False  # a FileRegion is among the answers
        self.unanswered = 0  # places in `out` that are still open
        self.promised: Promises = NO_PROMISES  # answers behind those in `out`
        self.waiting: Waiting | None = None
        self.costly: bool | None = None  # see broker.net.costly
        self.late = False  # the waiting time of the request in front is over
        self.bucket: dict[Any, None] | None = None  # of deadlines, in which the request in front is noted
        self._parked_on: Partition | None = None
        self.full = self.in_turn = self._paused = self.closed = False
        self.have = 0  # end of the bytes that are being served
        self.held_bytes = 0  # about what stands in `out`; who adds much looks at ANSWER_BYTES and flushes
        self.seen = hub.tick
        self.client_software = ""
        self._receiver = FrameReceiver(hub.receiving, hub.max_frame_bytes, self._pause, self._given_up)
        self._holding = False  # the receiver keeps something
        self._outgoing: Outgoing | None = None
        self._generation = hub.generation
        self._last: Shape | None = None  # that served the last request; it knows which came after it before
        self._shapes: dict[tuple[int, bytes], Shape] | None = None
        self._lengths: dict[tuple[int, int], None] | None = None

    # -- called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.listener.connected(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.closed = True
        if self.waiting is not None:
            waiting, self.waiting = self.waiting, None
            waiting.cancel(self)
        give_up(self)
        self._receiver.close()
        self.hub.unread.remove(self)
        if self._outgoing is not None:
            self._outgoing.close()
        self.forget_shapes()
        self.listener.disconnected(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._receiver.get_buffer() if self._holding else self.hub.shared_view

    def buffer_updated(self, nbytes: int) -> None:
        hub = self.hub
        self.seen = hub.tick
        if self._holding or self.waiting is not None or self.full or self.closed:
            self._received(nbytes)
            return
        # All there is are the new bytes in the shared buffer, and mostly they are whole frames.
        if self._generation != hub.generation:
            self.forget_shapes()
        hub.serving = True
        try:
            at = self._serve(hub.shared, nbytes, False)
        finally:
            hub.serving = False
        if not self.in_turn:
            self.flush()
        if at < nbytes:
            self._receiver.received(nbytes)
            self._stop_at(hub.shared, at, nbytes)

    def _received(self, nbytes: int) -> None:
        """More of what was begun, or something that may not be served yet."""
        receiver = self._receiver
        have = receiver.received(nbytes)
        if self.waiting is not None or self.full or self.closed:
            if have:
                receiver.keep(0)
                self._holding = True
            self._pause(True)  # an unfinished frame too: it is not collected while another one waits
        elif have:
            self._run(have)

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self.full = True
        self.hub.unread.add(self, self.transport.get_write_buffer_size())
        if self._outgoing is not None:
            self._outgoing.pause_writing()

    def resume_writing(self) -> None:
        self.hub.unread.remove(self)
        if self._outgoing is not None:
            self._outgoing.resume_writing()  # calls `_drained` once nothing waits behind it either
        else:
            self._drained()

    # -- serving

    def _run(self, have: int) -> None:
        """Serve the frames that lie in the receiver's buffer as far as they are whole and may be served
        now.
        """
        hub, receiver = self.hub, self._receiver
        buf = receiver.buffer
        own = buf is not hub.receiving.shared
        if self._generation != hub.generation:
            self.forget_shapes()
        hub.serving = True
        try:
            at = self._serve(buf, have, own)
        finally:
            hub.serving = False
        if own and self.in_turn and at:
            hub.turn.keep(receiver.take_buffer())
        if not self.in_turn:
            self.flush()
        if at < have:
            self._stop_at(buf, at, have)
        else:
            receiver.keep(at)
            self._holding = False

    def _serve(self, buf: bytearray, have: int, own: bool) -> int:
        """The frames in buf[:have], one after the other; where the first one begins that was not served."""
        hub = self.hub
        self.have = have
        at, last = 0, self._last
        began = 0.0
        unpack = HEAD.unpack_from
        while have - at >= 12:
            size, api, correlation_id = unpack(buf, at)
            end = at + 4 + size
            if end > have or size < FRAME_BYTES_MIN:
                break
            shape = None if last is None else last.following
            if shape is None or shape.api != api or not buf.startswith(shape.before, at + 12):
                shape = self._find_shape(buf, at, api)
                if shape is not None and last is not None:
                    last.following = shape
            if shape is None or (self.promised and not shape.promises):
                served = None
            else:
                served = shape.serve(self, buf, at, end, correlation_id, own)
            if served is None:
                self._last = last
                if self.promised:
                    self.waiting = PROMISED
                    break
                began = began or hub.worked()
                if self.costly is not False and not hub.costly_turns.may_serve(self, api):
                    self._take_turns()
                    break
                served = hub.dispatcher.serve(self, buf, at, end, api, correlation_id, own)
                if self._generation != hub.generation:
                    self.forget_shapes()
                last = self._last
                self.costly = hub.worked() - began > SLICE_SECONDS
                if self.costly and served and end < have and self.waiting is None:
                    self._take_turns()
            else:
                last = shape
            if served:
                at = end if served is True else served
            if (self.regions or self.held_bytes > ANSWER_BYTES) and not self.in_turn:
                self.flush()
            if self.waiting is not None or self.full or self.closed:
                break
        self._last = last
        if began and self.costly:
            hub.costly_turns.spent(hub.worked() - began)
        return at

    def _take_turns(self) -> None:
        self.waiting = TAKING_TURNS
        self.hub.costly_turns.wait(self)

    def _find_shape(self, buf: bytearray, at: int, api: int) -> Shape | None:
        if self._shapes is not None and self._lengths is not None:
            for known, length in self._lengths:
                if known == api:
                    shape = self._shapes.get((api, bytes(buf[at + 12 : at + 12 + length])))
                    if shape is not None:
                        return shape
        return None

    def remember(self, shape: Shape) -> None:
        """Keep a shape for the requests to come, unless it is too large."""
        if len(shape.before) > SHAPE_BYTES_MAX:
            return
        hub = self.hub
        if self._shapes is not None and (len(self._shapes) >= SHAPES_MAX or hub.shapes >= SHAPES_IN_ALL_MAX):
            hub.shapes -= len(self._shapes)
            self._shapes = None
        if self._shapes is None or self._lengths is None:
            self._shapes, self._lengths = {}, {}
        if (shape.api, shape.before) not in self._shapes:
            hub.shapes += 1
        self._shapes[shape.api, shape.before] = shape
        self._lengths[shape.api, len(shape.before)] = None
        if self._last is not None:
            self._last.following = shape
        self._last = shape

    def forget_shapes(self) -> None:
        """Drop the memo: it may be wrong, or the connection has gone quiet."""
        self._generation = self.hub.generation
        if self._shapes is not None:
            self.hub.shapes -= len(self._shapes)
        self._last = self._shapes = self._lengths = None

    # -- what cannot be served yet

    def _stop_at(self, buf: bytearray, at: int, have: int) -> None:
        """buf[at:have] is the start of a frame, or whole frames that have to wait: the receiver keeps it."""
        receiver = self._receiver
        if self.closed:
            at = have
        elif self.waiting is None and not self.full and have - at >= 4:
            size = SIZE.unpack_from(buf, at)[0]
            if not FRAME_BYTES_MIN <= size <= min(GENERAL_BYTES_MAX, self.hub.max_frame_bytes):
                start = bytes(buf[at : min(have, at + 32)])
                refused = refusal_of_size(size, start, self.hub.max_frame_bytes)
                if refused is not None:
                    if refused[1]:
                        self.out.append(refused[1])
                    self.close(refused[0])
                    at = have
        receiver.keep(at)
        self._holding = at < have
        if self._holding and (self.waiting is not None or self.full) and have - at > PATIENT_BYTES:
            self._pause(True)

    def _pause(self, pause: bool) -> None:
        """Stop reading, or go on if nothing else speaks against it."""
        if self.closed or self.transport.is_closing():
            return
        if pause:
            if not self._paused:
                self._paused = True
                self.transport.pause_reading()
        elif self._paused and self.waiting is None and not self.full and not self._receiver.waiting:
            self._paused = False
            self.transport.resume_reading()

    def _given_up(self) -> None:
        self.close(
            "its unfinished request was dropped, because requests that do not get on hold too much memory"
        )

    # -- answers to requests that waited

    def resume(self) -> None:
        """The wait of the request in front is over."""
        self.waiting = None
        if self.hub.serving:  # another connection's frames lie in the shared buffer
            self.hub.loop.call_soon(self.go_on)
        else:
            self.go_on()

    def go_on(self) -> None:
        """Serve what was held back, then read on."""
        if self.out and not self.in_turn and not self.full and not self.closed:
            self.flush()
        if self.waiting is not None or self.full or self.closed:
            return
        if self._holding:
            have = self._receiver.again()
            if have:
                self._run(have)
        self._pause(False)

    # -- answers

    def expect_answer(self) -> int:
        """Leave a place for an answer that the write of the turn will decide, or somebody later; its position
        for `answer`.
        """
        turn = self.hub.turn
        if not turn.now_ms:
            turn.open()
        if not self.in_turn:
            self.in_turn = True
            turn.connections.append(self)
        self.unanswered += 1
        if self.unanswered >= OPEN_MAX:
            self.waiting = UNANSWERED
        out = self.out
        out.append(OPEN)
        return len(out) - 1

    def answer(self, position: int, frame: bytes) -> None:
        """The answer has come that `expect_answer` left a place for."""
        if self.closed:
            return
        self.out[position] = frame
        self.held_bytes += len(frame)
        self.unanswered -= 1
        self._all_answered()

    def hold(self) -> None:
        """Nothing leaves before `release`: what is to be answered is not on the disk yet."""
        self.unanswered += 1

    def release(self) -> None:
        """One of what was held may leave."""
        if self.closed:
            return
        self.unanswered -= 1
        self._all_answered()

    def _all_answered(self) -> None:
        if not self.unanswered:
            if self.waiting is UNANSWERED:
                self.waiting = None
            elif self.in_turn:
                return  # they leave with the turn
            # Not at once: the giver is in the middle of something.
            self.hub.loop.call_soon(self.go_on)

    def flush(self) -> None:
        """Pass the answers to the transport, once all are there."""
        out = self.out
        if not out:
            return
        if self.unanswered:
            self.waiting = self.waiting or UNANSWERED
            return
        self.out = []
        self.held_bytes = 0
        if self.transport.is_closing():  # after an error it refuses writes, before `connection_lost` comes
            self.regions = False
            return
        if self.regions or (self._outgoing is not None and self._outgoing.busy):
            self.regions = False
            outgoing = self._outgoing or self._open_outgoing()
            outgoing.send(out)
            self.full = outgoing.busy
        else:
            self.transport.write(out[0] if len(out) == 1 else b"".join(out))

    def _open_outgoing(self) -> Outgoing:
        env = self.hub.env
        self._outgoing = outgoing = Outgoing(self.transport, self.hub.loop, env.blocking)
        outgoing.on_drained = self._drained
        if self.full:
            outgoing.pause_writing()
        return outgoing

    def _drained(self) -> None:
        self.full = False
        self.go_on()

    # -- the end

    def close(self, reason: str) -> None:
        """Close after what was answered has left, with one line in the log."""
        log.warning(
            "Closing the connection from %s on listener %s: %s", self.peer, self.listener.name, reason
        )
        self.shut()

    def drop(self, reason: str) -> None:
        """Close at once, with one line in the log; answers that have not left are lost."""
        log.warning("Dropping the connection from %s: %s", self.peer, reason)
        self.closed = True
        self.transport.abort()

    def shut(self) -> None:
        """Close without a line; answers already given still leave."""
        if self.closed:
            return
        if self.in_turn:
            self.hub.turn.flush()
        if self.unanswered:
            # Nobody notes which answers are held back: where any is, none leaves.
            del self.out[0 if self.out.count(OPEN) < self.unanswered else self.out.index(OPEN) :]
            self.unanswered = 0
        self.flush()
        self.closed = True
        if self._outgoing is not None:
            self._outgoing.finish()
        else:
            self.transport.close()

    @property
    def peer(self) -> str:
        """Address and port of the client, for people."""
        return (
            f"[{self.peer_ip}]:{self.peer_port}"
            if ":" in self.peer_ip
            else f"{self.peer_ip}:{self.peer_port}"
        )
