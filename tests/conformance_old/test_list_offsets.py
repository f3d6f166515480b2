"""ListOffsets 0 and OffsetForLeaderEpoch 0 and 1 (protocol.md 4.2, L1 and E1)."""

from __future__ import annotations

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from tests.support.wire_client import WireClient

LATEST, EARLIEST, MAX_TIMESTAMP = -1, -2, -3
NEVER, TOMORROW = 1_000_000_000_000, 3_000_000_000_000


def starts(
    wire: WireClient, topic: str, timestamp: int, count: int = 100, partition: int = 0, replica: int = -1
) -> tuple[int, list[int]]:
    """(error, offsets newest first)"""
    Ask = m.ListOffsetsRequest
    place = Ask.ListOffsetsPartition(partition_index=partition, timestamp=timestamp, max_num_offsets=count)
    topics = [Ask.ListOffsetsTopic(name=topic, partitions=[place])]
    (found,) = wire.send(Ask(replica_id=replica, topics=topics), 0).topics[0].partitions
    return found.error_code, list(found.old_style_offsets)


def delete_records(wire: WireClient, topic: str, offset: int) -> None:
    Delete = m.DeleteRecordsRequest
    place = Delete.DeleteRecordsPartition(partition_index=0, offset=offset)
    request = Delete(topics=[Delete.DeleteRecordsTopic(name=topic, partitions=[place])], timeout_ms=30_000)
    assert wire.send(request, 1).topics[0].partitions[0].error_code == 0


@pytest.fixture
def segmented(wire: WireClient, name: str) -> str:
    """A topic with 24 records in segments from 0, 10 and 20 on."""
    wire.create_topic(name, segment_bytes=str(1 << 20))
    for number in range(24):
        wire.produce_values(name, bytes([number]) * 100_000)
    return name


def test_segment_starts_and_the_end_newest_first(wire: WireClient, segmented: str) -> None:
    assert starts(wire, segmented, LATEST) == (0, [24, 20, 10, 0])
    assert starts(wire, segmented, LATEST, 2) == (0, [24, 20])
    assert starts(wire, segmented, LATEST, 0) == (0, [])
    assert starts(wire, segmented, EARLIEST) == (0, [0])
    assert starts(wire, segmented, TOMORROW) == (0, [24, 20, 10, 0])
    assert starts(wire, segmented, TOMORROW, 1) == (0, [24])
    assert starts(wire, segmented, NEVER) == (0, [])
    for replica in (-2, 0):
        assert starts(wire, segmented, LATEST, 1, replica=replica) == (0, [24])


def test_what_was_deleted_is_not_listed(wire: WireClient, segmented: str) -> None:
    delete_records(wire, segmented, 3)
    assert starts(wire, segmented, LATEST) == (0, [24, 20, 10, 3])
    assert starts(wire, segmented, EARLIEST) == (0, [3])
    delete_records(wire, segmented, 15)
    assert starts(wire, segmented, EARLIEST) == (0, [15])
    assert set(starts(wire, segmented, LATEST)[1]) == {24, 20, 15}


def test_an_empty_log_has_one_start(wire: WireClient, topic: str) -> None:
    for timestamp in (LATEST, EARLIEST, TOMORROW):
        assert starts(wire, topic, timestamp) == (0, [0])


def test_errors(wire: WireClient, topic: str) -> None:
    wire.produce_values(topic, b"a")
    assert starts(wire, topic, LATEST, partition=5) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])
    assert starts(wire, f"{topic}-x", LATEST) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, [])
    assert starts(wire, topic, MAX_TIMESTAMP) == (ErrorCode.UNSUPPORTED_VERSION, [])
    assert starts(wire, topic, LATEST, -1) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])


@pytest.mark.parametrize("version", range(2))
@pytest.mark.parametrize(
    ("epoch", "found"), [(0, (0, 0, 2)), (1, (0, -1, -1)), (-1, (0, -1, -1)), (99, (0, -1, -1))]
)
def test_the_end_of_an_epoch(
    wire: WireClient, topic: str, version: int, epoch: int, found: tuple[int, int, int]
) -> None:
    wire.produce_values(topic, b"a", b"b")
    Ask = m.OffsetForLeaderEpochRequest
    places = [Ask.OffsetForLeaderPartition(partition=p, leader_epoch=epoch) for p in (0, 9)]
    topics = [Ask.OffsetForLeaderTopic(topic=topic, partitions=places)]
    here, missing = wire.send(Ask(topics=topics), version).topics[0].partitions
    error, its_epoch, end = found
    assert (here.error_code, here.leader_epoch, here.end_offset) == (error, its_epoch if version else -1, end)
    assert (missing.error_code, missing.end_offset) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)
