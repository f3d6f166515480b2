"""The binlog reader as a process of its own, as users start it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType

from click.testing import CliRunner

from spark_jobs.binlog.command import command
from tests.support.mariadb_process import MariadbProcess
from tests.support.ottla_process import CHECKOUT
from tests.support.waiting import wait_until

STOP_TIMEOUT_S = 90.0
TIMEOUT_S = 180.0


def binlog_command(server: MariadbProcess, bootstrap: str, position_file: Path, *options: str) -> list[str]:
    """Follows shop.items into the topic items, unless the options say otherwise (the last one wins)."""
    return [
        *(sys.executable, "-m", "spark_jobs", "binlog", "--bootstrap", bootstrap),
        *("--host", server.host, "--port", str(server.port), "--user", "root"),
        *("--position-file", str(position_file), "--report-every", "0.2", *options),
    ]


def run_binlog(server: MariadbProcess, bootstrap: str, position_file: Path, *options: str) -> tuple[int, str]:
    """Reads to the end of the binlog, in this process; exit code and everything said."""
    arguments = binlog_command(server, bootstrap, position_file, *options, "--once")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        done = CliRunner().invoke(command, arguments[arguments.index("binlog") + 1 :])
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


class BinlogProcess:
    """A reader that follows until it is stopped."""

    def __init__(self, server: MariadbProcess, bootstrap: str, position_file: Path, *options: str) -> None:
        self.command = binlog_command(server, bootstrap, position_file, *options)
        self.output = Path(tempfile.mkstemp(prefix="binlog-")[1])
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> BinlogProcess:
        with self.output.open("ab") as output:
            self.process = subprocess.Popen(
                self.command, cwd=CHECKOUT, stdout=output, stderr=output, env=dict(os.environ)
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self.output.unlink(missing_ok=True)

    def said(self) -> str:
        return self.output.read_text(errors="replace")

    def wait_for(self, text: str) -> None:
        """Until it has said something; its end before that is a failure."""

        def heard() -> bool:
            if text in self.said():
                return True
            assert self.process is not None
            assert self.process.poll() is None, self.said()
            return False

        wait_until(heard, f"the reader to say {text!r}", TIMEOUT_S)

    def stop(self) -> int:
        """Asks it to end; its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_TIMEOUT_S)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
