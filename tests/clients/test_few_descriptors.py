"""Two thousand partitions on a broker that may open two hundred files: everything works, and the limit holds.

The hard limit of the process leaves the broker that many for segments. Batches are so large that they are
sent from their files; answers that nobody reads hold files open meanwhile.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from protocol import messages as m
from protocol.records.batch import Record, batches, read_header
from protocol.records.builder import build_batch
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

PARTITIONS = 2_000
HARD_LIMIT = 656  # half of what is beyond 256 is for files: 200
FILES = 200
AT_ONCE = 250
NOW_MS, YEARS_AGO_MS = int(time.time() * 1000), 1_500_000_000_000
EARLIEST, LATEST = -2, -1


class LimitedBroker(OttlaProcess):
    """Its shell lowers the limits before it becomes the broker."""

    def command(self) -> list[str]:
        limited = f'ulimit -Sn 300; ulimit -Hn {HARD_LIMIT}; exec "$@"'
        return ["/bin/sh", "-c", limited, "sh", *super().command()]


class Watch:
    """Counts the descriptors of a process again and again."""

    def __init__(self, broker: OttlaProcess) -> None:
        self.most = 0
        self._broker = broker
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()

    def _look(self) -> None:
        while not self._stop.wait(0.01):
            self.most = max(self.most, self.count())

    def count(self) -> int:
        try:
            return len(os.listdir(f"/proc/{self._broker.pid}/fd"))
        except (OSError, AssertionError):  # between two lives of the broker
            return 0

    def close(self) -> None:
        self._stop.set()
        self._thread.join()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LimitedBroker]:
    directory = tmp_path_factory.mktemp("few-descriptors")
    overrides = {
        "log.dirs": f"{directory / 'data'},{directory / 'data-2'}",
        "log.initial.task.delay.ms": "0",
        "log.retention.check.interval.ms": "500",
        "log.segment.delete.delay.ms": "0",
        "log.cleaner.backoff.ms": "100",
    }
    with LimitedBroker(overrides, directory) as running:
        yield running


@pytest.fixture(scope="module")
def watch(broker: LimitedBroker) -> Iterator[Watch]:
    watching = Watch(broker)
    yield watching
    watching.close()


def value(partition: int, number: int) -> bytes:
    return b"%08d-%08d" % (partition, number) * 1_100


def batch(partition: int, number: int, timestamp: int = NOW_MS) -> bytes:
    return bytes(build_batch([Record(0, timestamp, None, value(partition, number), ())]))


def produce(wire: WireClient, topic: str, data: Iterable[tuple[int, bytes]]) -> None:
    request = m.ProduceRequest
    places = [request.PartitionProduceData(index=index, records=records) for index, records in data]
    topics = [request.TopicProduceData(name=topic, partition_data=places)]
    answer = wire.send(request(acks=-1, timeout_ms=30_000, topic_data=topics), 9)
    assert {place.error_code for place in answer.responses[0].partition_responses} == {0}


def fetch_request(topic: str, indexes: Iterable[int], offset: int) -> m.Message:
    request = m.FetchRequest
    places = [
        request.FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        for index in indexes
    ]
    topics = [request.FetchTopic(topic=topic, partitions=places)]
    return request(max_wait_ms=0, min_bytes=1, max_bytes=50 << 20, topics=topics)


def fetched(answer: Any) -> dict[int, list[bytes]]:
    """The batches of each partition in an answer."""
    found: dict[int, list[bytes]] = {}
    for place in answer.responses[0].partitions:
        assert place.error_code == 0
        records = bytes(place.records or b"")
        found[place.partition_index] = [records[at : at + size] for at, size in batches(records)]
    return found


def bounds(wire: WireClient, topic: str, which: int, partitions: int = PARTITIONS) -> set[int]:
    request = m.ListOffsetsRequest
    places = [request.ListOffsetsPartition(partition_index=i, timestamp=which) for i in range(partitions)]
    topics = [request.ListOffsetsTopic(name=topic, partitions=places)]
    answer = wire.send(request(topics=topics), 7)
    assert {place.error_code for place in answer.topics[0].partitions} == {0}
    return {place.offset for place in answer.topics[0].partitions}


def chunks() -> Iterator[range]:
    for first in range(0, PARTITIONS, AT_ONCE):
        yield range(first, first + AT_ONCE)


def create(wire: WireClient, topic: str, partitions: int, **configs: str) -> None:
    request = m.CreateTopicsRequest
    wanted = [
        request.CreatableTopicConfig(name=key.replace("_", "."), value=text) for key, text in configs.items()
    ]
    topics = [
        request.CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1, configs=wanted)
    ]
    (result,) = wire.send(request(topics=topics, timeout_ms=60_000), 7).topics
    assert result.error_code == 0


def test_the_soft_limit_is_raised_at_the_start(broker: LimitedBroker) -> None:
    with open(f"/proc/{broker.pid}/limits") as limits:
        [line] = [line for line in limits if line.startswith("Max open files")]
    assert line.split()[3:5] == [str(HARD_LIMIT), str(HARD_LIMIT)]


def test_all_partitions_are_written_and_read_through_two_hundred_files(
    broker: LimitedBroker, watch: Watch
) -> None:
    with WireClient(broker.bootstrap_servers, timeout_s=60) as wire:
        create(wire, "wide", PARTITIONS)
        for number in range(2):
            for indexes in chunks():
                produce(wire, "wide", [(index, batch(index, number)) for index in indexes])
        for number in range(2):
            for indexes in chunks():
                got = fetched(wire.send(fetch_request("wide", indexes, number), 12))
                for index in indexes:
                    assert got[index][0][-len(value(index, number)) - 1 : -1] == value(index, number)
                    assert read_header(got[index][0], 0).base_offset == number
        assert bounds(wire, "wide", LATEST) == {2}
    assert FILES // 2 < watch.most <= FILES + 56


def test_answers_that_nobody_reads_leave_files_for_the_others(broker: LimitedBroker, watch: Watch) -> None:
    slow = [WireClient(broker.bootstrap_servers, timeout_s=60) for _ in range(4)]
    posted = [
        wire.post(fetch_request("wide", range(500 * i, 500 * (i + 1)), 0), 12) for i, wire in enumerate(slow)
    ]
    with WireClient(broker.bootstrap_servers, timeout_s=60) as wire:
        for indexes in chunks():
            produce(wire, "wide", [(index, batch(index, 2)) for index in indexes])
        got = fetched(wire.send(fetch_request("wide", range(700, 900), 2), 12))
        assert [len(got[index]) for index in range(700, 900)] == [1] * 200
    for i, (wire, correlation_id) in enumerate(zip(slow, posted, strict=True)):
        answer = fetched(wire.receive(correlation_id))
        for index in range(500 * i, 500 * (i + 1)):
            assert value(index, 0) in answer[index][0]
        wire.close()
    assert watch.most < HARD_LIMIT


def test_logs_are_compacted(broker: LimitedBroker, watch: Watch) -> None:
    with WireClient(broker.bootstrap_servers, timeout_s=60) as wire:
        configs = {
            "cleanup_policy": "compact",
            "segment_bytes": "1048576",
            "min_cleanable_dirty_ratio": "0.01",
        }
        create(wire, "compacted", 20, **configs)
        for number in range(80):
            data = [
                (i, bytes(build_batch([Record(0, NOW_MS, b"key", value(i, number), ())]))) for i in range(20)
            ]
            produce(wire, "compacted", data)

        def cleaned() -> bool:
            firsts = [fetched(wire.send(fetch_request("compacted", [i], 0), 12))[i][0] for i in range(20)]
            return all(read_header(first, 0).base_offset > 0 for first in firsts)

        wait_until(cleaned, "the logs to be compacted")
        assert bounds(wire, "compacted", LATEST, 20) == {80}
    assert watch.most < HARD_LIMIT


def test_partitions_move_to_another_directory(broker: LimitedBroker, watch: Watch) -> None:
    request = m.AlterReplicaLogDirsRequest
    with WireClient(broker.bootstrap_servers, timeout_s=60) as wire:
        create(wire, "moved", 100)
        produce(wire, "moved", [(index, batch(index, 0)) for index in range(100)])
        second = f"{broker.log_dir}-2"
        moving = [i for i in range(100) if (broker.log_dir / f"moved-{i}").exists()]
        assert len(moving) >= 20
        topics = [request.AlterReplicaLogDirTopic(name="moved", partitions=moving)]
        answer = wire.send(request(dirs=[request.AlterReplicaLogDir(path=second, topics=topics)]), 2)
        assert {got.error_code for got in answer.results[0].partitions} == {0}
        wait_until(
            lambda: all(os.path.exists(f"{second}/moved-{i}") for i in moving), "the partitions to move", 60
        )
        produce(wire, "moved", [(index, batch(index, 1)) for index in range(100)])
        for number in range(2):
            got = fetched(wire.send(fetch_request("moved", range(100), number), 12))
            assert all(value(index, number) in got[index][0] for index in range(100))
    assert watch.most < HARD_LIMIT


def test_what_is_old_goes_from_all_partitions(broker: LimitedBroker, watch: Watch) -> None:
    with WireClient(broker.bootstrap_servers, timeout_s=60) as wire:
        create(wire, "old", PARTITIONS, retention_ms="3600000")
        for indexes in chunks():
            produce(wire, "old", [(index, batch(index, 0, YEARS_AGO_MS)) for index in indexes])
        wait_until(lambda: bounds(wire, "old", EARLIEST) == {1}, "the old records to go")
        for indexes in chunks():
            produce(wire, "old", [(index, batch(index, 1, NOW_MS)) for index in indexes])
        assert bounds(wire, "old", LATEST) == {2}
        deletion = m.DeleteTopicsRequest(topic_names=["old"], timeout_ms=60_000)
        assert wire.send(deletion, 5).responses[0].error_code == 0
    assert watch.most < HARD_LIMIT


def test_it_stops_and_starts_again_with_everything(broker: LimitedBroker, watch: Watch) -> None:
    broker.stop()
    assert (broker.log_dir / ".kafka_cleanshutdown").exists()
    broker.start()
    with WireClient(broker.bootstrap_servers, timeout_s=60) as wire:
        assert bounds(wire, "wide", LATEST) == {3}
        for indexes in chunks():
            got = fetched(wire.send(fetch_request("wide", indexes, 2), 12))
            assert all(value(index, 2) in got[index][0] for index in indexes)
            produce(wire, "wide", [(index, batch(index, 3)) for index in indexes])
        assert bounds(wire, "wide", LATEST) == {4}
    assert watch.most < HARD_LIMIT
    assert "offline" not in broker.output()
