"""From a frame to its handler and back: versions, headers, bodies, failures.

Produce and Fetch decode for themselves (`HotHandler`); every other API has a handler in the table, a plain or
an async function. A plain one is answered within the call, or when the `Later` that it returns is given its
response; an async one runs in a task, and where its answer is big that is encoded in a thread: the
interpreter's own switching keeps the loop alive. Its connection waits meanwhile.

What cannot be answered closes the connection, with one line that names client, API, version and reason (Kafka
closes too, in every case except ApiVersions, whose unsupported version gets error 35 in the oldest form so
that the client can come down to ours, KIP-511). A handler that raises answers -1 in the shape of its API, as
Kafka does; that the metadata store refuses something is no fault of the handler, and needs no trace.
"""

from __future__ import annotations

import inspect
from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from broker.handlers.later import Later
from broker.handlers.request import Request
from broker.net.answers import FramedAnswer, frame_answer, is_big, put_parts
from broker.net.big_bodies import BIG_BODY_BYTES
from broker.net.failures import failure_answer
from broker.net.frame_size import GENERAL_BYTES_MAX, ONLY_PRODUCE
from broker.net.hub import log
from protocol import messages as m
from protocol.api_keys import ApiKey, api_name
from protocol.errors import ErrorCode, MalformedMessage
from protocol.headers import RequestHeader, decode_request_header
from replication.metadata.payloads import BadPayload
from replication.metadata.store import StoreError

if TYPE_CHECKING:
    from broker.context import BrokerContext
    from broker.handlers.table import Handler
    from broker.net.connection import Connection


class HotHandler(Protocol):
    """Produce or Fetch: works on the frame itself."""

    min_version: int
    max_version: int

    def serve(
        self,
        connection: Connection,
        header: RequestHeader,
        buf: bytearray,
        at: int,
        body: int,
        end: int,
        own: bool,
    ) -> bool:
        """Serve the frame in buf[at:end], whose body starts at `body`. As `Shape.serve`; may remember a
        shape.

        MalformedMessage when it does not parse.
        """


class _Busy:
    """The connection waits for a task, which runs to its end even if the client goes, or for a `Later`."""

    __slots__ = ()

    def cancel(self, connection: Connection) -> None:
        """Nothing to let go of: the answer is dropped when it comes."""


BUSY = _Busy()


class Dispatcher:
    """One for a broker."""

    __slots__ = ("_context", "_hot", "_table")

    def __init__(
        self, context: BrokerContext, table: Mapping[ApiKey, Handler], hot: Mapping[ApiKey, HotHandler]
    ) -> None:
        self._context = context
        self._table: dict[int, Handler] = {int(key): handler for key, handler in table.items()}
        self._hot: dict[int, HotHandler] = {int(key): handler for key, handler in hot.items()}

    def serve(
        self,
        connection: Connection,
        buf: bytearray,
        at: int,
        end: int,
        api: int,
        correlation_id: int,
        own: bool,
    ) -> bool:
        """Serve one frame, buf[at:end], that no remembered shape covers. As `Shape.serve`."""
        key, version = api >> 16, api & 0xFFFF
        hot = self._hot.get(key)
        served = hot if hot is not None else self._table.get(key)
        if served is None or not served.min_version <= version <= served.max_version:
            return self._unsupported(connection, buf, at, end, key, version)
        if end - at > GENERAL_BYTES_MAX and key != ApiKey.PRODUCE:
            connection.close(
                f"{self._named(buf, at, end, key, version)} has {end - at} bytes; {ONLY_PRODUCE}"
            )
            return True
        try:
            header, body = decode_request_header(buf, at + 4, end)
            if hot is not None:
                return self._serve_hot(hot, connection, header, buf, at, body, end, own)
            if connection.in_turn:
                connection.hub.turn.flush()  # what this client wrote before, it sees now
                if connection.unanswered:
                    return False
            handler = self._table[key]
            if end - body > BIG_BODY_BYTES:
                if not self._context.big_bodies.enter(connection):
                    return False
                self._in_task(
                    connection, header, self._serve_apart(connection, handler, header, bytes(buf[body:end]))
                )
                return True
            request, _ = m.request_class(key).decode(version, buf, body, end)
        except MalformedMessage as error:
            connection.close(f"{self._named(buf, at, end, key, version)} does not parse: {error}")
            return True
        self._handle(connection, handler, header, request)
        return True

    def _serve_hot(
        self,
        hot: HotHandler,
        connection: Connection,
        header: RequestHeader,
        buf: bytearray,
        at: int,
        body: int,
        end: int,
        own: bool,
    ) -> bool:
        try:
            return hot.serve(connection, header, buf, at, body, end, own)
        except MalformedMessage:
            raise
        except Exception as error:
            request, _ = m.request_class(header.api_key).decode(header.api_version, buf, body, end)
            if header.api_key == ApiKey.PRODUCE and request.acks == 0:  # type: ignore[attr-defined]
                log.error("Produce with acks=0 from %s failed", connection.peer, exc_info=error)
                connection.shut()
            else:
                self._failed(connection, header, request, error)
            return True

    def _handle(self, connection: Connection, handler: Handler, header: RequestHeader, body: Any) -> None:
        request = self._request(connection, header, body)
        try:
            response = handler.handle(self._context, request)
        except Exception as error:
            self._failed(connection, header, body, error)
            return
        if isinstance(response, Later):
            self._answer_later(connection, header, body, response)
        elif inspect.iscoroutine(response):
            self._in_task(connection, header, self._await(connection, header, body, response), response)
        else:
            self._answer(connection, header, body, response)

    def _answer_later(self, connection: Connection, header: RequestHeader, body: Any, later: Later) -> None:
        connection.waiting = BUSY

        def given(response: Any) -> None:
            self._answer(connection, header, body, response)
            if connection.waiting is BUSY:
                # Not at once: the giver is in the middle of something, and many are answered in a turn.
                connection.waiting = None
                connection.hub.loop.call_soon(connection.go_on)

        later.then(given)

    def _request(self, connection: Connection, header: RequestHeader, body: Any) -> Request[Any]:
        return Request(
            header=header,
            body=body,
            listener_name=connection.listener.name,
            peer_ip=connection.peer_ip,
            peer_port=connection.peer_port,
            connection=connection,
        )

    def _in_task(
        self,
        connection: Connection,
        header: RequestHeader,
        work: Coroutine[Any, Any, None],
        *within: Coroutine[Any, Any, Any],
    ) -> None:
        """Have `work` done, which waits for those `within`; none of them is left when it ends unbegun."""
        connection.waiting = BUSY
        name = f"{api_name(header.api_key)} of {connection.peer}"
        task = connection.hub.env.tasks.spawn(name, self._guarded(connection, work))
        task.add_done_callback(lambda _: [each.close() for each in (work, *within)])

    async def _guarded(self, connection: Connection, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except BaseException:
            connection.shut()  # an answer is missing: nothing behind it may be answered
            raise
        finally:
            if connection.waiting is BUSY:
                connection.resume()

    async def _await(
        self, connection: Connection, header: RequestHeader, body: Any, response: Coroutine[Any, Any, Any]
    ) -> None:
        try:
            answer = await response
            if not connection.closed and is_big(answer):
                answer = await connection.hub.env.blocking.submit(_framed, header, answer)
        except Exception as error:
            self._failed(connection, header, body, error)
            return
        self._answer(connection, header, body, answer)

    async def _serve_apart(
        self, connection: Connection, handler: Handler, header: RequestHeader, data: bytes
    ) -> None:
        """Serve a big body, which has entered the gate. It is decoded, and its answer encoded, in a thread;
        the interpreter's own switching keeps the loop alive meanwhile.
        """
        with self._context.big_bodies.inside() as leave:
            decode = m.request_class(header.api_key).decode
            try:
                body, _ = await connection.hub.env.blocking.submit(decode, header.api_version, data)
            except MalformedMessage as error:
                client = f"{api_name(header.api_key)} v{header.api_version} from client {header.client_id!r}"
                connection.close(f"{client} does not parse: {error}")
                return
            try:
                response = handler.handle(self._context, self._request(connection, header, body))
                if isinstance(response, Later):
                    leave()  # it may take long
                    response = await response.response()
                elif inspect.iscoroutine(response):
                    response = await response
                if not connection.closed and not isinstance(response, FramedAnswer):
                    response = await connection.hub.env.blocking.submit(_framed, header, response)
            except Exception as error:
                self._failed(connection, header, body, error)
                return
            self._answer(connection, header, body, response)

    def _answer(self, connection: Connection, header: RequestHeader, body: Any, response: Any) -> None:
        if connection.closed:
            return
        if isinstance(response, FramedAnswer):
            put_parts(connection, response.parts)
            return
        try:
            answer = frame_answer(header.api_key, header.api_version, header.correlation_id, response)
        except Exception as error:
            self._failed(connection, header, body, error)
            return
        connection.out.append(answer)
        connection.held_bytes += len(answer)

    def _failed(self, connection: Connection, header: RequestHeader, body: Any, error: Exception) -> None:
        """A handler raised: one line, with its trace where that tells of a bug, and -1 for every element of
        the request.
        """
        name = f"{api_name(header.api_key)} v{header.api_version}"
        if isinstance(error, StoreError | BadPayload):
            log.error("%s from %s failed: %s", name, connection.peer, error)
        else:
            log.error(
                "%s from %s (client %r) failed", name, connection.peer, header.client_id, exc_info=error
            )
        if connection.closed:
            return
        response = failure_answer(header.api_key, header.api_version, body, ErrorCode.UNKNOWN_SERVER_ERROR)
        connection.out.append(
            frame_answer(header.api_key, header.api_version, header.correlation_id, response)
        )

    def _unsupported(
        self, connection: Connection, buf: bytearray, at: int, end: int, key: int, version: int
    ) -> bool:
        handler = self._table.get(key)
        if key == ApiKey.API_VERSIONS and handler is not None:
            if connection.in_turn:
                connection.hub.turn.flush()
            response = m.ApiVersionsResponse(
                error_code=ErrorCode.UNSUPPORTED_VERSION,
                api_keys=[
                    m.ApiVersionsResponse.ApiVersion(
                        api_key=key, min_version=handler.min_version, max_version=handler.max_version
                    )
                ],
            )
            correlation_id = int.from_bytes(buf[at + 8 : at + 12], "big", signed=True)
            connection.out.append(frame_answer(key, 0, correlation_id, response))
            return True
        served = self._hot.get(key) or handler
        reason = "an API that this broker does not serve"
        if served is not None:
            reason = f"a version outside the served {served.min_version} to {served.max_version}"
        connection.close(f"{self._named(buf, at, end, key, version)} is {reason}")
        return True

    @staticmethod
    def _named(buf: bytearray, at: int, end: int, key: int, version: int) -> str:
        """The request for the log; the client id is read by hand because the header may not parse."""
        length = int.from_bytes(buf[at + 12 : min(end, at + 14)], "big", signed=True)
        client = bytes(buf[at + 14 : min(end, at + 14 + max(length, 0), at + 14 + 100)])
        return f"{api_name(key)} v{version} from client {client.decode('utf-8', 'replace')!r}"


def _framed(header: RequestHeader, response: Any) -> FramedAnswer:
    return FramedAnswer([frame_answer(header.api_key, header.api_version, header.correlation_id, response)])
