"""A search index that makes trouble: pushes back, refuses items, cuts connections, by a script.

It keeps documents by external version as a real one does, so that a test can compare what ended up in it.
What a real index does is asked of OpenSearch; this one is for what that can't be made to do on demand.
"""

from __future__ import annotations

import http.server
import json
import socket
import struct
import threading
from collections.abc import Iterable
from types import TracebackType
from typing import Any

OK, CUT, CUT_HALF, HOLD = "ok", "cut", "cut after half the answer", "hold until `release`, then cut"
Step = int | str | tuple[str, int]  # a status, one of the words, or ("items", status) for every second item


class FlakySearch:
    """Answers `_bulk` requests by the steps, then as it should."""

    def __init__(self, steps: Iterable[Step] = ()) -> None:
        self.steps = list(steps)
        self.documents: dict[str, tuple[int, dict[str, Any] | None]] = {}
        self.requests = 0
        self.lock = threading.Lock()
        self.held, self.release = threading.Event(), threading.Event()
        index = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with index.lock:
                    index.requests += 1
                    step = index.steps.pop(0) if index.steps else OK
                    index.answer(self, step, body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.thread = threading.Thread(target=self.server.serve_forever)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> FlakySearch:
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def let_go(self) -> None:
        """Cuts the request that is held; the next one can be."""
        self.release.set()
        with self.lock:  # which the held one has until it is cut
            self.held.clear()
            self.release.clear()

    def state(self) -> dict[str, dict[str, Any]]:
        return {name: source for name, (_, source) in self.documents.items() if source is not None}

    def answer(self, handler: http.server.BaseHTTPRequestHandler, step: Step, body: bytes) -> None:
        if step == HOLD:
            self.held.set()
            self.release.wait()
        if step in (CUT, HOLD):
            reset(handler)
            return
        if isinstance(step, int):
            reply(handler, step, b'{"error":"by the script"}')
            return
        refused = step[1] if isinstance(step, tuple) else None
        answer = json.dumps({"errors": refused is not None, "items": self.apply(body, refused)}).encode()
        if step == CUT_HALF:
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(answer)))
            handler.end_headers()
            handler.wfile.write(answer[: len(answer) // 2])
            handler.wfile.flush()
            reset(handler)
            return
        reply(handler, 200, answer)

    def apply(self, body: bytes, refused: int | None) -> list[dict[str, Any]]:
        """Takes a bulk's documents, every second one excepted where a status refuses those."""
        lines = iter(body.decode().splitlines())
        items: list[dict[str, Any]] = []
        for number, line in enumerate(lines):
            ((action, place),) = json.loads(line).items()
            source = json.loads(next(lines)) if action == "index" else None
            status = refused if refused is not None and number % 2 else self.take(place, source)
            result: dict[str, Any] = {"_id": place["_id"], "status": status}
            if status >= 400 and not (status == 404 and action == "delete"):
                result["error"] = {"type": "by_the_script", "reason": f"status {status}"}
            items.append({action: result})
        return items

    def take(self, place: dict[str, Any], source: dict[str, Any] | None) -> int:
        version, before = self.documents.get(place["_id"], (-1, None))
        if place["version"] <= version:
            return 409
        self.documents[place["_id"]] = (place["version"], source)
        return 404 if source is None and before is None else 200


def reply(handler: http.server.BaseHTTPRequestHandler, status: int, body: bytes) -> None:
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def reset(handler: http.server.BaseHTTPRequestHandler) -> None:
    """Ends the connection at once, with a reset."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.close_connection = True
    handler.connection.close()
