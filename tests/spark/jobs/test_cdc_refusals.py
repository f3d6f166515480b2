"""Records that can't be applied and sinks that make trouble: told with their place, nothing lost."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.clients.readers import read_with_confluent
from tests.spark.jobs.cdc import GOOD, ITEMS, create, gone, item, raw, run, send, sync_of, target
from tests.spark.jobs.flaky_search import CUT, CUT_HALF, FlakySearch
from tests.spark.jobs.groups import CHANGES
from tests.support.mariadb_process import MariadbProcess
from tests.support.ottla_process import OttlaProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.mariadb, pytest.mark.xdist_group(CHANGES)]

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
    spark: SparkSession, mariadb: MariadbProcess, ottla_process: OttlaProcess, tmp_path: Path
) -> None:
    from spark_jobs.changes import PoisonRecords
    from spark_jobs.jobs.cdc_sync import dead_letter_to
    from spark_jobs.kafka import Kafka
    from spark_jobs.sinks.mariadb import MariadbSink

    mariadb.run(f"CREATE OR REPLACE TABLE copy.items {ITEMS}")
    sink = MariadbSink(spark, target(mariadb, "items"))
    events = [*GOOD, *(event for event, _ in POISON + SAID_BY_THE_TABLE), item(1, name="z")]
    send(ottla_process, "poison", *events, partition=1)
    first, first_reason = len(GOOD), POISON[0][1]
    with pytest.raises(
        PoisonRecords, match=f"topic poison, partition 1, offset {first}: {first_reason}; "
    ) as caught:
        run(spark, ottla_process, sync_of("poison", tmp_path / "strict", sink))
    assert len(caught.value.refused) == len(POISON)
    assert str(caught.value).endswith(f"and {len(POISON) - 5} more")
    assert mariadb.rows("SELECT * FROM copy.items") == []
    create(ottla_process, "letters", 1)
    dead_letter = dead_letter_to(Kafka(ottla_process.bootstrap_servers), "letters")
    run(spark, ottla_process, sync_of("poison", tmp_path / "lenient", sink, dead_letter=dead_letter))
    assert mariadb.rows("SELECT * FROM copy.items ORDER BY id") == [(1, "z", None), (3, "c", 7)]
    ((*rows,),) = read_with_confluent(ottla_process.bootstrap_servers, ["letters"], 1)["letters"]
    letters = {int(dict(row.headers)["cdc_sync.offset"]): row for _, row in rows}
    for offset, ((key, value), reason) in enumerate(POISON + SAID_BY_THE_TABLE, len(GOOD)):
        said = {name: text.decode() for name, text in letters[offset].headers}
        assert reason in said["cdc_sync.reason"]
        assert (said["cdc_sync.topic"], said["cdc_sync.partition"]) == ("poison", "1")
        assert (letters[offset].key, letters[offset].value) == (raw(key), raw(value))
    assert len(letters) == len(POISON + SAID_BY_THE_TABLE)


def test_a_row_that_the_table_refuses_is_found_and_nothing_is_lost_when_it_is_mended(
    spark: SparkSession, mariadb: MariadbProcess, ottla_process: OttlaProcess, tmp_path: Path
) -> None:
    from spark_jobs.changes import PoisonRecords
    from spark_jobs.sinks.mariadb import MariadbSink

    mariadb.run(f"CREATE OR REPLACE TABLE copy.items {ITEMS}")
    sink = MariadbSink(spark, target(mariadb, "items"))
    many = [item(number, name=f"n{number}") for number in range(200)]
    many[123] = item(123, name="x" * 21)
    send(ottla_process, "mended", *many, partition=2)
    sync = sync_of("mended", tmp_path / "checkpoint", sink)
    with pytest.raises(
        PoisonRecords, match="topic mended, partition 2, offset 123: table items: Data too long"
    ):
        run(spark, ottla_process, sync)
    assert mariadb.rows("SELECT COUNT(*) FROM copy.items") == [(0,)]
    mariadb.run("ALTER TABLE copy.items MODIFY name VARCHAR(30)")
    run(spark, ottla_process, sync)
    assert mariadb.rows("SELECT COUNT(*), MAX(LENGTH(name)) FROM copy.items") == [(200, 21)]


def test_an_index_that_pushes_back_refuses_and_hangs_up(
    spark: SparkSession, ottla_process: OttlaProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from spark_jobs.changes import PoisonRecords
    from spark_jobs.sinks.search import Index, SearchRefused, SearchSink

    many = [item(number % 150, n=number) for number in range(300)]
    send(ottla_process, "flaky", *many, gone(7), (gone(8)[0], None), partition=0)
    expected = {
        str(number): {"id": number, "n": number + 150} for number in range(150) if number not in (7, 8)
    }
    trouble = [429, CUT, ("items", 429), 503, CUT_HALF, ("items", 503), CUT, CUT_HALF, 429]
    with FlakySearch(trouble) as index:
        sink = SearchSink(Index(index.url, "items", bulk_documents_max=25, give_up_s=60.0))
        run(spark, ottla_process, sync_of("flaky", tmp_path / "troubled", sink))
        assert index.state() == expected
        assert index.steps == []
    with FlakySearch([("items", 400)]) as index:
        sink = SearchSink(Index(index.url, "items", bulk_documents_max=25))
        sync = sync_of("flaky", tmp_path / "refused", sink)
        with pytest.raises(
            PoisonRecords, match=r"topic flaky, partition 0, offset \d+: index items, document .*400"
        ):
            run(spark, ottla_process, sync)
        run(spark, ottla_process, sync)  # the same batch again, which the index takes now
        assert index.state() == expected
    sink = SearchSink(Index(index.url, "items", give_up_s=0.2))
    with pytest.raises(
        SearchRefused, match=r"took nothing for 0.2 s, from partition 0, offset \d+ on: Connection"
    ):
        run(spark, ottla_process, sync_of("flaky", tmp_path / "refused-again", sink))
