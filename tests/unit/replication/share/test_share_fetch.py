"""A share fetch: what it reads, how it waits, how it ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.errors import ErrorCode
from protocol.records.batch import batches, read_header
from replication.share.acknowledge import Ack
from replication.share.ports import ShareState
from runtime.files import FileRegion
from tests.support.handler_broker import HandlerBroker
from tests.unit.replication.share.stage import GROUP, Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with HandlerBroker(tmp_path) as broker:
        yield Stage(broker)


def bases(row: object) -> list[int]:
    """Base offsets of a row's batches."""
    data = row.data  # type: ignore[attr-defined]
    raw = data.read() if isinstance(data, FileRegion) else data if isinstance(data, bytes) else b"".join(data)
    assert len(raw) == row.length  # type: ignore[attr-defined]
    return [read_header(raw, at).base_offset for at, _ in batches(raw)]


def test_what_there_is(stage: Stage) -> None:
    place = (stage.topic(), 0)
    stage.produce(3, 2)
    found = stage.fetch(place)
    assert found.got == {0: [(0, 4, 1)]}
    assert found.rows is not None
    assert bases(found.rows[0]) == [0, 3]


def test_only_the_batches_of_what_was_acquired(stage: Stage) -> None:
    place = (stage.topic(), 0)
    stage.produce(3, 3, 3)
    found = stage.fetch(place, max_records=4)
    assert found.got == {0: [(0, 5, 1)]}
    assert found.rows is not None
    assert bases(found.rows[0]) == [0, 3]
    stage.say(place, [Ack(0, 3, [2])])
    again = stage.fetch(place)
    assert again.got == {0: [(0, 3, 2), (6, 8, 1)]}


def test_nothing_is_asked_for(stage: Stage) -> None:
    place = (stage.topic(), 0)
    stage.produce(1)
    for nothing in ({"max_records": 0}, {"max_bytes": 0}):
        assert stage.fetch(place, max_wait_ms=500, **nothing).rows == []
    assert stage.fetch(max_wait_ms=500).rows == []


def test_it_waits_for_records(stage: Stage) -> None:
    place = (stage.topic(), 0)
    found = stage.fetch(place, max_wait_ms=500)
    assert found.rows is None
    stage.time.pass_ms(100)
    stage.produce(2)
    assert found.got == {0: [(0, 1, 1)]}
    stage.time.pass_ms(1000)


def test_its_time_is_over(stage: Stage) -> None:
    place = (stage.topic(), 0)
    found = stage.fetch(place, max_wait_ms=500)
    stage.time.pass_ms(499)
    assert found.rows is None
    stage.time.pass_ms(2)
    assert found.got == {0: []}
    entry = stage.partitions.get(GROUP, place)
    assert entry is not None
    assert (entry.waiters, entry.partition.waiters) == ({}, {})


def test_it_waits_for_bytes_and_takes_less_when_its_time_is_over(stage: Stage) -> None:
    place = (stage.topic(), 0)
    stage.produce(1)
    found = stage.fetch(place, max_wait_ms=500, min_bytes=200)
    assert found.rows is None
    stage.produce(1)
    assert found.rows is None
    stage.produce(1)
    assert found.got == {0: [(0, 2, 1)]}
    late = stage.fetch(place, max_wait_ms=500, min_bytes=200)
    stage.produce(1)
    stage.time.pass_ms(501)
    assert late.got == {0: [(3, 3, 1)]}


def test_it_waits_for_what_others_hold(stage: Stage) -> None:
    place = (stage.topic(), 0)
    stage.produce(2)
    stage.fetch(place)
    bob = stage.fetch(place, member="bob", max_wait_ms=5000)
    assert bob.rows is None
    stage.say(place, [Ack(1, 1, [2])])
    assert bob.got == {0: [(1, 1, 2)]}
    cat = stage.fetch(place, member="cat", max_wait_ms=5000)
    stage.time.pass_ms(1001)
    assert cat.got == {0: [(0, 0, 2), (1, 1, 3)]}


def test_it_waits_for_room(stage: Stage) -> None:
    place = (stage.topic(), 0)
    stage.settings.the_limits = stage.settings.the_limits._replace(max_record_locks=3)
    stage.produce(3, 3)
    assert stage.fetch(place).got == {0: [(0, 2, 1)]}
    bob = stage.fetch(place, member="bob", max_wait_ms=5000)
    stage.produce(1)
    assert bob.rows is None
    stage.say(place, [Ack(0, 2, [1])])
    assert bob.got == {0: [(3, 5, 1)]}


def test_it_waits_for_the_stored_state(stage: Stage) -> None:
    place = (stage.topic(), 0)
    stage.produce(4)
    stage.persister.at_once = False
    stage.persister.state = ShareState(0, 2)
    found = stage.fetch(place, max_wait_ms=500)
    second = stage.fetch(place, member="bob", max_wait_ms=500)
    assert found.rows is None
    [read] = stage.persister.reads
    read()
    assert found.got == {0: [(2, 3, 1)]}
    assert second.rows is None


def test_what_does_not_load_is_an_error(stage: Stage) -> None:
    place = (stage.topic(), 0)
    stage.persister.at_once = False
    stage.persister.read_error = ErrorCode.GROUP_ID_NOT_FOUND
    found = stage.fetch(place, max_wait_ms=500)
    stage.persister.reads[0]()
    assert found.errors == [ErrorCode.GROUP_ID_NOT_FOUND]


def test_unknown_partitions_answer_at_once_when_they_are_alone(stage: Stage) -> None:
    topic = stage.topic()
    assert stage.fetch((topic, 7), max_wait_ms=500).errors == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    found = stage.fetch((topic, 0), (topic, 7), max_wait_ms=500)
    assert found.rows is None
    stage.produce(1)
    assert [row.error for row in found.rows or ()] == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


def test_what_is_dropped_meanwhile_is_looked_up_again(stage: Stage) -> None:
    place = (stage.topic(), 0)
    found = stage.fetch(place, max_wait_ms=500)
    entry = stage.partitions.get(GROUP, place)
    assert entry is not None
    stage.partitions.drop(entry)
    assert found.rows is None
    entry = stage.partitions.get(GROUP, place)
    assert entry is not None
    entry.partition.is_leader = False
    stage.partitions.follow_leadership()
    assert found.errors == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_who_is_gone_gets_nothing(stage: Stage) -> None:
    place = (stage.topic(), 0)
    found = stage.fetch(place, max_wait_ms=500)
    found.operation.cancel()
    stage.produce(1)
    stage.time.pass_ms(1000)
    assert found.rows is None
    assert stage.fetch(place, member="bob").got == {0: [(0, 0, 1)]}


def test_records_go_round(stage: Stage) -> None:
    topic = stage.topic(partitions=3)
    for index in range(3):
        stage.produce(4, index=index)
    places = [(topic, index) for index in range(3)]
    assert stage.fetch(*places, max_records=6).got == {0: [(0, 3, 1)], 1: [(0, 3, 1)], 2: []}
    assert stage.fetch(*places[1:], *places[:1], max_records=6).got == {1: [], 2: [(0, 3, 1)], 0: []}


def test_bytes_are_shared_and_one_batch_always_comes(stage: Stage) -> None:
    topic = stage.topic(partitions=2)
    for index in range(2):
        stage.produce(3, 3, index=index)
    places = [(topic, index) for index in range(2)]
    assert stage.fetch(*places, max_bytes=1).got == {0: [(0, 2, 1)], 1: []}
    size = 61 + 3 * 17
    assert stage.fetch(*places, max_bytes=2 * size).got == {0: [(3, 5, 1)], 1: [(0, 2, 1)]}


def test_deleted_records_move_the_start(stage: Stage) -> None:
    place = (stage.topic(), 0)
    stage.produce(3, 3)
    assert stage.fetch(place, max_records=1).got == {0: [(0, 2, 1)]}
    partition = stage.broker.ctx.replicas.get("t", 0)
    assert partition is not None
    partition.delete_records(6)
    stage.produce(2)
    assert stage.fetch(place).got == {0: []}
    assert stage.fetch(place).got == {0: [(6, 7, 1)]}


def test_large_reads_are_slices_of_the_file(stage: Stage) -> None:
    place = (stage.topic(), 0)
    for _ in range(4):
        stage.broker.produce("t", 0, [(1000, b"x" * 20_000)])
    found = stage.fetch(place)
    assert found.got == {0: [(0, 3, 1)]}
    assert found.rows is not None
    assert isinstance(found.rows[0].data, FileRegion)
    assert bases(found.rows[0]) == [0, 1, 2, 3]


def test_a_failed_disk_is_told(stage: Stage) -> None:
    place = (stage.topic(), 0)
    stage.produce(1)
    stage.fetch(place, max_records=0)
    partition = stage.broker.ctx.replicas.get("t", 0)
    assert partition is not None
    partition.log.directory.offline = True
    found = stage.fetch(place, max_wait_ms=500)
    partition.log.directory.offline = False
    assert found.errors == [ErrorCode.KAFKA_STORAGE_ERROR]
