"""Partitions of keys and what is left out since the topic has it; delivery itself is in tests/spark/jobs."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from confluent_kafka import KafkaError

from spark_jobs.binlog.position import Position
from spark_jobs.binlog.produce import HEADER, Changes, Target, TopicUnusable, murmur2, note, partition_of


@dataclass
class FakeProducer:
    """Takes records and delivers none by itself."""

    records: list[tuple] = field(default_factory=list)
    full: int = 0
    purged: bool = False

    def produce(self, topic, *, key, value, partition, headers, on_delivery) -> None:
        if self.full:
            self.full -= 1
            raise BufferError
        self.records.append((partition, key, value, headers))

    def poll(self, timeout: float) -> int:
        return 0

    def purge(self) -> None:
        self.purged = True

    def __len__(self) -> int:
        return len(self.records)


@dataclass
class FakeMessage:
    place: str
    at: int = 0
    header: str = HEADER

    def headers(self):
        return [("other", b"x"), (self.header, self.place.encode())]

    def topic(self) -> str:
        return "items"

    def partition(self) -> int:
        return self.at


@pytest.fixture
def changes() -> Changes:
    made = Changes({"bootstrap.servers": "127.0.0.1:1"}, "server", delivery_timeout_s=0.0)
    made.producer = FakeProducer()
    made.targets["items"] = Target(3, {})
    return made


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"abc", 479470107),
    ],
)
def test_the_hash_is_that_of_javas_default_partitioner(data: bytes, expected: int) -> None:
    assert murmur2(data) == expected % 2**32


def test_partitions_are_within_range() -> None:
    found = {partition_of(b"%d" % number, 7) for number in range(1000)}
    assert found == set(range(7))


def test_what_a_partition_has_is_left_out(changes: Changes) -> None:
    key = {"id": 1}
    partition = partition_of(b'{"id":1}', 3)
    changes.targets["items"].last[partition] = Position(1, 100, 1)
    for place in (Position(1, 50, 0), Position(1, 100, 1), Position(1, 100, 2), Position(2, 4, 0)):
        changes.send("items", key, {"op": "u"}, place, f"bin.{place.sequence:06d}")
    assert changes.already == 2
    assert [headers for _, _, _, headers in changes.producer.records] == [
        [(HEADER, b"server/bin.000001:100:2")],
        [(HEADER, b"server/bin.000002:4:0")],
    ]


def test_a_tombstone_follows_a_deletion(changes: Changes) -> None:
    changes.tombstones = True
    changes.send("items", {"id": 1}, {"op": "d", "after": None}, Position(1, 9, 0), "bin.000001")
    assert [value for _, _, value, _ in changes.producer.records] == [b'{"op":"d","after":null}', None]


def test_a_full_queue_is_waited_for_and_then_given_up(changes: Changes) -> None:
    changes.delivery_timeout_s = 60.0
    changes.producer.full = 3
    changes.send("items", {"id": 1}, {"op": "u"}, Position(1, 9, 0), "bin.000001")
    assert len(changes.producer.records) == 1
    changes.delivery_timeout_s = 0.0
    changes.producer.full = 3
    with pytest.raises(TopicUnusable, match="items: nothing was delivered for 0 s"):
        changes.send("items", {"id": 1}, {"op": "u"}, Position(1, 10, 0), "bin.000001")


def test_nothing_is_written_behind_a_failed_delivery(changes: Changes) -> None:
    changes.delivered(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), FakeMessage("", 2))
    with pytest.raises(TopicUnusable, match=r"items-2: .*Nothing is lost"):
        changes.send("items", {"id": 1}, {"op": "u"}, Position(1, 9, 0), "bin.000001")
    assert changes.producer.records == []
    assert changes.producer.purged


def test_last_records_of_others_say_nothing() -> None:
    found: dict[int, Position] = {}
    for message in (
        FakeMessage("server/bin.000001:10:0"),
        FakeMessage("server/bin.000001:9:0"),
        FakeMessage("server/bin.000003:4:0", 1, "elsewhere"),
        FakeMessage("other/bin.000009:4:0"),
        FakeMessage("nonsense"),
    ):
        note(found, message, "server")
    assert found == {0: Position(1, 10, 0)}
