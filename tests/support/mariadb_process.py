"""A MariaDB server of a test's own: on a free port, in its own directory, logging rows as change events need.

    with MariadbProcess() as server:
        server.run("CREATE DATABASE shop", "...")
        server.rows("SELECT * FROM shop.customers")

Ready in about a second: the programs come from Debian's `mariadb-server-core` (see machine.py).
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.support.machine import MARIADB_HINT, mariadb_programs
from tests.support.ports import free_port
from tests.support.waiting import wait_until

START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
BINLOG = {
    "log-bin": "bin",
    "binlog-format": "ROW",
    "binlog-row-metadata": "FULL",
    "binlog-row-image": "FULL",
}
SMALL = {
    "innodb-buffer-pool-size": "32M",
    "innodb-log-file-size": "16M",
    "innodb-flush-log-at-trx-commit": "2",
    "performance-schema": "OFF",
    "skip-name-resolve": "ON",
    "character-set-server": "utf8mb4",
}


class MariadbProcess:
    """One server; `settings` are added to, or win over, those above."""

    def __init__(self, settings: dict[str, str] | None = None) -> None:
        self.host = "127.0.0.1"
        self.port = free_port()
        # short: a socket's path has a hundred characters
        self.directory = Path(tempfile.mkdtemp(prefix="mariadb-"))
        self.settings = {**BINLOG, **SMALL, **(settings or {})}
        self.log = self.directory / "server.log"
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> MariadbProcess:
        programs = mariadb_programs()
        assert programs is not None, MARIADB_HINT
        data = self.directory / "data"
        self.command = [str(programs.server), *self.options(data)]
        made = subprocess.run(
            [
                *(programs.install, "--no-defaults", f"--datadir={data}", "--skip-test-db", *self.as_root()),
                *("--auth-root-authentication-method=normal", "--innodb-log-file-size=16M"),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert made.returncode == 0, f"mariadb-install-db: {made.stdout[-2000:]}{made.stderr[-2000:]}"
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def as_root(self) -> list[str]:
        """The server refuses to run as root unless told to; other users may not tell it."""
        return ["--user=root"] if os.geteuid() == 0 else []

    def options(self, data: Path) -> list[str]:
        places = {"datadir": data, "socket": self.directory / "socket", "pid-file": self.directory / "pid"}
        network = {"bind-address": self.host, "port": self.port, "server-id": 1}
        pairs = {**places, **network, **self.settings}
        return ["--no-defaults", *self.as_root(), *(f"--{name}={value}" for name, value in pairs.items())]

    def start(self) -> None:
        """Starts the server and waits until it answers."""
        assert self.process is None, "the server is already running"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

        def answers() -> bool:
            if self.process is not None and self.process.poll() is not None:
                raise TimeoutError(f"the process ended with exit code {self.process.returncode}")
            return self.is_up()

        try:
            wait_until(answers, "MariaDB to start", START_TIMEOUT_S)
        except TimeoutError as error:
            self.kill()
            raise RuntimeError(f"{error}\n{self.log.read_text(errors='replace')[-3000:]}") from error

    def is_up(self) -> bool:
        import pymysql

        try:
            self.connect().close()
        except pymysql.err.OperationalError:
            return False
        return True

    def connect(self) -> Any:
        import pymysql

        return pymysql.connect(
            host=self.host, port=self.port, user="root", password="", charset="utf8mb4", autocommit=True
        )

    def run(self, *statements: str) -> None:
        """Runs statements in one session, each its own transaction unless they begin one."""
        with self.connect() as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def many(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        """One statement for many rows, in one transaction."""
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.executemany(statement, rows)
            cursor.execute("COMMIT")

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())

    def stop(self) -> None:
        """Asks the server to end and waits for it."""
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(STOP_TIMEOUT_S)
            self.process = None

    def kill(self) -> None:
        """Ends the server without a chance to clean up (SIGKILL)."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
