"""A job as the process that a user starts: `python -m spark_jobs NAME ...`, or by spark-submit."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from tests.spark.quick import spark_environment
from tests.support.jars import spark_kafka_jars
from tests.support.waiting import wait_until

CHECKOUT = Path(__file__).resolve().parents[3]
TIMEOUT_S = 300.0


class JobProcess:
    """One run of a job. The process is the leader of a group of its own, with its JVM and Python workers."""

    def __init__(
        self,
        *arguments: object,
        command: Sequence[object] | None = None,
        cwd: Path = CHECKOUT,
        **environment: str,
    ) -> None:
        self.output_path = Path(tempfile.mkstemp(prefix="spark-job-", suffix=".log")[1])
        start = command or [sys.executable, "-m", "spark_jobs"]
        with self.output_path.open("wb") as output:
            self.process = subprocess.Popen(
                [*map(str, start), *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env={**os.environ, **spark_environment(), **environment},
                start_new_session=True,
            )

    def __enter__(self) -> JobProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        self.output_path.unlink()

    def output(self) -> str:
        return self.output_path.read_text(errors="replace")

    def wait_for(self, pattern: str) -> re.Match[str]:
        """The first match in the output; fails when the process ends without one."""
        found: list[re.Match[str]] = []

        def seen() -> bool:
            ended = self.process.poll() is not None
            match = re.search(pattern, self.output())
            if match:
                found.append(match)
            elif ended:
                raise AssertionError(
                    f"ended with {self.process.returncode}, no {pattern!r}:\n{self.output()}"
                )
            return match is not None

        try:
            wait_until(seen, f"{pattern!r}", TIMEOUT_S)
        except TimeoutError as error:
            raise AssertionError(f"{error}:\n{self.output()}") from error
        return found[0]

    def wait(self) -> int:
        try:
            return self.process.wait(TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still runs:\n{self.output()}") from None

    def terminate(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """SIGKILL to the whole group: the driver, its JVM and its workers go at once."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def run_job(*arguments: object) -> tuple[int, str]:
    """A job that ends by itself: exit code and output."""
    with JobProcess(*arguments, "--jars", spark_kafka_jars()) as job:
        return job.wait(), job.output()
