"""Our broker as a process of its own, under the command that users type.

    with OttlaProcess() as broker:
        ...
        broker.kill()
        broker.start()    # the same directory and port

It has the doors of `KafkaProcess` (bootstrap_servers, log_dir, start, stop, kill), so that a test can be
pointed at either.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from tests.support.ports import free_port
from tests.support.waiting import wait_until

CHECKOUT = Path(__file__).resolve().parents[2]
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 120.0
READY_LINE = re.compile(rb"\[KafkaServer id=\d+\] started")


class OttlaProcess:
    """One broker on a free port of 127.0.0.1, started by `ottla serve`."""

    def __init__(
        self,
        overrides: Mapping[str, str] | None = None,
        directory: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.overrides = dict(overrides or {})
        self.environment = dict(environment or {})
        self.start_timeout_s, self.stop_timeout_s = START_TIMEOUT_S, STOP_TIMEOUT_S
        self.ready_line = READY_LINE
        self.host = "127.0.0.1"
        self.port = free_port()
        self.keeps_directory = directory is not None
        self.directory = directory or Path(tempfile.mkdtemp(prefix="ottla-process-"))
        self.log_dir = self.directory / "data"
        self.output_path = self.directory / "server.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap_servers(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        process = self.process  # which another thread may take away
        assert process is not None, "the broker is not running"
        return process.pid

    def __enter__(self) -> OttlaProcess:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if not self.keeps_directory:
            shutil.rmtree(self.directory, ignore_errors=True)

    def command(self) -> list[str]:
        """The command line; later overrides win over ours."""
        settings = {
            "listeners": f"PLAINTEXT://{self.host}:{self.port}",
            "log.dirs": str(self.log_dir),
            "log.initial.task.delay.ms": "86400000",  # of retention: tests write records of years ago
            **self.overrides,
        }
        pairs = [part for key, value in settings.items() for part in ("--override", f"{key}={value}")]
        return [sys.executable, "-m", "ottla", "serve", *pairs]

    def start(self) -> None:
        """Starts the broker and waits for the line that says it serves."""
        assert self.process is None, "the broker is already running"
        self.directory.mkdir(parents=True, exist_ok=True)
        already = self.output_path.stat().st_size if self.output_path.exists() else 0
        with self.output_path.open("ab") as output:
            self.process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=CHECKOUT,
                env={**os.environ, **self.environment},
                start_new_session=True,
            )

        def ready() -> bool:
            with self.output_path.open("rb") as log:
                log.seek(already)
                said = log.read()
            if self.ready_line.search(said):
                return True
            if self.process is not None and self.process.poll() is not None:
                raise TimeoutError(f"the process ended with exit code {self.process.returncode}")
            return False

        try:
            wait_until(ready, "our broker to start", self.start_timeout_s)
        except TimeoutError as error:
            self.kill()
            raise RuntimeError(f"{error}\n{self.output()[-3000:]}") from error

    def output(self) -> str:
        """Everything it has printed so far, over all starts."""
        return self.output_path.read_text(errors="replace")

    def stop(self) -> int | None:
        """Asks the broker to end (SIGTERM), returns its exit code; None when it was not running."""
        if self.process is None:
            return None
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(self.stop_timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        self.process = None
        return code

    def signal(self, number: int) -> None:
        """Sends a signal, as SIGSTOP and SIGCONT to pause it and let it go on."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """Ends the broker without a chance to clean up (SIGKILL)."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
