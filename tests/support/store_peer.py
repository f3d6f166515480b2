"""A process of its own with a session in a shared SQLite file, for tests that stop and kill such processes.

    python -m tests.support.store_peer PATH OWNER TIMEOUT_MS

Each line of standard input is a call, `["create", "/a", "text", true]`; each gets a line of JSON: the result,
or `{"error": NAME}`. Lines that begin with `event` tell what the session and a watch on `/watched` hear.
"""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from replication.metadata.shared_sqlite_store import SharedSqliteStore
from replication.metadata.store import StoreError
from runtime.os_files import OsFileSystem


class StorePeer:
    """The process, as a test sees it."""

    def __init__(self, path: Path, owner: str, timeout_ms: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.store_peer", str(path), owner, str(timeout_ms)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).resolve().parents[2],
        )
        self.events: list[str] = []
        self.session_id = int(self._answer())

    def __enter__(self) -> StorePeer:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def call(self, name: str, *arguments: Any) -> Any:
        """The result of a call; a text that names the error where it is refused."""
        self.send(name, *arguments)
        return self.receive()

    def send(self, name: str, *arguments: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([name, *arguments]) + "\n")
        self._process.stdin.flush()

    def receive(self) -> Any:
        answer = json.loads(self._answer())
        return answer["error"] if isinstance(answer, dict) and "error" in answer else answer

    def _answer(self) -> str:
        assert self._process.stdout is not None
        while True:
            line = self._process.stdout.readline()
            if not line.startswith("event "):
                return line
            self.events.append(line.removeprefix("event ").strip())

    def pause(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for end in (self._process.stdin, self._process.stdout):
            if end is not None:
                end.close()


async def main(path: str, owner: str, timeout_ms: str) -> None:
    loop = asyncio.get_running_loop()
    store = SharedSqliteStore(loop, OsFileSystem(), path, owner, int(timeout_ms))
    store.on_session(lambda event: print("event", event.value, flush=True))
    store.watch("/watched", lambda at, event: print("event", at, event.value, flush=True))
    await store.open()
    print(store.session_id, flush=True)
    while line := await asyncio.to_thread(sys.stdin.readline):
        name, *arguments = json.loads(line)
        try:
            path_of_node, *rest = arguments
            values = [each.encode() if isinstance(each, str) else each for each in rest]
            result = await getattr(store, name)(path_of_node, *values)
        except StoreError as error:
            result = {"error": type(error).__name__}
        print(json.dumps(result, default=lambda value: value.decode()), flush=True)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
