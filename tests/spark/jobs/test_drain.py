"""`drain` copies a backlog to ten times the partitions: all of it, where a key belongs, in order."""

from __future__ import annotations

import itertools
import json
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from spark_jobs.audit.reading import TopicPart
from spark_jobs.audit.run import Audit
from spark_jobs.audit.run import run as audit
from spark_jobs.audit.sides import Compared
from spark_jobs.failures import JobFailed
from spark_jobs.jobs.drain import Drain, run
from spark_jobs.kafka import Kafka
from spark_jobs.options import Stream
from tests.clients.datasets import flights
from tests.spark.jobs.groups import CHANGES
from tests.spark.jobs.job_process import TIMEOUT_S, JobProcess, run_job
from tests.spark.topics import Record, add_partitions, admin, batch, create, fresh, write
from tests.support.jars import spark_kafka_jars
from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.tcp_proxy import TcpProxy
from tests.support.transactions import await_markers
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group(CHANGES)]

COUNT = 3_000
PARTITIONS = 2


@pytest.fixture(scope="module")
def broker():
    with OttlaProcess({"log.retention.ms": "-1"}) as broker:  # the flights are of 2013
        yield broker


@pytest.fixture(scope="module")
def records() -> list[Record]:
    """Flights as records; every 20th without a key, every 30th without headers, one without a value."""
    found = []
    for number, row in enumerate(itertools.islice(flights(), COUNT)):
        key = None if number % 20 == 0 else row.key
        headers = () if number % 30 == 0 else (*row.headers, ("empty", b""), ("none", None))
        value = None if number == 77 else row.value
        partition = zlib.crc32(row.key or b"") % PARTITIONS
        found.append(Record(partition, value, row.timestamp_ms, key, headers))
    return found


@pytest.fixture(scope="module")
def source(broker: OttlaProcess, records: list[Record]) -> str:
    topic = fresh(broker, PARTITIONS, stem="drain")
    write(broker, topic, records)
    return topic


def drain(broker: OttlaProcess, source: str, target: str, checkpoint: Path, **options: object) -> Drain:
    kafka = Kafka(broker.bootstrap_servers)
    return Drain(kafka, source, target, Stream(str(checkpoint), "available-now"), **options)


def murmur2(key: bytes) -> int:
    """The hash of Java's default partitioner, written from its definition."""
    length = len(key)
    h = 0x9747B28C ^ length
    for at in range(0, length - length % 4, 4):
        k = int.from_bytes(key[at : at + 4], "little") * 0x5BD1E995 & 0xFFFFFFFF
        k = (k ^ k >> 24) * 0x5BD1E995 & 0xFFFFFFFF
        h = (h * 0x5BD1E995 & 0xFFFFFFFF) ^ k
    rest = key[length - length % 4 :]
    if rest:
        h = (h ^ int.from_bytes(rest, "little")) * 0x5BD1E995 & 0xFFFFFFFF
    h = (h ^ h >> 13) * 0x5BD1E995 & 0xFFFFFFFF
    return h ^ h >> 15


def copied(spark: SparkSession, broker: OttlaProcess, topic: str) -> list[Row]:
    """Everything in the topic by partition and offset."""
    rows = batch(spark, broker, subscribe=topic, includeHeaders="true").collect()
    return sorted(rows, key=lambda row: (row["partition"], row["offset"]))


def headers_of(row: Row) -> tuple[tuple[str, bytes | None], ...]:
    return tuple(
        (header["key"], None if header["value"] is None else bytes(header["value"]))
        for header in row["headers"] or ()
    )


def contents(row: Row) -> tuple[object, ...]:
    key, value = (None if row[name] is None else bytes(row[name]) for name in ("key", "value"))
    return key, value, headers_of(row)


def test_every_record_is_copied_to_the_partition_of_its_key_in_order(
    spark: SparkSession, broker: OttlaProcess, source: str, records: list[Record], tmp_path: Path
) -> None:
    target = f"{source}-wide"
    run(spark, drain(broker, source, target, tmp_path / "checkpoint", max_offsets=1000))
    width = PARTITIONS * 10
    assert len(admin(broker).list_topics(target, timeout=60).topics[target].partitions) == width
    rows = copied(spark, broker, target)
    for partition in range(width):
        found = [contents(row) for row in rows if row["partition"] == partition and row["key"] is not None]
        expected = [
            (record.key, record.value, record.headers)
            for number in range(PARTITIONS)
            for record in records
            if record.partition == number
            and record.key is not None
            and (murmur2(record.key) & 0x7FFFFFFF) % width == partition
        ]
        assert sorted(found, key=repr) == sorted(expected, key=repr)
        for key in {record[0] for record in expected}:
            assert [one for one in found if one[0] == key] == [one for one in expected if one[0] == key]
    keyless = [contents(row) for row in rows if row["key"] is None]
    assert sorted(map(repr, keyless)) == sorted(
        repr((None, record.value, record.headers)) for record in records if record.key is None
    )
    # a second run has nothing to do
    run(spark, drain(broker, source, target, tmp_path / "checkpoint", max_offsets=1000))
    assert len(copied(spark, broker, target)) == COUNT


def test_records_without_a_key_can_stay_in_order_and_say_where_they_were(
    spark: SparkSession, broker: OttlaProcess, source: str, records: list[Record], tmp_path: Path
) -> None:
    target = f"{source}-origin"
    create(broker, target, 5)
    run(spark, drain(broker, source, target, tmp_path, keyless="source", origin=True))
    rows = copied(spark, broker, target)
    ends = [0] * PARTITIONS
    expected = []
    for record in records:
        place = (
            ("origin.partition", b"%d" % record.partition),
            ("origin.offset", b"%d" % ends[record.partition]),
            ("origin.timestamp", b"%d" % record.timestamp_ms),
        )
        ends[record.partition] += 1
        expected.append((record.partition, record.key, record.value, (*record.headers, *place)))
    keyless = [(row["partition"], *contents(row)) for row in rows if row["key"] is None]
    assert keyless == [
        one for number in range(PARTITIONS) for one in expected if one[0] == number and one[1] is None
    ]
    assert sorted(map(repr, map(contents, rows))) == sorted(repr(one[1:]) for one in expected)
    sides = (TopicPart(topic, broker.bootstrap_servers) for topic in (source, target))
    report = audit(spark, Audit(*sides, Compared(match="origin")))
    assert report.ok
    assert report.equal


def test_only_committed_records_are_copied_and_their_markers_are_no_loss(
    spark: SparkSession, broker: OttlaProcess, tmp_path: Path
) -> None:
    """From an Apache Kafka to our broker."""
    with KafkaProcess() as kafka:
        source, target = fresh(kafka, 1, stem="transactions"), "transactions-copy"
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": source})
        producer.init_transactions(60)
        for number in range(4):
            producer.begin_transaction()
            for each in range(10):
                producer.produce(source, b"%d-%d" % (number, each), b"key")
            producer.flush(60)
            if number % 2:
                producer.abort_transaction(60)
            else:
                producer.commit_transaction(60)
        await_markers(kafka.bootstrap_servers, source, 44)
        ours = Kafka(broker.bootstrap_servers)
        job = Drain(
            Kafka(kafka.bootstrap_servers), source, target, Stream(str(tmp_path), "available-now"), ours, 3
        )
        run(spark, job)
        report = audit(
            spark,
            Audit(TopicPart(source, kafka.bootstrap_servers), TopicPart(target, broker.bootstrap_servers)),
        )
    values = [bytes(row["value"]) for row in copied(spark, broker, target)]
    assert values == [b"%d-%d" % (number, each) for number in (0, 2) for each in range(10)]
    assert report.ok
    assert (report.left.records, report.left.holes, report.right.holes) == (20, 24, 0)
    assert report.left.holes_are == "20 records of aborted transactions, 4 transaction markers"


def test_what_would_lose_the_order_is_refused(
    spark: SparkSession, broker: OttlaProcess, source: str, tmp_path: Path
) -> None:
    target = f"{source}-refused"
    create(broker, target, 4)
    for wrong in (
        {"max.in.flight.requests.per.connection": "6"},
        {"kafka.enable.idempotence": "false"},
        {"partitioner.class": "a.b.C"},
        {"acks": "1"},
    ):
        job = drain(broker, source, target, tmp_path)
        job.kafka = Kafka(broker.bootstrap_servers, wrong)
        with pytest.raises(JobFailed, match=r"does not keep the order of a key's records"):
            run(spark, job)
    with pytest.raises(JobFailed, match=f"topic {target} has 4 partitions, not 7"):
        run(spark, drain(broker, source, target, tmp_path, partitions=7))
    with pytest.raises(JobFailed, match=r"topic nowhere does not exist"):
        run(spark, drain(broker, "nowhere", target, tmp_path))
    with pytest.raises(JobFailed, match=f"topic {source} can't be drained into itself"):
        run(spark, drain(broker, source, source, tmp_path))
    assert not list(tmp_path.iterdir())


def test_a_partition_added_to_the_target_ends_the_copy(
    spark: SparkSession, broker: OttlaProcess, source: str, records: list[Record], tmp_path: Path
) -> None:
    target = f"{source}-widened"
    create(broker, target, 3)
    run(spark, drain(broker, source, target, tmp_path))
    add_partitions(broker, target, 4)
    with pytest.raises(JobFailed, match=r"with 3 partitions; now it is .* with 4\. Keys would move"):
        run(spark, drain(broker, source, target, tmp_path))
    assert len(copied(spark, broker, target)) == len(records)


@pytest.fixture
def behind_proxy() -> Iterator[tuple[OttlaProcess, TcpProxy]]:
    """A broker of its own that tells clients to come by way of a proxy."""
    broker = OttlaProcess({"log.retention.ms": "-1"})
    with TcpProxy(broker.host, broker.port) as between:
        broker.overrides["advertised.listeners"] = f"PLAINTEXT://{between.address}"
        with broker:
            yield broker, between


def test_killed_in_a_batch_and_started_again_loses_nothing_and_repeats_what_audit_counts(
    spark: SparkSession, behind_proxy: tuple[OttlaProcess, TcpProxy], tmp_path: Path
) -> None:
    broker, proxy = behind_proxy
    count = 10_000
    records = [
        Record(zlib.crc32(row.key or b"") % PARTITIONS, row.value, row.timestamp_ms, row.key)
        for row in itertools.islice(flights(), count)
    ]
    source, batch_size = fresh(broker, PARTITIONS, stem="drain-killed"), count // 2
    write(broker, source, records)
    target, checkpoint = f"{source}-wide", tmp_path / "checkpoint"
    progress_file = tmp_path / "progress.jsonl"
    # In the middle of the second batch nothing passes any more: neither that batch nor the first one's line,
    # which comes by itself some time after it, depends on when the kill comes.
    proxy.freeze_after(sum(len(each.key or b"") + len(each.value or b"") for each in records) * 3 // 4)
    with JobProcess(
        *("drain", "--bootstrap", broker.bootstrap_servers, "--topic", source, "--to", target),
        *("--partitions", 5, "--checkpoint", checkpoint, "--max-offsets-per-trigger", batch_size),
        *("--progress-file", progress_file, "--jars", spark_kafka_jars()),
        *("--to-kafka-option", "linger.ms=100"),  # few and whole requests: bytes are those of records
    ) as job:

        def stands() -> bool:
            assert job.process.poll() is None, job.output()
            return proxy.frozen and bool(lines_of(progress_file))

        wait_until(stands, "the first batch's line and half of the second batch", TIMEOUT_S)
        job.kill()
    proxy.cut()
    proxy.heal()
    (first,) = lines_of(progress_file)
    assert json.loads(first)["records"] in range(batch_size - PARTITIONS, batch_size + 1)
    assert sorted(path.name for path in (checkpoint / "commits").glob("[0-9]*")) == ["0"]
    again = drain(broker, source, target, checkpoint, max_offsets=batch_size)
    again.stream.progress_file = progress_file
    run(spark, again)

    rows = copied(spark, broker, target)
    extra = Counter((bytes(row["key"]), bytes(row["value"])) for row in rows)
    extra.subtract((record.key, record.value) for record in records)
    repeated = sum(extra.values())
    assert min(extra.values()) == 0, "a record was lost"
    assert 0 < repeated <= batch_size

    code, said = run_job(
        *("audit", "--bootstrap", broker.bootstrap_servers, "--left", source, "--right", target),
        *("--json", tmp_path / "report.json", "--plot", tmp_path / "drain.svg"),
        *("--progress-file", progress_file),
    )
    assert code == 1, said
    report = json.loads((tmp_path / "report.json").read_text())
    counts = {name: check["count"] for name, check in report["checks"].items() if check["count"]}
    assert counts == {"repeated": repeated}
    assert f"repeated   {repeated:>12,}  FAILED" in said
    assert (report["left"]["records"], report["right"]["records"]) == (count, count + repeated)
    by_partition = Counter(str(row["partition"]) for row in repeats(rows))
    assert report["checks"]["repeated"]["partitions"] == dict(by_partition)
    assert (tmp_path / "drain.svg").read_text().count("<path") > 2
    batches = [json.loads(line)["batch"] for line in lines_of(progress_file)]
    assert batches in ([0, 1], [0, 1, 2])  # a batch's limit is shared out to partitions and rounded down
    sides = (TopicPart(topic, broker.bootstrap_servers) for topic in (source, target))
    assert audit(spark, Audit(*sides, allow_repeats=True)).ok


def lines_of(file: Path) -> list[str]:
    """Its lines by now; none where there is no file yet."""
    return file.read_text().splitlines() if file.exists() else []


def repeats(rows: list[Row]) -> list[Row]:
    """Second and further copies; no two flights are the same."""
    seen: set[tuple[bytes, bytes]] = set()
    found = []
    for row in rows:
        content = bytes(row["key"]), bytes(row["value"])
        if content in seen:
            found.append(row)
        seen.add(content)
    return found
