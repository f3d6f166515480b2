"""How answers leave: bytes and regions of files, in order, on one connection.

uvloop has no sendfile and refuses a writer on a descriptor that belongs to a transport. The route that
works, and lives in this file only: bytes go through the transport, whose write limit is 0 so that
`resume_writing` means "nothing is left in it"; then the region goes by `os.sendfile` on a `dup` of the
socket, with a writer on the dup when the socket is full; then the next bytes. Where that is not to be had
(TLS, Windows, a simulated file or network) a region is read and written in pieces, each when the one
before has left.

Invariants:
- Bytes and regions leave in the order in which they were handed over. While something waits in the queue,
  nothing passes it.
- A queued region holds its file, so that it survives eviction and removal. Only while very many are held,
  one more is opened no sooner than it is its turn: if the file is gone by then, so is the connection.
- The writer on the dup is removed before the dup is closed: uvloop files its handle under the number,
  which the next connection gets.
- A region that is not in the page cache is read into it by a thread before the loop sends it.
- Idle, a connection costs this object and no buffer.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from runtime.blocking import Blocking, BlockingBusy
from runtime.files import Buffer, FileRegion

Part: TypeAlias = Buffer | FileRegion

MAX_BUFFERED_BYTES = 64 << 20
TURN_BYTES = 1 << 20  # one region's share of a turn of the loop
PIECE_BYTES = 256 << 10  # read and write at a time where there is no sendfile
WARM_BYTES = 4 << 20  # cold bytes a thread brings into the page cache at a time

_PEER_GONE = (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN, errno.ETIMEDOUT, errno.EBADF)
_log = logging.getLogger(__name__)


class _Leaving(FileRegion):
    """A region in the queue: it shrinks as it leaves. `held`: its file is."""

    __slots__ = ("held",)

    def __init__(self, region: FileRegion) -> None:
        super().__init__(region.handle, region.position, region.length)
        self.held = region.handle.hold()

    def take_up(self) -> None:
        """It is the region's turn. Raises OSError, ValueError where the file is gone."""
        if not self.held:
            self.held = self.handle.hold(force=True)

    def let_go(self) -> None:
        if self.held:
            self.held = False
            self.handle.let_go()


class Outgoing:
    """The sending side of a connection.

    Its protocol forwards `pause_writing` and `resume_writing`, and calls `close` when the connection is lost.
    """

    __slots__ = (
        "_armed",
        "_blocking",
        "_closed",
        "_dup",
        "_finishing",
        "_full",
        "_loop",
        "_queue",
        "_queued_bytes",
        "_sendfile",
        "_transport",
        "_waiting",
        "_warm_bytes",
        "max_buffered_bytes",
        "on_drained",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        loop: asyncio.AbstractEventLoop,
        blocking: Blocking | None = None,
        *,
        sendfile: bool = True,
    ) -> None:
        """`blocking` reads cold regions; without it they are sent as if warm.

        `on_drained` is called each time everything has left after something had to wait.
        """
        transport.set_write_buffer_limits(0)
        self.max_buffered_bytes = MAX_BUFFERED_BYTES
        self.on_drained: Callable[[], None] | None = None
        self._transport = transport
        self._loop = loop
        self._blocking = blocking
        self._sendfile = sendfile and can_sendfile(transport, loop)
        self._queue: deque[Buffer | _Leaving] | None = None  # made when needed: an empty one takes 760 bytes
        self._queued_bytes = 0
        self._warm_bytes = 0  # at the head of the queue, found in the page cache and not sent yet
        self._dup = -1
        self._full = transport.get_write_buffer_size() > 0  # written before this object came
        self._armed = self._waiting = self._finishing = self._closed = False

    @property
    def busy(self) -> bool:
        """Whether something has not left yet. The owner answers nothing more until `on_drained`."""
        return self._full or self._queue is not None

    @property
    def buffered_bytes(self) -> int:
        """Memory that waits to leave, in the transport and in the queue; regions take none."""
        return self._queued_bytes + (self._transport.get_write_buffer_size() if self._full else 0)

    def write(self, data: Buffer) -> None:
        """Send bytes. The buffer must not be changed afterwards."""
        if self._queue is None and not (self._full or self._finishing or self._closed):
            self._transport.write(data)
        else:
            self.send((data,))

    def send(self, parts: Sequence[Part]) -> None:
        """Send parts in order. Bytes before the first region leave in one write.

        More than `max_buffered_bytes` waiting means that the owner went on answering a client that does not
        read: the connection is aborted.
        """
        if self._closed or self._finishing:
            return
        if self.busy and self.buffered_bytes > self.max_buffered_bytes:
            _log.warning("Closing a connection with %d bytes of answers not read", self.buffered_bytes)
            self._transport.abort()
            return
        if self._queue is None:
            first = next((i for i, part in enumerate(parts) if isinstance(part, FileRegion)), len(parts))
            if first:
                self._transport.write(_joined(parts[:first]))
            if first == len(parts):
                return
            parts = parts[first:]
        self._enqueue(parts)
        self._advance()

    def finish(self) -> None:
        """Close the connection when everything handed over so far has left; later parts are dropped."""
        self._finishing = True
        if self._queue is None:
            self._transport.close()  # which flushes what the transport holds

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False
        self._advance()
        if not self.busy:
            self._drained()

    def close(self) -> None:
        """Give up what waits. Called once, when the connection is lost."""
        self._closed = True
        self._disarm()
        if self._dup >= 0:
            os.close(self._dup)
            self._dup = -1
        queue, self._queue = self._queue, None
        self._queued_bytes = 0
        for part in queue or ():
            if isinstance(part, _Leaving):
                part.let_go()

    def _enqueue(self, parts: Iterable[Part]) -> None:
        queue = self._queue
        if queue is None:
            queue = self._queue = deque()
        for part in parts:
            if isinstance(part, FileRegion):
                try:
                    queue.append(_Leaving(part))
                except (OSError, ValueError) as error:
                    self._fail(part, error)
                    return
            else:
                self._queued_bytes += len(part)
                queue.append(part)

    def _advance(self) -> None:
        """Send as much of the queue as goes without waiting."""
        if self._transport.is_closing():  # an error came, `close` follows
            return
        budget = TURN_BYTES
        while (queue := self._queue) is not None and not (self._full or self._armed or self._waiting):
            if not queue:
                self._queue = None
                if self._finishing:
                    self._transport.close()
                return
            part = queue[0]
            if not isinstance(part, _Leaving):
                self._write_queued(queue)
            elif part.length == 0:
                queue.popleft()
                self._warm_bytes = 0
                part.let_go()
            elif not part.held and not self._take_up(part):
                return
            elif budget <= 0:
                self._waiting = True
                self._loop.call_soon(self._go_on)
            elif self._warm(part):
                budget -= self._send_some(part, min(part.length, budget))

    def _take_up(self, region: _Leaving) -> bool:
        try:
            region.take_up()
        except (OSError, ValueError) as error:
            self._fail(region, error)
            return False
        return True

    def _write_queued(self, queue: deque[Buffer | _Leaving]) -> None:
        data: list[Part] = []
        while queue and not isinstance(queue[0], _Leaving):
            data.append(queue.popleft())
        joined = _joined(data)
        self._queued_bytes -= len(joined)
        self._transport.write(joined)

    def _send_some(self, region: FileRegion, limit: int) -> int:
        try:
            if self._sendfile and (fd := _descriptor(region)) >= 0:
                if self._dup < 0 and not self._duplicate():
                    return 0
                sent = os.sendfile(self._dup, fd, region.position, limit)
            else:
                piece = region.handle.read_at(region.position, min(limit, PIECE_BYTES))
                sent = len(piece)
                if piece:
                    self._transport.write(piece)
        except BlockingIOError:
            self._armed = True
            self._loop.add_writer(self._dup, self._writable)
            return 0
        except OSError as error:
            self._fail(region, error)
            return 0
        if not sent:
            self._fail(region, OSError(errno.EIO, "the file ends before the region does"))
        region.position += sent
        region.length -= sent
        self._warm_bytes -= sent
        return sent

    def _duplicate(self) -> bool:
        """Make the descriptor that sendfile writes to; False where there is none left: then without."""
        try:
            self._dup = os.dup(self._transport.get_extra_info("socket").fileno())
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE):
                raise
            self._sendfile = False
            return False
        return True

    def _warm(self, region: FileRegion) -> bool:
        """Whether the region's next bytes can be sent at once; if not, a thread is reading them."""
        if self._warm_bytes > 0:
            return True
        wanted = min(region.length, TURN_BYTES)
        if self._blocking is None or region.handle.is_cached(region.position, wanted):
            self._warm_bytes = wanted
            return True
        region.handle.acquire_fd()
        try:
            reading = self._blocking.submit(
                region.handle.warm, region.position, min(region.length, WARM_BYTES)
            )
        except BlockingBusy:
            region.handle.release_fd()
            self._warm_bytes = wanted
            return True
        self._waiting = True
        reading.add_done_callback(lambda done: self._warmed(region, done))
        return False

    def _warmed(self, region: FileRegion, done: asyncio.Future[None]) -> None:
        region.handle.release_fd()
        if self._closed or done.cancelled():
            return
        if isinstance(error := done.exception(), OSError):
            self._fail(region, error)
            return
        self._waiting = False
        # Without another probe: memory may be too short to keep what was read.
        self._send_some(region, min(region.length, TURN_BYTES))
        self._go_on()

    def _go_on(self) -> None:
        self._waiting = False
        if not self._closed:
            self._advance()
            if not self.busy:
                self._drained()

    def _writable(self) -> None:
        self._disarm()
        self._advance()
        if not self.busy:
            self._drained()

    def _disarm(self) -> None:
        if self._armed:
            self._armed = False
            self._loop.remove_writer(self._dup)

    def _drained(self) -> None:
        if self.on_drained is not None and not self._closed:
            self.on_drained()

    def _fail(self, region: FileRegion, error: OSError | ValueError) -> None:
        """The peer was promised bytes that cannot come: only an end of the connection tells it so."""
        if not isinstance(error, OSError) or error.errno not in _PEER_GONE:
            _log.error("Sending from %s at %d failed: %s", region.handle.path, region.position, error)
        self._waiting = True  # nothing more is sent until `connection_lost` comes
        self._transport.abort()


def can_sendfile(transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> bool:
    """Whether the socket's descriptor takes plain bytes and the loop watches descriptors."""
    if not hasattr(os, "sendfile") or transport.get_extra_info("sslcontext") is not None:
        return False
    connection = transport.get_extra_info("socket")
    if connection is None or connection.fileno() < 0:
        return False
    return type(loop).add_writer is not asyncio.AbstractEventLoop.add_writer


def _descriptor(region: FileRegion) -> int:
    fd = region.handle.acquire_fd()
    region.handle.release_fd()  # the queue holds it open
    return fd


def _joined(parts: Sequence[Part]) -> Buffer:
    data = [part for part in parts if not isinstance(part, FileRegion)]
    return data[0] if len(data) == 1 else b"".join(data)
