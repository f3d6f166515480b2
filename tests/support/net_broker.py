"""A broker whose connections have no sockets: bytes go in with `send`, answers come out of `answers`.

The rest is real: controller, replicas, storage, dispatcher, handlers, turn. The turn of the event loop ends
when the test says so (`end_turn`) or lets the loop run (`run`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from broker.handlers.fetch import FetchHandler
from broker.handlers.produce import ProduceHandler
from broker.handlers.table import HANDLERS
from broker.net.connection import Connection
from broker.net.dispatch import Dispatcher
from broker.net.hub import Hub
from broker.net.limits import ConnectionLimits
from broker.net.listener import Listener
from broker.net.turn import Turn
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.headers import RequestHeader, decode_response_header, encode_request_header
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from replication.delayed_produce import ProducePurgatory
from replication.fetch_sessions import FetchSessions
from runtime.system import Env
from tests.support.handler_broker import HandlerBroker

UNLIMITED = 2**31 - 1


class FakeTransport:
    """Remembers what was done to it."""

    def __init__(self, ip: str) -> None:
        self.peer = (ip, 50000)
        self.writes: list[bytes] = []
        self.wrote = asyncio.Event()
        self.paused = self.closed = self.aborted = False

    def _check(self) -> None:
        """As uvloop does after an error, before `connection_lost` comes."""
        if self.aborted:
            raise RuntimeError("the handler is closed")

    def write(self, data: bytes) -> None:
        self._check()
        self.writes.append(bytes(data))
        self.wrote.set()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self.peer if name == "peername" else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        self._check()
        self.paused = True

    def resume_reading(self) -> None:
        self._check()
        self.paused = False

    def is_closing(self) -> bool:
        return self.closed or self.aborted

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True


def frame(request: Any, version: int, correlation_id: int = 1, client_id: str | None = "test") -> bytes:
    """A request as it travels."""
    header = encode_request_header(RequestHeader(type(request).API_KEY, version, correlation_id, client_id))
    body = request.encode(version)
    return (len(header) + len(body)).to_bytes(4, "big") + header + body


class NetBroker(HandlerBroker):
    """See the module."""

    max_frame_bytes = 1 << 24
    limits = ConnectionLimits(UNLIMITED, UNLIMITED, {})

    def _turn(self, env: Env) -> Turn:
        self.hub = Hub(env, ConnectionLimits(UNLIMITED, UNLIMITED, {}), self.max_frame_bytes)
        self.hub.worked = float  # no request counts as costly, however slow the machine
        return self.hub.turn

    async def _start(self) -> None:
        await super()._start()
        ctx = self.ctx
        self.hub.departures.append(ctx.share_data.connection_gone)
        ctx.replicas.on_change(self.hub.forget_shapes)
        self.sessions = FetchSessions(ctx.replicas.wanted_partition, ctx.env.random)
        self.table = dict(HANDLERS)
        self.hub.dispatcher = Dispatcher(
            ctx,
            self.table,
            {
                ApiKey.PRODUCE: ProduceHandler(ctx, ProducePurgatory(ctx.env.timer)),
                ApiKey.FETCH: FetchHandler(ctx, self.sessions),
            },
        )
        self.listener = Listener(self.hub, "PLAINTEXT", "127.0.0.1", 0)

    def connect(self, ip: str = "127.0.0.1") -> Client:
        """A new connection."""
        return Client(self, ip)

    def run(self, work: Coroutine[Any, Any, Any] | None = None) -> Any:
        """Let the event loop run: the given coroutine, or what is ready now."""

        async def settle() -> Any:
            result = await work if work is not None else None
            for _ in range(5):
                await asyncio.sleep(0)
            return result

        return self.runner.run(settle())

    def end_turn(self) -> None:
        """What the event loop would do next."""
        self.hub.turn.finish()


class Client:
    """The other end of a connection."""

    def __init__(self, broker: NetBroker, ip: str = "127.0.0.1") -> None:
        self.broker = broker
        self.transport = FakeTransport(ip)
        self.connection = Connection(broker.hub, broker.listener)
        self.connection.connection_made(self.transport)

    def send(self, data: bytes) -> None:
        """Bytes arrive, in as many reads as the connection's buffers ask for."""
        at = 0
        while at < len(data):
            view = self.connection.get_buffer(-1)
            count = min(len(view), len(data) - at)
            view[:count] = data[at : at + count]
            self.connection.buffer_updated(count)
            at += count

    def lose(self) -> None:
        """The peer is gone."""
        self.connection.connection_lost(None)

    def answers(self) -> list[tuple[int, bytes]]:
        """(correlation id, bytes after it) of the answers so far, which are then forgotten."""
        found = self.peek()
        self.transport.writes.clear()
        return found

    def peek(self) -> list[tuple[int, bytes]]:
        """As `answers`, which stay."""
        data = b"".join(self.transport.writes)
        found = []
        at = 0
        while at < len(data):
            size = int.from_bytes(data[at : at + 4], "big")
            assert at + 4 + size <= len(data), "half an answer"
            found.append((int.from_bytes(data[at + 4 : at + 8], "big"), data[at + 4 : at + 4 + size]))
            at += 4 + size
        return found

    async def wrote(self, times: int) -> None:
        """Wait for so many writes."""
        async with asyncio.timeout(20):
            while len(self.transport.writes) < times:
                self.transport.wrote.clear()
                await self.transport.wrote.wait()

    def call(self, request: Any, version: int, correlation_id: int = 1) -> Any:
        """Send one request, end the turn, and return the decoded answer."""
        self.send(frame(request, version, correlation_id))
        self.broker.end_turn()
        if not self.transport.writes:
            self.broker.run(self.wrote(1))
        [(answered, data)] = self.answers()
        assert answered == correlation_id
        return decode(type(request).API_KEY, version, data)


def decode(api_key: int, version: int, data: bytes) -> Any:
    """The response in an answer's bytes; nothing may be left over."""
    _, at = decode_response_header(api_key, version, data, 0)
    response, end = m.response_class(api_key).decode(version, data, at)
    assert end == len(data)
    return response


def produce_request(
    topic: str,
    partition: int,
    values: list[bytes],
    *,
    acks: int = 1,
    topic_id: bytes = bytes(16),
    codec: int = 0,
) -> m.ProduceRequest:
    """One batch for one partition."""
    request = m.ProduceRequest
    records = [Record(0, 1_700_000_000_000, None, value) for value in values]
    return request(
        acks=acks,
        timeout_ms=1000,
        topic_data=[
            request.TopicProduceData(
                name=topic,
                topic_id=topic_id,
                partition_data=[
                    request.PartitionProduceData(index=partition, records=build_batch(records, codec=codec))
                ],
            )
        ],
    )


def fetch_request(
    topic: str,
    wanted: dict[int, int],
    *,
    topic_id: bytes = bytes(16),
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    session_id: int = 0,
    session_epoch: int = -1,
    isolation_level: int = 0,
) -> m.FetchRequest:
    """Partitions of one topic from these offsets on."""
    request = m.FetchRequest
    return request(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=[
            request.FetchTopic(
                topic=topic,
                topic_id=topic_id,
                partitions=[
                    request.FetchPartition(
                        partition=index, fetch_offset=offset, partition_max_bytes=max_bytes
                    )
                    for index, offset in wanted.items()
                ],
            )
        ],
    )
