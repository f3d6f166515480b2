"""The simulated wires between hosts, and the sockets as the kernels of the hosts keep them.

A connection is two `Socket`s and one `Way` in each direction. A way carries packets in order, each with a
drawn delay and the time its bytes take. What cannot pass, because the way is cut or the host is down, is kept
and sent again after the way is open, as TCP does, except resets, which are sent once: so a peer may not learn
for long that the other end is gone (half-open).

Windows: a way takes no more bytes than `window_bytes` that the reading process has not yet taken; the answer
that there is room again travels the other way, and waits where that is cut.

A socket outlives neither its process (the kernel then says FIN, or RST if something was left unread) nor its
host's power (then nobody says anything).
"""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from tests.simulation.world import MS_US, World

if TYPE_CHECKING:
    from tests.simulation.loop import HostLoop

RETRANSMIT_US = (1 * MS_US, 400 * MS_US)
SYN_RETRY_US = (1_000 * MS_US, 3_000 * MS_US, 7_000 * MS_US)
SYN_GIVEN_UP_US = 15_000 * MS_US
EPHEMERAL_PORT = 32_768


@dataclass(slots=True, frozen=True)
class WireSettings:
    """Delays in microseconds, each packet draws its own; a spike now and then."""

    delay_us: tuple[int, int] = (30, 600)
    spike_us: tuple[int, int] = (5 * MS_US, 80 * MS_US)
    spikes: float = 0.002
    bytes_per_second: int = 100_000_000
    window_bytes: int = 64 << 10
    split: float = 0.1  # of packets that arrive in two pieces


class Endpoint(Protocol):
    """The process's side of a socket; called by the kernel, at any time."""

    def arrived(self) -> None:
        """Bytes or the end are there to be read."""

    def room(self) -> None:
        """The way takes bytes again."""

    def was_reset(self) -> None: ...


class Kernel:
    """What a host's kernel knows: open ports and sockets. It goes on while the process is paused."""

    def __init__(self, name: str, address: str) -> None:
        self.name, self.address = name, address
        self.up = True
        self.ports: dict[int, Port] = {}
        self.sockets: dict[Socket, None] = {}
        self._next_port = EPHEMERAL_PORT

    def free_port(self) -> int:
        self._next_port += 1
        return self._next_port


class Port:
    """A listening socket. `accept` is called for each connection that waits for the process."""

    def __init__(self, kernel: Kernel, number: int, process: HostLoop, backlog: int) -> None:
        self.kernel, self.number, self.process = kernel, number, process
        self.backlog = backlog
        self.waiting: deque[Socket] = deque()
        self.accept: Callable[[], None] = lambda: None


class Socket:
    """One end of a connection."""

    def __init__(self, kernel: Kernel, process: HostLoop, port: int, name: str) -> None:
        self.kernel, self.process, self.port, self.name = kernel, process, port, name
        self.endpoint: Endpoint | None = None
        self.peer: Socket
        self.out: Way | None = None  # None until the connection is made
        self.chunks: deque[memoryview] = deque()  # arrived and not read yet
        self.unread_bytes = 0
        self.ended = False  # the peer's FIN is here
        self.reset = False
        self.open = True  # False once the process is done with it, or gone
        kernel.sockets[self] = None

    def take(self, most: int) -> bytes:
        """Up to so many bytes that have arrived."""
        taken: list[memoryview] = []
        left = most
        while self.chunks and left:
            chunk = self.chunks.popleft()
            if len(chunk) > left:
                self.chunks.appendleft(chunk[left:])
                chunk = chunk[:left]
            taken.append(chunk)
            left -= len(chunk)
        data = b"".join(taken)
        self.unread_bytes -= len(data)
        self.peer.out.read_by_peer(len(data))
        return data

    def close(self) -> None:
        """The process is done: FIN, or RST where it leaves bytes unread."""
        if not self.open:
            return
        self.open = False
        self.kernel.sockets.pop(self, None)
        if self.reset or self.out is None:
            return
        if self.unread_bytes:
            self.out.send_reset()
        else:
            self.out.send(None)

    def met_reset(self) -> None:
        if self.open and not self.reset:
            self.reset = True
            self.chunks.clear()
            self.unread_bytes = 0
            if self.endpoint is not None:
                self.endpoint.was_reset()


class Way:
    """One direction of a connection."""

    def __init__(self, wire: Wire, source: Socket, target: Socket) -> None:
        self.source, self.target = source, target
        self._wire = wire
        self._in_flight_bytes = 0  # sent, and not read by the peer as far as we know
        self._held: deque[memoryview | int | None] = deque()
        self._last_arrival_us = 0
        self._resending = False
        self.lost = False  # the host that sends has forgotten it

    @property
    def room_bytes(self) -> int:
        return max(0, self._wire.settings.window_bytes - self._in_flight_bytes)

    def send(self, data: bytes | None) -> None:
        """Bytes for which there is room, or None for FIN."""
        if data is None:
            self._depart(None, 0)
            return
        self._in_flight_bytes += len(data)
        view, chance = memoryview(data), self._wire.draws
        if len(data) > 1 and chance.random() < self._wire.settings.split:
            at = chance.randint(1, len(data) - 1)
            self._depart(view[:at], at)
            view = view[at:]
        self._depart(view, len(view))

    def read_by_peer(self, count: int) -> None:
        """The peer's process took bytes: that there is room travels back."""
        if count:
            self.target.out._depart(count, 0)

    def send_reset(self) -> None:
        wire = self._wire
        wire.world.after(wire.delay_us(), self._reset_arrives)

    def _reset_arrives(self) -> None:
        if self._wire.passes(self.source.kernel, self.target.kernel):
            self._wire.world.note(self.target.kernel.name, f"{self.target.name} reset")
            self.target.met_reset()

    def _depart(self, packet: memoryview | int | None, size: int) -> None:
        wire = self._wire
        wait_us = wire.delay_us() + size * 1_000_000 // wire.settings.bytes_per_second
        self._last_arrival_us = max(self._last_arrival_us, wire.world.now_us + wait_us)
        wire.world.at(self._last_arrival_us, self._arrive, packet)

    def _arrive(self, packet: memoryview | int | None) -> None:
        if self.lost:
            return
        if self._held or not self._wire.passes(self.source.kernel, self.target.kernel):
            self._held.append(packet)
        else:
            self._deliver(packet)

    def _deliver(self, packet: memoryview | int | None) -> None:
        target = self.target
        if isinstance(packet, int):
            self._room_again(packet)
            return
        if not target.open:  # the kernel there knows of no such connection
            if packet is not None:
                target.out.send_reset()
            return
        if target.reset:
            return
        if packet is None:
            target.ended = True
            self._wire.world.note(target.kernel.name, f"{target.name} end")
        else:
            target.chunks.append(packet)
            target.unread_bytes += len(packet)
            self._wire.world.note(target.kernel.name, f"{target.name} {len(packet)} {zlib.crc32(packet):08x}")
        if target.endpoint is not None:
            target.endpoint.arrived()

    def _room_again(self, count: int) -> None:
        """An acknowledgement of what `target` sent the other way and `source` has read."""
        back = self.target.out
        assert back is not None
        back._in_flight_bytes -= count
        if self.target.open and self.target.endpoint is not None:
            self.target.endpoint.room()

    def opened(self) -> None:
        """The way may be free again: what was held is sent again, a little later."""
        if self._held and not self._resending and not self.lost:
            self._resending = True
            self._wire.world.after(self._wire.draws.randint(*RETRANSMIT_US), self._resend)

    def _resend(self) -> None:
        self._resending = False
        if self._wire.passes(self.source.kernel, self.target.kernel):
            held, self._held = self._held, deque()
            for packet in held:
                self._deliver(packet)


class Wire:
    """All hosts and the ways between them."""

    def __init__(self, world: World, settings: WireSettings | None = None) -> None:
        self.world = world
        self.settings = settings or WireSettings()
        self.draws = world.chance("wire")
        self.kernels: dict[str, Kernel] = {}
        self.slow: dict[str, int] = {}  # extra delay of a host, in us
        self._cut: dict[tuple[str, str], None] = {}
        self._ways: list[Way] = []
        self._made = 0

    def kernel(self, name: str) -> Kernel:
        """The host of that name, made with the first question."""
        if name not in self.kernels:
            self.kernels[name] = Kernel(name, f"10.0.0.{len(self.kernels) + 1}")
        return self.kernels[name]

    def find(self, host: str) -> Kernel | None:
        for kernel in self.kernels.values():
            if host in (kernel.name, kernel.address):
                return kernel
        return None

    def delay_us(self) -> int:
        draws, settings = self.draws, self.settings
        if draws.random() < settings.spikes:
            return draws.randint(*settings.spike_us)
        low, high = settings.delay_us
        return low + int((high - low) * draws.random())

    # -- faults

    def passes(self, source: Kernel, target: Kernel) -> bool:
        return source.up and target.up and (source.name, target.name) not in self._cut

    def cut(self, source: str, target: str) -> None:
        """Nothing gets from one host to the other any more; the other direction is not touched."""
        self._cut[source, target] = None

    def heal(self, source: str, target: str) -> None:
        self._cut.pop((source, target), None)
        self._opened()

    def heal_all(self) -> None:
        self._cut.clear()
        self._opened()

    def _opened(self) -> None:
        self._ways = [way for way in self._ways if not way.lost and (way._held or way.source.open)]
        for way in self._ways:
            way.opened()

    def boot(self, kernel: Kernel) -> None:
        """The host has power again and knows of no connection."""
        kernel.up = True
        self._opened()

    def power_off(self, kernel: Kernel) -> None:
        """Nobody is told."""
        kernel.up = False
        for socket in kernel.sockets:
            socket.open = False
            if socket.out is not None:
                socket.out.lost = True
        kernel.sockets.clear()
        kernel.ports.clear()

    def process_ended(self, kernel: Kernel, process: HostLoop) -> None:
        """The kernel closes what the process had open."""
        for port in [port for port in kernel.ports.values() if port.process is process]:
            self.close_port(port)
        for socket in [socket for socket in kernel.sockets if socket.process is process]:
            socket.endpoint = None
            socket.close()

    def close_port(self, port: Port) -> None:
        port.kernel.ports.pop(port.number, None)
        for socket in port.waiting:
            socket.close()
        port.waiting.clear()

    def reset(self, socket: Socket) -> None:
        """Something on the way ends a connection: both ends are told."""
        socket.peer.out.send_reset()
        socket.out.send_reset()

    # -- opening connections

    def connect(self, source: Socket, host: str, port: int, told: Callable[[object], None]) -> None:
        """Send the first packet; `told` gets the socket or an OSError, when it is known."""
        self._syn(source, host, port, told, self.world.now_us, 0)

    def _syn(
        self,
        source: Socket,
        host: str,
        port: int,
        told: Callable[[object], None],
        begun_us: int,
        tries: int,
    ) -> None:
        world = self.world

        def again() -> None:
            if not source.open:
                return
            if tries >= len(SYN_RETRY_US):
                source.kernel.sockets.pop(source, None)
                told(TimeoutError(110, "Connection timed out"))
                return
            self._syn(source, host, port, told, begun_us, tries + 1)

        def arrives() -> None:
            kernel = self.find(host)
            if kernel is None or not self.passes(source.kernel, kernel):
                at_us = begun_us + (SYN_RETRY_US[tries] if tries < len(SYN_RETRY_US) else SYN_GIVEN_UP_US)
                world.at(max(at_us, world.now_us + 1), again)
                return
            listening = kernel.ports.get(port)
            if listening is None:
                world.after(self.delay_us(), refused, kernel)
            elif len(listening.waiting) >= listening.backlog:
                world.after(SYN_RETRY_US[0], again)
            else:
                self._establish(source, listening, told)

        def refused(kernel: Kernel) -> None:
            if not self.passes(kernel, source.kernel):
                world.after(SYN_RETRY_US[0], again)
            elif source.open:
                source.kernel.sockets.pop(source, None)
                source.open = False
                told(ConnectionRefusedError(111, f"Connect call failed ('{host}', {port})"))

        world.after(self.delay_us(), arrives)

    def _establish(self, source: Socket, port: Port, told: Callable[[object], None]) -> None:
        self._made += 1
        source.name = f"{source.kernel.name}>{port.kernel.name}#{self._made}"
        target = Socket(port.kernel, port.process, port.number, f"{port.kernel.name}<{source.name}")
        source.peer, target.peer = target, source
        source.out, target.out = Way(self, source, target), Way(self, target, source)
        self._ways += (source.out, target.out)
        port.waiting.append(target)
        port.accept()
        self.world.note(port.kernel.name, f"{target.name} made")

        def answered() -> None:
            if not source.open:
                source.out.send_reset()
            elif not self.passes(target.kernel, source.kernel):
                self.world.after(SYN_RETRY_US[0], answered)
            elif not source.reset:
                told(source)
            else:
                told(ConnectionResetError(104, "Connection reset by peer"))

        self.world.after(self.delay_us(), answered)
