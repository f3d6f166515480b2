"""How far one fetch reads, what ends its wait, how it compares epochs (protocol.md 4.1: F2, F3, F7, F12)."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.records.batch import batches, read_header
from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.wire_client import WireClient

BIG = 1 << 23
QUICK_S = 40
LONG_MS = 50_000


def base_offsets(answer: Any) -> list[int]:
    records = bytes(answer.records or b"")
    return [read_header(records, at).base_offset for at, _ in batches(records)]


@pytest.fixture
def segmented(wire: WireClient, name: str) -> str:
    """A topic with 24 records of 100 kB in segments from 0, 10 and 20 on."""
    wire.create_topic(name, segment_bytes=str(1 << 20))
    for number in range(24):
        wire.produce_values(name, bytes([number]) * 100_000)
    return name


def seconds(wire: WireClient, topic: str, offset: int, **limits: int) -> float:
    begin = time.monotonic()
    fetched = wire.fetch(topic, offset, **{"partition_max_bytes": BIG, "max_bytes": BIG, **limits})
    assert fetched.error_code == 0
    return time.monotonic() - begin


def test_one_fetch_reads_one_segment(wire: WireClient, segmented: str) -> None:
    answer = wire.fetch(segmented, 3, partition_max_bytes=BIG, max_bytes=BIG)
    assert base_offsets(answer) == [3, 4, 5, 6, 7, 8, 9]


def test_an_older_segment_is_not_waited_with(wire: WireClient, segmented: str) -> None:
    assert seconds(wire, segmented, 3, min_bytes=4 << 20, max_wait_ms=LONG_MS) < QUICK_S


def test_the_newest_segment_waits_for_min_bytes(wire: WireClient, segmented: str) -> None:
    assert seconds(wire, segmented, 22, min_bytes=4 << 20, max_wait_ms=300) >= 0.29


def test_no_more_is_waited_for_than_may_be_sent(wire: WireClient, segmented: str) -> None:
    waits = {"min_bytes": 4 << 20, "max_wait_ms": LONG_MS, "max_bytes": 1000}
    assert seconds(wire, segmented, 22, **waits) < QUICK_S


def test_a_deleted_topic_ends_the_wait(
    either_broker: OttlaProcess | KafkaProcess, wire: WireClient, topic: str
) -> None:
    Ask = m.FetchRequest
    place = Ask.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    waiting = WireClient(either_broker.bootstrap_servers)
    topics = [Ask.FetchTopic(topic=topic, partitions=[place])]
    posted = waiting.post(Ask(max_wait_ms=LONG_MS, min_bytes=1, max_bytes=1000, topics=topics), 12)
    answers: list[Any] = []

    def wait() -> None:
        with waiting:
            answers.append(waiting.receive(posted).responses[0].partitions[0])

    thread = threading.Thread(target=wait)
    begin = time.monotonic()
    thread.start()
    Delete = m.DeleteTopicsRequest
    request = Delete(topics=[Delete.DeleteTopicState(name=topic)], timeout_ms=30_000)
    assert wire.send(request, 6).responses[0].error_code == 0
    thread.join(QUICK_S)
    assert time.monotonic() - begin < QUICK_S
    assert answers[0].error_code in (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    )


@pytest.mark.parametrize(
    ("epoch", "offset", "error", "diverging", "found"),
    [
        (0, 0, 0, (-1, -1), [0]),
        (0, 3, 0, (-1, -1), []),
        (0, 4, 0, (0, 3), []),  # behind the end of that epoch
        (-1, 0, 0, (-1, -1), [0]),
        (1, 1, ErrorCode.OFFSET_OUT_OF_RANGE, (-1, -1), []),  # nobody knows that epoch
        (5, 3, ErrorCode.OFFSET_OUT_OF_RANGE, (-1, -1), []),
    ],
)
def test_the_last_fetched_epoch_is_compared(
    wire: WireClient,
    topic: str,
    epoch: int,
    offset: int,
    error: int,
    diverging: tuple[int, int],
    found: list[int],
) -> None:
    wire.produce_values(topic, b"a", b"b", b"c")
    got = wire.fetch(topic, offset, last_fetched_epoch=epoch)
    told = (got.diverging_epoch.epoch, got.diverging_epoch.end_offset)
    assert (got.error_code, told, base_offsets(got)) == (error, diverging, found)
