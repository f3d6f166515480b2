"""A real ZooKeeper as a process of a test, from the jars inside the pyspark wheel.

    with ZookeeperProcess() as zookeeper:
        connect(f"{zookeeper.address}/a-chroot-of-my-own")

tickTime is 500 ms, so that a session of 2 s ends after 2 s. The data is written and not synced: it survives
a kill and a restart of the process, which is all that tests ask for. Port and data stay over them.

With `tls` (key store and trust store, PEM) it takes TLS besides at `secure_address`, and asks clients for a
certificate.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType

from tests.support.jars import pyspark_jar
from tests.support.java import java
from tests.support.ports import free_port
from tests.support.waiting import wait_until

START_TIMEOUT_S = 120.0
TICK_MS = 500
MAX_SESSION_MS = 20 * TICK_MS
JARS = ("zookeeper-3", "zookeeper-jute", "slf4j-api", "metrics-core", "snappy-java")
JVM_FLAGS = (
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    "-Dzookeeper.forceSync=no",
    "-Dzookeeper.admin.enableServer=false",
)
TLS_JARS = ("netty-buffer-4", "netty-codec-4", "netty-codec-base", "netty-common", "netty-handler-4")
TLS_JARS += ("netty-resolver-4", "netty-transport-4", "netty-transport-classes-epoll")
TLS_JARS += ("netty-transport-native-unix-common",)
TLS_FLAGS = ("-Dzookeeper.serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",)


class ZookeeperProcess:
    """One ZooKeeper server on a free port of 127.0.0.1. Sessions last 10 s at most, or what is said."""

    def __init__(self, tls: tuple[Path, Path] | None = None, max_session_ms: int = MAX_SESSION_MS) -> None:
        self.max_session_ms = max_session_ms
        self.host = "127.0.0.1"
        self.port = free_port()
        self.secure_port = free_port()
        self.tls = tls
        self.directory = Path(tempfile.mkdtemp(prefix="zookeeper-"))
        self.output_path = self.directory / "zookeeper.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def secure_address(self) -> str:
        return f"{self.host}:{self.secure_port}"

    def __enter__(self) -> ZookeeperProcess:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process is not None:
            self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def start(self) -> None:
        """Start the server on what it had before, and wait until it serves."""
        assert self.process is None, "ZooKeeper is already running"
        settings = {
            "tickTime": TICK_MS,
            "dataDir": self.directory / "data",
            "clientPort": self.port,
            "clientPortAddress": self.host,
            "maxClientCnxns": 0,
            "maxSessionTimeout": self.max_session_ms,
            "admin.enableServer": "false",
        }
        if self.tls is not None:
            settings["secureClientPort"] = self.secure_port
            for store, path in zip(("keyStore", "trustStore"), self.tls, strict=True):
                settings[f"ssl.{store}.location"] = path
                settings[f"ssl.{store}.type"] = "PEM"
        file = self.directory / "zoo.cfg"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        names, flags = JARS, JVM_FLAGS
        if self.tls is not None:
            names, flags = names + TLS_JARS, flags + TLS_FLAGS
        jars = ":".join(str(pyspark_jar(prefix)) for prefix in names)
        command = [str(java()), *flags, "-cp", jars]
        with self.output_path.open("ab") as output:
            self.process = subprocess.Popen(
                [*command, "org.apache.zookeeper.server.ZooKeeperServerMain", str(file)],
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                start_new_session=True,
            )
        try:
            wait_until(self._serves, "ZooKeeper to serve", START_TIMEOUT_S)
        except TimeoutError as error:
            self.kill()
            tail = self.output_path.read_text(errors="replace")[-3000:]
            raise RuntimeError(f"ZooKeeper did not start: {error}\n{tail}") from error

    def _serves(self) -> bool:
        """Whether it says how it is: it listens a little earlier, and answers no session then."""
        if self.process is None or self.process.poll() is not None:
            raise TimeoutError("the process ended")
        try:
            with socket.create_connection((self.host, self.port), timeout=1.0) as connection:
                connection.sendall(b"srvr")
                return b"Mode: standalone" in connection.recv(4096)
        except OSError:
            return False

    def kill(self) -> None:
        """End it at once; `start` brings it back."""
        assert self.process is not None, "ZooKeeper is not running"
        self.process.kill()
        self.process.wait()
        self.process = None

    def pause(self) -> None:
        """Stop the process where it stands: connections stay, nothing is answered."""
        assert self.process is not None, "ZooKeeper is not running"
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)  # its threads stop one after the other

    def resume(self) -> None:
        assert self.process is not None, "ZooKeeper is not running"
        self.process.send_signal(signal.SIGCONT)
