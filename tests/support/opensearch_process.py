"""A real OpenSearch node of a test's own, from the jars of Maven's repository; ready in about five seconds.

`java_sources/SearchNode.java` starts it. Janino, the compiler that Spark brings, compiles it on the way, so
a Java without a compiler is enough.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.support.jars import opensearch_jars, pyspark_jar
from tests.support.java import java
from tests.support.ports import free_port
from tests.support.waiting import wait_until

SOURCE = Path(__file__).with_name("java_sources") / "SearchNode.java"
JVM_FLAGS = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 60.0


class OpenSearchProcess:
    """One node. `start` returns at once; `wait` returns when it answers."""

    def __init__(self) -> None:
        self.port = free_port()
        self.directory = Path(tempfile.mkdtemp(prefix="opensearch-"))
        self.log = self.directory / "node.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> OpenSearchProcess:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def start(self) -> None:
        jars = [*opensearch_jars(), pyspark_jar("janino"), pyspark_jar("commons-compiler")]
        (self.directory / "config").mkdir(exist_ok=True)
        command = [str(java()), *JVM_FLAGS, "-cp", os.pathsep.join(map(str, jars))]
        command += ["org.codehaus.janino.SimpleCompiler", str(SOURCE), "SearchNode"]
        command += [str(self.directory), str(self.port), str(free_port())]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def wait(self) -> OpenSearchProcess:
        def answers() -> bool:
            assert self.process is not None
            if self.process.poll() is not None:
                raise TimeoutError(f"the process ended with exit code {self.process.returncode}")
            try:
                return self.ask("GET", "/_cluster/health")["status"] in ("green", "yellow")
            except OSError:
                return False

        try:
            wait_until(answers, "OpenSearch to start", START_TIMEOUT_S)
        except TimeoutError as error:
            raise RuntimeError(f"{error}\n{self.log.read_text(errors='replace')[-3000:]}") from error
        return self

    def ask(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """A request's answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            text = None if body is None else json.dumps(body)
            connection.request(method, path, text, {"Content-Type": "application/json"})
            found: dict[str, Any] = json.loads(connection.getresponse().read())
            return found
        finally:
            connection.close()

    def documents(self, index: str) -> dict[str, tuple[int, dict[str, Any]]]:
        """Every document of an index by id: version and source."""
        self.ask("POST", f"/{index}/_refresh")
        query = {"size": 10_000, "version": True, "query": {"match_all": {}}}
        hits = self.ask("POST", f"/{index}/_search", query)["hits"]["hits"]
        return {hit["_id"]: (hit["_version"], hit["_source"]) for hit in hits}

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None
