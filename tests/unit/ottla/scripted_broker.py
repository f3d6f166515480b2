"""A broker that answers by script, for the blocking client's tests."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable

from protocol import messages as m
from protocol.frames import frame
from protocol.headers import decode_request_header, encode_response_header

Script = Callable[[m.Message], "m.Message | None"]


class ScriptedBroker:
    """Answers ApiVersions itself and everything else by `script`, which closes the connection with None."""

    def __init__(self, script: Script, versions: dict[int, tuple[int, int]]) -> None:
        self.script = script
        self.versions = versions
        self.requests: list[m.Message] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> ScriptedBroker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(60)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as incoming:
            while size := incoming.read(4):
                answer = self._answer(incoming.read(struct.unpack(">i", size)[0]))
                if answer is None:
                    break
                connection.sendall(answer)

    def _answer(self, payload: bytes) -> bytes | None:
        header, at = decode_request_header(payload)
        request, _ = m.request_class(header.api_key).decode(header.api_version, payload, at)
        self.requests.append(request)
        response = self._api_versions() if header.api_key == 18 else self.script(request)
        if response is None:
            return None
        head = encode_response_header(header.api_key, header.api_version, header.correlation_id)
        return frame(head, response.encode(header.api_version))

    def _api_versions(self) -> m.ApiVersionsResponse:
        ranges = {18: (0, 3), **self.versions}
        return m.ApiVersionsResponse(
            api_keys=[
                m.ApiVersionsResponse.ApiVersion(api_key=key, min_version=low, max_version=high)
                for key, (low, high) in ranges.items()
            ]
        )
