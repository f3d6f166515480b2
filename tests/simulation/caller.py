"""A simulated client's connection to a broker: requests at drawn versions, answers in order, time-outs.

After a time-out the connection is closed, as clients do: what the request came to is unknown then.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from typing import Any, cast

from protocol import messages as m
from protocol.client_connection import ClientConnection
from protocol.errors import ProtocolViolation
from runtime.network import Network
from tests.simulation.world import World

OLDEST = {m.ProduceRequest.API_KEY: 3, m.FetchRequest.API_KEY: 4, m.MetadataRequest.API_KEY: 10}
BY_ID = {m.ProduceRequest.API_KEY: 13, m.FetchRequest.API_KEY: 13, m.MetadataRequest.API_KEY: 10}
NEWEST = {m.OffsetCommitRequest.API_KEY: 9, m.OffsetFetchRequest.API_KEY: 9}  # the last with names of topics
SESSIONS_FROM = 7  # versions of Fetch that can name what a session is to forget
SLOW_READ_S = 0.25


class CallLost(Exception):
    """No answer came, or none can come any more."""


class Caller(asyncio.Protocol):
    """See the module. `slow`: how likely it rests after a read without taking more. `oldest`: the versions
    from which it draws, by API.
    """

    def __init__(
        self, world: World, name: str, chance: random.Random, slow: float, oldest: Mapping[int, int] = OLDEST
    ) -> None:
        self._world, self._name, self._chance, self._slow = world, name, chance, slow
        self._oldest = oldest
        self._connection = ClientConnection(client_id=name)
        self._asked: dict[int, asyncio.Future[m.Message]] = {}
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self.lost = False

    @classmethod
    async def dial(
        cls,
        world: World,
        network: Network,
        name: str,
        chance: random.Random,
        address: tuple[str, int],
        slow: float,
        timeout_s: float,
        oldest: Mapping[int, int] = OLDEST,
    ) -> Caller:
        """Connect and agree on versions. Raises CallLost."""
        try:
            async with asyncio.timeout(timeout_s):
                _, protocol = await network.dial(*address, lambda: cls(world, name, chance, slow, oldest))
        except OSError as error:  # TimeoutError is one
            raise CallLost(f"no connection: {error}") from None
        caller = cast(Caller, protocol)
        while not caller._connection.negotiated:
            await caller._wait(caller._connection.negotiate(), timeout_s)
        return caller

    async def ask(self, request: Any, timeout_s: float, version: int | None = None) -> Any:
        """The answer; `version` instead of a drawn one. Raises CallLost."""
        if version is not None:
            return await self._wait(self._connection.send(request, version), timeout_s)
        return await self._wait(self._encoded(request), timeout_s)

    def begin(self, request: Any) -> asyncio.Future[m.Message]:
        """Send now; the future has the answer. Requests begun in a row arrive in that order."""
        return self._send(self._encoded(request))

    def tell(self, request: Any) -> None:
        """Send what gets no answer."""
        frame = self._encoded(request)
        if self.lost or self._transport is None:
            raise CallLost("the connection is lost")
        self._transport.write(frame)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _encoded(self, request: Any) -> bytes:
        key = type(request).API_KEY
        newest = min(self._connection.version_for(key), NEWEST.get(key, 1 << 15))
        oldest = max(self._oldest.get(key, newest), self._connection.versions[key][0])
        if key == m.FetchRequest.API_KEY and request.forgotten_topics_data:
            oldest = max(oldest, SESSIONS_FROM)
        return self._connection.send(request, self._chance.randint(min(oldest, newest), newest))

    def _send(self, frame: bytes) -> asyncio.Future[m.Message]:
        answer: asyncio.Future[m.Message] = self._loop.create_future()
        if self.lost or self._transport is None:
            answer.set_exception(CallLost("the connection is lost"))
        else:
            self._asked[self._connection.last_correlation_id] = answer
            self._transport.write(frame)
        return answer

    async def _wait(self, frame: bytes, timeout_s: float) -> m.Message:
        return await self.answer(self._send(frame), timeout_s)

    async def answer(self, begun: asyncio.Future[m.Message], timeout_s: float) -> m.Message:
        """What a request came to that was begun. Raises CallLost."""
        try:
            async with asyncio.timeout(timeout_s):
                return await begun
        except TimeoutError:
            self.close()
            raise CallLost("no answer in time") from None

    # -- called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            answers = self._connection.receive(data)
        except ProtocolViolation as error:
            self._world.fail(f"{self._name} got what is no answer: {error}")
            self.close()
            return
        for correlation_id, response in answers:
            asked = self._asked.pop(correlation_id)
            if not asked.done():
                asked.set_result(response)
        if self._slow and self._chance.random() < self._slow and self._transport is not None:
            self._transport.pause_reading()
            self._loop.call_later(self._chance.random() * SLOW_READ_S, self._read_on)

    def _read_on(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        asked, self._asked = self._asked, {}
        for answer in asked.values():
            if not answer.done():
                answer.set_exception(CallLost(f"the connection is lost: {exc}"))
                answer.exception()  # nobody may be waiting for it any more
