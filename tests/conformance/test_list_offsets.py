"""ListOffsets and OffsetForLeaderEpoch (protocol.md 4.2, L1-L7 and E1)."""

from __future__ import annotations

from typing import Any

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.wire_client import WireClient

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6
START = 1_700_000_000_000


def produce_times(wire: WireClient, topic: str, *times: int, codec: int = 0) -> None:
    sent = build_batch([Record(i, START + t, b"k", b"%d" % t, ()) for i, t in enumerate(times)], codec=codec)
    assert wire.produce(topic, bytes(sent)).error_code == 0


def found(wire: WireClient, topic: str, timestamp: int, **fields: Any) -> tuple[int, int, int]:
    answer = wire.list_offset(topic, timestamp, **fields)
    return answer.error_code, answer.offset, answer.timestamp


def delete_records(wire: WireClient, topic: str, offset: int) -> int:
    Delete = m.DeleteRecordsRequest
    place = Delete.DeleteRecordsPartition(partition_index=0, offset=offset)
    request = Delete(topics=[Delete.DeleteRecordsTopic(name=topic, partitions=[place])], timeout_ms=30_000)
    return int(wire.send(request, 2).topics[0].partitions[0].error_code)


@pytest.mark.parametrize("version", range(1, 12))
def test_latest_and_earliest_at_every_version(wire: WireClient, topic: str, version: int) -> None:
    produce_times(wire, topic, 1, 2, 3)
    assert found(wire, topic, LATEST, version=version) == (0, 3, -1)
    assert found(wire, topic, EARLIEST, version=version) == (0, 0, -1)


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_a_time_finds_the_first_record_at_or_after_it(wire: WireClient, topic: str, codec: int) -> None:
    produce_times(wire, topic, 2, 4, 6, 8, codec=codec)
    assert found(wire, topic, START + 0) == (0, 0, START + 2)
    assert found(wire, topic, START + 2) == (0, 0, START + 2)
    assert found(wire, topic, START + 3) == (0, 1, START + 4)
    assert found(wire, topic, START + 8) == (0, 3, START + 8)
    assert found(wire, topic, START + 9) == (0, -1, -1)
    assert found(wire, topic, 0) == (0, 0, START + 2)


def test_times_out_of_order_find_the_first_in_the_log(wire: WireClient, topic: str) -> None:
    produce_times(wire, topic, 5, 1)
    produce_times(wire, topic, 3, 9)
    assert found(wire, topic, START + 2) == (0, 0, START + 5)
    assert found(wire, topic, START + 6) == (0, 3, START + 9)


@pytest.mark.parametrize("codec", [0, 1, 2, 3, 4])
def test_the_largest_timestamp_is_the_records_own(wire: WireClient, topic: str, codec: int) -> None:
    produce_times(wire, topic, 1, 9, 3, codec=codec)
    produce_times(wire, topic, 2, 4, codec=codec)
    assert found(wire, topic, MAX_TIMESTAMP) == (0, 1, START + 9)


@pytest.mark.parametrize("codec", [0, 1])
def test_of_equal_timestamps_the_first_is_the_largest(wire: WireClient, topic: str, codec: int) -> None:
    produce_times(wire, topic, 7, 9, 9, codec=codec)
    produce_times(wire, topic, 9, 5, codec=codec)
    assert found(wire, topic, MAX_TIMESTAMP) == (0, 1, START + 9)


@pytest.mark.parametrize("codec", [0, 1])
def test_under_log_append_time_the_last_batch_has_the_largest(
    wire: WireClient, name: str, codec: int
) -> None:
    wire.create_topic(name, message_timestamp_type="LogAppendTime")
    produce_times(wire, name, 8, 9, codec=codec)
    first = found(wire, name, MAX_TIMESTAMP)[2]
    while wire.list_offset(name, MAX_TIMESTAMP).timestamp == first:  # until the clock has moved on
        produce_times(wire, name, 1, 2, codec=codec)
    error, offset, latest = found(wire, name, MAX_TIMESTAMP)
    assert (error, offset) == (0, wire.list_offset(name, LATEST).offset - 2)
    assert latest > first > START + 9
    assert found(wire, name, START) == (0, 0, first)
    assert found(wire, name, latest)[1:] == (offset, latest)


def test_what_was_deleted_has_no_largest_timestamp(
    either_broker: OttlaProcess | KafkaProcess, wire: WireClient, topic: str
) -> None:
    """Apache Kafka still names the record that is gone; we name the largest of those that are left."""
    produce_times(wire, topic, 1, 9, 3)
    produce_times(wire, topic, 4, 5)
    assert delete_records(wire, topic, 2) == 0
    ours = isinstance(either_broker, OttlaProcess)
    assert found(wire, topic, MAX_TIMESTAMP) == ((0, 4, START + 5) if ours else (0, 1, START + 9))
    assert found(wire, topic, START + 6) == (0, -1, -1)


def test_the_largest_timestamp_of_an_empty_log_is_none(wire: WireClient, topic: str) -> None:
    assert found(wire, topic, MAX_TIMESTAMP) == (0, -1, -1)
    assert found(wire, topic, 5) == (0, -1, -1)
    assert found(wire, topic, LATEST) == (0, 0, -1)


def test_after_delete_records_times_and_ends_move(wire: WireClient, topic: str) -> None:
    produce_times(wire, topic, 9)
    produce_times(wire, topic, 2, 4, 6)
    assert delete_records(wire, topic, 2) == 0
    assert found(wire, topic, EARLIEST) == (0, 2, -1)
    assert found(wire, topic, START + 1) == (0, 2, START + 4)
    assert found(wire, topic, LATEST) == (0, 4, -1)


@pytest.mark.parametrize(
    ("timestamp", "version", "offset"),
    [(EARLIEST_LOCAL, 8, 0), (LATEST_TIERED, 9, -1), (EARLIEST_PENDING, 11, -1)],
)
def test_tiered_storage_lookups_without_tiering(
    wire: WireClient, topic: str, timestamp: int, version: int, offset: int
) -> None:
    produce_times(wire, topic, 1, 2)
    error, where, _ = found(wire, topic, timestamp, version=version)
    assert (error, where) == (0, offset)


@pytest.mark.parametrize(
    ("timestamp", "version"),
    [
        (MAX_TIMESTAMP, 6),
        (EARLIEST_LOCAL, 7),
        (LATEST_TIERED, 8),
        (EARLIEST_PENDING, 10),
        (-7, 11),
        (-100, 7),
    ],
)
def test_what_a_version_does_not_know_is_35(
    wire: WireClient, topic: str, timestamp: int, version: int
) -> None:
    assert found(wire, topic, timestamp, version=version)[0] == ErrorCode.UNSUPPORTED_VERSION


def test_read_committed_without_transactions_is_the_same(wire: WireClient, topic: str) -> None:
    produce_times(wire, topic, 1, 2)
    assert found(wire, topic, LATEST, isolation_level=1) == (0, 2, -1)
    assert found(wire, topic, START + 2, isolation_level=1) == (0, 1, START + 2)


def test_missing_topics_and_partitions_are_3(wire: WireClient, topic: str) -> None:
    assert found(wire, topic, LATEST, partition=4)[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert found(wire, f"{topic}-missing", LATEST)[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_leader_epoch_is_returned_and_checked(wire: WireClient, topic: str) -> None:
    produce_times(wire, topic, 1)
    assert wire.list_offset(topic, LATEST).leader_epoch == 0
    assert wire.list_offset(topic, START).leader_epoch == 0
    List = m.ListOffsetsRequest
    for epoch, error in ((-1, 0), (0, 0), (3, ErrorCode.UNKNOWN_LEADER_EPOCH)):
        place = List.ListOffsetsPartition(partition_index=0, timestamp=LATEST, current_leader_epoch=epoch)
        answer = wire.send(List(topics=[List.ListOffsetsTopic(name=topic, partitions=[place])]), 7)
        assert answer.topics[0].partitions[0].error_code == error


def test_a_partition_named_twice_is_42_once(wire: WireClient, topic: str) -> None:
    List = m.ListOffsetsRequest
    place = List.ListOffsetsPartition(partition_index=0, timestamp=LATEST)
    answer = wire.send(List(topics=[List.ListOffsetsTopic(name=topic, partitions=[place, place])]), 7)
    assert [p.error_code for t in answer.topics for p in t.partitions] == [ErrorCode.INVALID_REQUEST]


def epoch_end(
    wire: WireClient, topic: str, epoch: int, current: int = -1, partition: int = 0
) -> tuple[int, int, int]:
    Ask = m.OffsetForLeaderEpochRequest
    place = Ask.OffsetForLeaderPartition(
        partition=partition, leader_epoch=epoch, current_leader_epoch=current
    )
    request = Ask(topics=[Ask.OffsetForLeaderTopic(topic=topic, partitions=[place])])
    got = wire.send(request, 4).topics[0].partitions[0]
    return got.error_code, got.leader_epoch, got.end_offset


def test_the_end_of_an_epoch(wire: WireClient, topic: str) -> None:
    produce_times(wire, topic, 1, 2, 3)
    assert epoch_end(wire, topic, 0) == (0, 0, 3)
    assert epoch_end(wire, topic, 5) == (0, -1, -1)
    assert epoch_end(wire, topic, -1) == (0, -1, -1)
    assert epoch_end(wire, topic, 0, current=4)[0] == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert epoch_end(wire, topic, 0, partition=9)[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert epoch_end(wire, f"{topic}-missing", 0)[0] == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
