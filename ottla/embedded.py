"""A broker for a program or a test suite, in a child interpreter.

    with EmbeddedBroker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

The child listens on a port of the system's choice before the context opens. Parent and child share two
pipes: the parent writes commands (JSON lines), the child answers with one line each, the first of which
says that it is ready. The end of the command pipe stops the broker, so it never outlives the program that
started it, not even when that is killed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from ottla.paths import child_command, child_environment

START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 30.0
LOG_TAIL_BYTES = 4096


class BrokerFailed(RuntimeError):
    """The broker did not start, or ended, or refused a command; the message holds its own last words."""


class EmbeddedBroker:
    """One single-node broker; a synchronous and an asynchronous context manager.

    data_dir: where its topics are kept; by default a temporary folder that goes when the context closes.
    port: 0 lets the system choose. A broker that is started again keeps the port it had.
    overrides: keys of `server.properties`; True and False become Kafka's `true` and `false`.

    One thread at a time may start, stop or command a broker.
    """

    def __init__(
        self,
        data_dir: str | os.PathLike[str] | None = None,
        *,
        port: int = 0,
        overrides: Mapping[str, object] | None = None,
    ) -> None:
        self.host = "127.0.0.1"
        self._given_data_dir = None if data_dir is None else Path(data_dir)
        self._port = port
        self._overrides = {key: property_text(value) for key, value in (overrides or {}).items()}
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: Path | None = None

    @property
    def port(self) -> int:
        """The port it listens on; before the first start the one asked for."""
        return self._port

    @property
    def bootstrap_servers(self) -> str:
        """`host:port`, as clients take it. Known from the first start on."""
        if self._port == 0:
            raise BrokerFailed("the broker has no address yet: enter its context or call start() first")
        return f"{self.host}:{self._port}"

    @property
    def data_dir(self) -> Path:
        """The folder given, or the temporary one of a started broker."""
        if self._given_data_dir is not None:
            return self._given_data_dir
        return self._scratch() / "data"

    @property
    def log_path(self) -> Path:
        """The broker's log file; it goes when the context closes."""
        return self._scratch() / "broker.log"

    @property
    def pid(self) -> int | None:
        """The process id of the running broker, else None."""
        return None if self._process is None else self._process.pid

    def __enter__(self) -> EmbeddedBroker:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> EmbeddedBroker:
        import asyncio

        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import asyncio

        await asyncio.to_thread(self.close)

    def start(self) -> None:
        """Starts the broker and returns when it accepts connections; BrokerFailed says why it does not."""
        if self._process is not None:
            raise BrokerFailed("the broker is already running")
        settings = {
            **self._overrides,
            "listeners": f"PLAINTEXT://{self.host}:{self._port}",
            "log.dirs": str(self.data_dir.absolute()),
        }
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                child_command("ottla.child", *(f"{key}={value}" for key, value in settings.items())),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=child_environment(),
                start_new_session=sys.platform != "win32",  # Ctrl-C is for the program; it stops the broker
            )
        try:
            self._port = self._answer(START_TIMEOUT_S)["port"]
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Stops the broker as SIGTERM would, in good order; its data stay, and it can be started again."""
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
        self._process = None

    def kill(self) -> None:
        """Ends the broker at once, without a chance to flush or to say good-bye; it can be started again."""
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
        self._process = None

    def close(self) -> None:
        """Stops the broker and removes its temporary folder."""
        self.stop()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def create_topic(
        self, name: str, partitions: int = 1, config: Mapping[str, object] | None = None
    ) -> None:
        """Creates a topic without a client library; BrokerFailed carries the broker's refusal."""
        settings = {key: property_text(value) for key, value in (config or {}).items()}
        self._command({"create_topic": name, "partitions": partitions, "config": settings})

    def delete_topic(self, name: str) -> None:
        """Deletes a topic without a client library; BrokerFailed carries the broker's refusal."""
        self._command({"delete_topic": name})

    def _scratch(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="ottla-"))
        return self._folder

    def _command(self, command: Mapping[str, object]) -> None:
        if self._process is None:
            raise BrokerFailed("the broker is not running")
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(command).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise BrokerFailed(self._last_words("the broker has ended")) from error
        answer = self._answer(START_TIMEOUT_S)
        if "error" in answer:
            raise BrokerFailed(answer["error"])

    def _answer(self, timeout_s: float) -> dict[str, Any]:
        """The child's next line. A child that stays silent is killed, which ends the read."""
        process = self._process
        assert process is not None
        assert process.stdout is not None
        silence = threading.Timer(timeout_s, process.kill)
        silence.start()
        try:
            line = process.stdout.readline()
        finally:
            silence.cancel()
        if not line:
            code = process.wait()
            raise BrokerFailed(self._last_words(f"the broker ended with exit code {code}"))
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _last_words(self, what: str) -> str:
        log = self.log_path.read_bytes()[-LOG_TAIL_BYTES:].decode(errors="replace").strip()
        return f"{what}; its log ends with:\n{log}" if log else f"{what} without a word in its log"


def property_text(value: object) -> str:
    """A Python value as a value of `server.properties`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(property_text(item) for item in value)
    return str(value)
