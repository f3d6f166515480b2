"""Options of `binlog`, and the loop that moves changes from the server to the topics.

The position is saved only when everything before it is acknowledged by the broker, and only between
transactions. A kill at any moment therefore loses nothing; what was written after the saved position is
recognised by the topics' last records and left out (see produce.py).
"""

from __future__ import annotations

import signal
import threading
import time
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import click
import pymysql

from spark_jobs.binlog.position import PositionDamaged, Saved, held, load, save
from spark_jobs.binlog.produce import Changes, TopicUnusable
from spark_jobs.binlog.reader import Change, Reader, Safe, Table
from spark_jobs.binlog.server import (
    BinlogUnusable,
    Server,
    binlog_files,
    check_available,
    check_settings,
    check_table,
    server_name,
    start_at,
)

SAVE_EVERY_S = 1.0
RETRY_FIRST_S, RETRY_MAX_S = 0.2, 5.0
# the server went away, is going, is full or is not there yet
PASSING = {1040, 1053, 1152, 1159, 1184, 2002, 2003, 2006, 2013}


@dataclass(slots=True)
class Job:
    """One reader: what it follows, where to, and how far it is."""

    server: Server
    tables: list[Table]
    topic: str
    position_file: Path
    changes: Changes
    start: str = "earliest"
    partitions: int = 0
    server_id: int = 0
    reconnect_s: float = 300.0
    skip_statements: bool = False
    once: bool = False
    report_every_s: float = 5.0
    stopped: threading.Event = field(default_factory=threading.Event)
    saved: Saved = field(init=False)
    pending: Safe | None = field(default=None, init=False)
    saved_at: float = field(default=0.0, init=False)
    reported_at: float = field(default=0.0, init=False)
    reported: int = field(default=0, init=False)

    def topic_of(self, table: Table) -> str:
        return self.topic.replace("{database}", table[0]).replace("{table}", table[1])

    def prepare(self) -> None:
        """Checks server, tables and topics, and finds the place to begin."""
        connection = self.server.connect()
        try:
            check_settings(connection)
            self.changes.server = server_name(connection)
            for table in self.tables:
                check_table(connection, *table)
            files = binlog_files(connection)
        finally:
            connection.close()
        found = load(self.position_file)
        if found is None:
            self.saved = Saved(*start_at(files, self.start), server=self.changes.server)
        else:
            self.saved = found
            if found.server != self.changes.server:
                raise BinlogUnusable(
                    f"{self.position_file} belongs to server {found.server}, but {self.server} is "
                    f"{self.changes.server}: positions of one server mean nothing on another"
                )
            check_available(files, found.file, found.offset)
        for topic in dict.fromkeys(map(self.topic_of, self.tables)):
            self.open_topic(topic, files, fresh=found is None)
        save(self.position_file, self.saved)  # "latest" is a place from now on

    def open_topic(self, topic: str, files: list[tuple[str, int]], fresh: bool) -> None:
        target = self.changes.open(topic, self.partitions)
        known = self.saved.partitions.setdefault(topic, target.partitions)
        if known != target.partitions:
            raise TopicUnusable(
                f"topic {topic} has {target.partitions} partitions, {known} when this reader began: keys "
                "would move, and their changes lose their order. Begin again with a new topic."
            )
        if fresh and self.start == "latest":
            target.last.clear()  # nothing of the past is read, so nothing can be repeated
        end = Saved(*files[-1]).position
        if any(place > end for place in target.last.values()):
            raise TopicUnusable(
                f"topic {topic} has changes from behind the end of the server's binlog ({files[-1][0]}): "
                "the binlog was reset. Load the table anew, then begin with a new position file and "
                "--start latest."
            )

    def run(self) -> None:
        """Follows the binlog until it is told to stop (or to its end, with `once`)."""
        self.saved_at = self.reported_at = time.monotonic()
        lost_at: float | None = None
        pause = RETRY_FIRST_S
        while not self.stopped.is_set():
            before = self.saved.position
            try:
                ended = self.follow()
                if ended and self.once:
                    break
                if not ended:
                    self.save_pending()
                    continue
                problem = "the server ended the stream"
            except (pymysql.err.OperationalError, pymysql.err.InterfaceError, OSError) as error:
                if not is_passing(error):
                    raise
                problem = str(error)
            if self.stopped.is_set():
                break
            self.save_pending()
            if self.saved.position > before:
                lost_at, pause = None, RETRY_FIRST_S
            now = time.monotonic()
            lost_at = lost_at or now
            if now - lost_at > self.reconnect_s:
                raise BinlogUnusable(f"{self.server} can't be reached for {self.reconnect_s:g} s: {problem}")
            click.echo(f"{self.server}: {problem}; trying again", err=True)
            self.stopped.wait(pause)
            pause = min(pause * 2, RETRY_MAX_S)
        self.save_pending()
        self.report()

    def follow(self) -> bool:
        """One connection, until the server ends it: True. False where this side wants to begin again."""
        connection = self.server.connect()
        try:
            kinds = {table: check_table(connection, *table) for table in self.tables}
            reader = Reader(
                self.server,
                self.server_id,
                kinds,
                self.saved.file,
                self.saved.offset,
                self.saved.created_s,
                self.skip_statements,
                blocking=not self.once,
            )
        finally:
            connection.close()
        for item in reader.read():
            if isinstance(item, Change):
                self.send(item)
            elif isinstance(item, Safe):
                self.pending = item
            self.between(idle=item is None)
            if reader.altered and isinstance(item, Safe):
                return False  # the kinds of the columns are looked up anew
            if self.stopped.is_set():
                return False
        return True

    def send(self, change: Change) -> None:
        database, table = change.table
        value = {
            "op": change.op,
            "before": change.before,
            "after": change.after,
            "ts_ms": change.ts_ms,
            "source": {
                "database": database,
                "table": table,
                "file": change.file,
                "position": change.position.offset,
                "row": change.position.number,
                "gtid": change.gtid,
            },
        }
        self.changes.send(self.topic_of(change.table), dict(change.key), value, change.position, change.file)

    def between(self, idle: bool) -> None:
        """What is due now and then: the position, a line of progress."""
        now = time.monotonic()
        if self.pending is not None and (idle or now - self.saved_at >= SAVE_EVERY_S):
            self.save_pending()
        if now - self.reported_at >= self.report_every_s and self.changes.sent > self.reported:
            self.report()

    def save_pending(self) -> None:
        """Waits until everything so far is in the topics; then the place counts."""
        self.changes.flush()
        self.saved_at = time.monotonic()
        if self.pending is not None:
            self.saved.file, self.saved.offset, self.saved.created_s = self.pending
            self.pending = None
            save(self.position_file, self.saved)

    def report(self) -> None:
        now = time.monotonic()
        count, span = self.changes.sent - self.reported, max(now - self.reported_at, 1e-3)
        self.reported, self.reported_at = self.changes.sent, now
        click.echo(
            f"binlog {self.saved.file}:{self.saved.offset}: {count:,} changes in {span:.1f} s "
            f"({count / span:,.0f}/s), {self.changes.sent:,} in all, "
            f"{self.changes.already:,} were there already",
            err=True,
        )


def is_passing(error: Exception) -> bool:
    """Whether trying again can help."""
    if isinstance(error, pymysql.err.OperationalError):
        return bool(error.args) and error.args[0] in PASSING
    return isinstance(error, (pymysql.err.InterfaceError, ConnectionError, TimeoutError))


def default_server_id(position_file: Path) -> int:
    """A replica's id, steady for one position file: the server ends the older of two with the same."""
    return 1_000_000 + zlib.crc32(str(position_file.resolve()).encode()) % 4_000_000_000 % 2**31


def tables_of(names: tuple[str, ...], topic: str) -> list[Table]:
    tables: list[Table] = []
    for name in names:
        database, dot, table = name.partition(".")
        if not dot or not table:
            raise click.UsageError(f"--table {name}: expected DATABASE.TABLE")
        tables.append((database, table))
    if len(tables) > 1 and "{table}" not in topic:
        raise click.UsageError("several tables need a topic each: --topic 'changes-{table}'")
    return tables


def pairs(options: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals:
            raise click.UsageError(f"--kafka-option {option}: expected KEY=VALUE")
        found[key] = value
    return found


@click.command("binlog", context_settings={"show_default": True})
@click.option("--bootstrap", required=True, metavar="HOST:PORT,...", help="Kafka brokers.")
@click.option("--host", default="127.0.0.1", help="MariaDB server.")
@click.option("--port", default=3306, help="Its port.")
@click.option("--user", default="root", help="A user with REPLICATION SLAVE, BINLOG MONITOR and SELECT.")
@click.option(
    "--password", envvar="MARIADB_PASSWORD", default="", help="Better in MARIADB_PASSWORD than here."
)
@click.option("--ssl-ca", type=click.Path(exists=True), help="Certificates to check the server's with.")
@click.option("--table", "names", multiple=True, required=True, metavar="DATABASE.TABLE", help="Repeatable.")
@click.option("--topic", required=True, help="Where to; {database} and {table} are filled in.")
@click.option(
    "--partitions", default=0, help="Create a missing topic with so many partitions; 0: it must exist."
)
@click.option(
    "--position-file", type=click.Path(path_type=Path), required=True, help="Keeps the place; made at first."
)
@click.option(
    "--start", default="earliest", help="Where to begin without one: earliest, latest or FILE:OFFSET."
)
@click.option(
    "--kafka-option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting of librdkafka. Repeatable.",
)
@click.option(
    "--delivery-timeout", default=120.0, help="Seconds until an undelivered change ends the reader."
)
@click.option(
    "--tombstones", is_flag=True, help="After a deletion also a record without a value, for compacted topics."
)
@click.option(
    "--server-id",
    type=int,
    help="The reader's own id among the server's replicas; else made of the file's name.",
)
@click.option("--reconnect-for", default=300.0, help="Seconds to try to reach a server that went away.")
@click.option(
    "--skip-statements", is_flag=True, help="Pass over what can't be told as changes of rows, with a warning."
)
@click.option("--once", is_flag=True, help="End at the end of the binlog rather than wait for more.")
@click.option("--report-every", default=5.0, help="Seconds between lines of progress.")
def command(
    bootstrap: str,
    host: str,
    port: int,
    user: str,
    password: str,
    ssl_ca: str | None,
    names: tuple[str, ...],
    topic: str,
    partitions: int,
    position_file: Path,
    start: str,
    options: tuple[str, ...],
    delivery_timeout: float,
    tombstones: bool,
    server_id: int | None,
    reconnect_for: float,
    skip_statements: bool,
    once: bool,
    report_every: float,
) -> None:
    """Read a MariaDB table's binlog and write its changes to a topic, in order.

    The server needs binlog_format=ROW, binlog_row_metadata=FULL and binlog_row_image=FULL. Each change is a
    record with the primary key as key and {"op": "c"|"u"|"d", "before", "after", "ts_ms", "source"} as value,
    both JSON. Ends on SIGTERM when everything read is written; started again it goes on where it was.

    \b
    Example:
      python -m spark_jobs binlog --bootstrap localhost:9092 --table shop.customers --topic customers \\
        --partitions 4 --position-file /var/lib/cdc/customers.json
    """
    job = Job(
        Server(host, port, user, password, ssl_ca),
        tables_of(names, topic),
        topic,
        position_file,
        Changes({"bootstrap.servers": bootstrap, **pairs(options)}, "", delivery_timeout, tombstones),
        start,
        partitions,
        server_id or default_server_id(position_file),
        reconnect_for,
        skip_statements,
        once,
        report_every,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: job.stopped.set())
    try:
        with held(position_file):
            job.prepare()
            click.echo(f"following {', '.join(names)} from {job.saved.file}:{job.saved.offset}", err=True)
            job.run()
    except (BinlogUnusable, TopicUnusable, PositionDamaged) as error:
        raise click.ClickException(str(error)) from error
    except pymysql.err.MySQLError as error:
        raise click.ClickException(f"MariaDB {job.server}: {error}") from error
