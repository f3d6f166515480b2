"""Spark's own cluster manager: one master and one worker, each a process on a free port."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from types import TracebackType

from tests.spark.quick import JVM_FLAGS, jvm_flags
from tests.support.java import java_home
from tests.support.ports import free_port
from tests.support.waiting import wait_until

START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0


def spark_home() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent


class Standalone:
    """A cluster of one worker with two cores."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = f"spark://127.0.0.1:{free_port()}"
        self.processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Standalone:
        try:
            port = self.url.rpartition(":")[2]
            self.start("master.Master", "--port", port)
            self.wait_for("master.Master", r"Starting Spark master at")
            self.start("worker.Worker", "--cores", "2", "--memory", "1g", "--work-dir", "work", self.url)
            self.wait_for("worker.Worker", r"Successfully registered with master")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self, name: str, *arguments: str) -> None:
        command = [spark_home() / "bin" / "spark-class", f"org.apache.spark.deploy.{name}"]
        environment = {
            **os.environ,
            "JAVA_HOME": str(java_home()),
            "SPARK_CONF_DIR": "",  # Spark's own
            "SPARK_LAUNCHER_OPTS": " ".join(JVM_FLAGS),
            "SPARK_DAEMON_JAVA_OPTS": jvm_flags(),
            "SPARK_HOME": str(spark_home()),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
        }
        with (self.folder / f"{name}.log").open("wb") as output:
            self.processes.append(
                subprocess.Popen(
                    [*map(str, command), "--host", "127.0.0.1", "--webui-port", str(free_port()), *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=self.folder,
                    env=environment,
                )
            )

    def output(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def wait_for(self, name: str, pattern: str) -> None:
        def seen() -> bool:
            assert self.processes[-1].poll() is None, self.output(name)
            return re.search(pattern, self.output(name)) is not None

        wait_until(seen, f"{name}: {pattern}", START_TIMEOUT_S)

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
