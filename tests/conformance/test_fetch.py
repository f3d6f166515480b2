"""What Fetch returns, when it waits and what it refuses (protocol.md 4.1, F1-F13, and 7)."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.records.batch import batches, read_header, records
from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.wire_client import WireClient

Request = m.FetchRequest
QUICK_S = 40  # what waits for more than this has waited for its time to be over


def request(*topics: tuple[str, list[tuple[int, int, int]]], **fields: Any) -> m.FetchRequest:
    """topics: (name, [(partition, offset, partition_max_bytes)])."""
    limits = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, **fields}
    asked = [
        Request.FetchTopic(
            topic=name,
            partitions=[
                Request.FetchPartition(partition=p, fetch_offset=offset, partition_max_bytes=most)
                for p, offset, most in places
            ],
        )
        for name, places in topics
    ]
    return Request(topics=asked, **limits)


def values_of(partition: Any) -> list[bytes | None]:
    data = bytes(partition.records or b"")
    return [r.value for at, size in batches(data) for r in records(data[at : at + size])]


@pytest.mark.parametrize("version", range(4, 13))
def test_every_version_returns_the_batches(wire: WireClient, topic: str, version: int) -> None:
    wire.produce_values(topic, b"a", b"b")
    wire.produce_values(topic, b"c")
    got = wire.fetch(topic, 0, version=version)
    assert (got.error_code, got.high_watermark, got.last_stable_offset) == (0, 3, 3)
    assert values_of(got) == [b"a", b"b", b"c"]
    assert got.aborted_transactions is None or version < 4
    if version >= 5:
        assert got.log_start_offset == 0


@pytest.mark.parametrize("version", range(13, 19))
def test_from_version_13_on_topics_go_by_id(wire: WireClient, name: str, version: int) -> None:
    topic_id = wire.create_topic(name)
    wire.produce_values(name, b"a")
    place = Request.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    known = Request.FetchTopic(topic_id=topic_id, partitions=[place])
    unknown = Request.FetchTopic(topic_id=b"\x09" * 16, partitions=[place])
    answer = wire.send(
        Request(max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, topics=[unknown, known]), version
    )
    found = {t.topic_id: t.partitions[0] for t in answer.responses}
    assert found[b"\x09" * 16].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert found[topic_id].error_code == 0
    assert values_of(found[topic_id]) == [b"a"]


def test_a_fetch_starts_at_the_batch_that_holds_the_offset(wire: WireClient, topic: str) -> None:
    wire.produce_values(topic, b"a", b"b", b"c")
    got = wire.fetch(topic, 2)
    assert values_of(got) == [b"a", b"b", b"c"]
    assert read_header(bytes(got.records), 0).base_offset == 0


@pytest.mark.parametrize("offset", [-1, 4, 1000])
def test_an_offset_outside_the_log_is_1(wire: WireClient, topic: str, offset: int) -> None:
    wire.produce_values(topic, b"a", b"b", b"c")
    got = wire.fetch(topic, offset)
    assert got.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert (got.high_watermark, got.last_stable_offset, got.log_start_offset) == (-1, -1, -1)
    assert not got.records


def test_the_end_offset_is_success_without_records(wire: WireClient, topic: str) -> None:
    wire.produce_values(topic, b"a", b"b", b"c")
    got = wire.fetch(topic, 3)
    assert (got.error_code, got.high_watermark, bytes(got.records or b"")) == (0, 3, b"")


def test_a_missing_topic_or_partition_is_3(wire: WireClient, topic: str) -> None:
    assert wire.fetch(topic, 0, partition=5).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert wire.fetch(f"{topic}-missing", 0).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_first_batch_comes_whole_above_both_limits(wire: WireClient, name: str) -> None:
    wire.create_topic(name, partitions=3)
    for partition in (1, 2):
        wire.produce_values(name, b"x" * 1000, partition=partition)
    answer = wire.send(request((name, [(0, 0, 10), (1, 0, 10), (2, 0, 10)]), max_bytes=10), 12)
    sizes = {p.partition_index: len(values_of(p)) for t in answer.responses for p in t.partitions}
    assert sizes == {0: 0, 1: 1, 2: 0}


def test_later_partitions_get_what_fits(wire: WireClient, name: str) -> None:
    wire.create_topic(name, partitions=2)
    for partition in (0, 1):
        for _ in range(3):
            wire.produce_values(name, b"x" * 1000, partition=partition)
    batch_size = len(wire.stored_batches(name)[0])
    answer = wire.send(
        request((name, [(0, 0, 2 * batch_size), (1, 0, 1 << 20)]), max_bytes=3 * batch_size), 12
    )
    counts = {p.partition_index: len(values_of(p)) for t in answer.responses for p in t.partitions}
    assert counts == {0: 2, 1: 1}


def test_a_partition_limit_is_obeyed(wire: WireClient, topic: str) -> None:
    for number in range(5):
        wire.produce_values(topic, b"%d" % number)
    size = len(wire.stored_batches(topic)[0])
    assert values_of(wire.fetch(topic, 0, partition_max_bytes=3 * size)) == [b"0", b"1", b"2"]
    assert values_of(wire.fetch(topic, 2, partition_max_bytes=1)) == [b"2"]


def test_a_fetch_without_news_waits_its_time(wire: WireClient, topic: str) -> None:
    start = time.monotonic()
    got = wire.fetch(topic, 0, max_wait_ms=300)
    assert time.monotonic() - start >= 0.29
    assert (got.error_code, bytes(got.records or b"")) == (0, b"")


def in_background(
    broker: OttlaProcess | KafkaProcess, topic: str, **fields: Any
) -> tuple[threading.Thread, list[Any]]:
    """A fetch from offset 0 that is parked at the broker when this returns (its request has been sent)."""
    answers: list[Any] = []
    client = WireClient(broker.bootstrap_servers)
    place = Request.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    limits = {"max_wait_ms": 50_000, "min_bytes": 1, "max_bytes": 1 << 20, **fields}
    posted = client.post(Request(topics=[Request.FetchTopic(topic=topic, partitions=[place])], **limits), 12)

    def wait() -> None:
        with client:
            answers.append(client.receive(posted).responses[0].partitions[0])

    thread = threading.Thread(target=wait)
    thread.start()
    return thread, answers


def test_an_append_wakes_a_waiting_fetch(either_broker, wire: WireClient, topic: str) -> None:
    start = time.monotonic()
    thread, answers = in_background(either_broker, topic)
    wire.produce_values(topic, b"news")
    thread.join(QUICK_S)
    assert time.monotonic() - start < QUICK_S
    assert values_of(answers[0]) == [b"news"]


def test_min_bytes_counts_over_appends(either_broker, wire: WireClient, topic: str) -> None:
    thread, answers = in_background(either_broker, topic, min_bytes=3000)
    for number in range(3):
        assert not answers
        wire.produce_values(topic, b"%d" % number * 1000)
    thread.join(QUICK_S)
    assert len(values_of(answers[0])) == 3


def test_an_error_answers_at_once(wire: WireClient, name: str) -> None:
    wire.create_topic(name, partitions=2)
    start = time.monotonic()
    answer = wire.send(request((name, [(0, 0, 100), (1, 77, 100)]), max_wait_ms=50_000), 12)
    assert time.monotonic() - start < QUICK_S
    assert {p.partition_index: p.error_code for t in answer.responses for p in t.partitions} == {0: 0, 1: 1}


def test_a_missing_partition_alone_answers_at_once(wire: WireClient, topic: str) -> None:
    start = time.monotonic()
    assert wire.fetch(topic, 0, partition=9, max_wait_ms=50_000).error_code == 3
    assert time.monotonic() - start < QUICK_S


def test_a_missing_partition_beside_others_does_not_end_their_wait(wire: WireClient, topic: str) -> None:
    start = time.monotonic()
    answer = wire.send(request((topic, [(0, 0, 100), (9, 0, 100)]), max_wait_ms=300), 12)
    assert time.monotonic() - start >= 0.29
    assert {p.partition_index: p.error_code for t in answer.responses for p in t.partitions} == {0: 0, 9: 3}


def test_no_partitions_answer_at_once(wire: WireClient) -> None:
    start = time.monotonic()
    answer = wire.send(request(max_wait_ms=50_000), 12)
    assert time.monotonic() - start < QUICK_S
    assert (answer.error_code, answer.responses) == (0, [])


@pytest.mark.parametrize(("epoch", "error"), [(-1, 0), (0, 0), (1, 75), (7, 75)])
def test_the_current_leader_epoch_is_checked(wire: WireClient, topic: str, epoch: int, error: int) -> None:
    wire.produce_values(topic, b"a")
    got = wire.fetch(topic, 0, current_leader_epoch=epoch)
    assert got.error_code == error
    assert (values_of(got) == [b"a"]) == (error == 0)


def test_a_fetched_epoch_that_is_ours_does_not_diverge(wire: WireClient, topic: str) -> None:
    wire.produce_values(topic, b"a", b"b")
    got = wire.fetch(topic, 1, last_fetched_epoch=0)
    assert (got.error_code, got.diverging_epoch.end_offset) == (0, -1)
    assert values_of(got) == [b"a", b"b"]


def test_read_committed_without_transactions_sees_everything(wire: WireClient, topic: str) -> None:
    wire.produce_values(topic, b"a")
    got = wire.fetch(topic, 0, isolation_level=1)
    assert (values_of(got), got.last_stable_offset, got.aborted_transactions) == ([b"a"], 1, [])


@pytest.mark.parametrize("isolation", [2, -1])
def test_an_unknown_isolation_level_fails_the_request(wire: WireClient, topic: str, isolation: int) -> None:
    answer = wire.send(request((topic, [(0, 0, 100)]), isolation_level=isolation), 12)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_negative_partition_bytes_are_an_error_of_the_partition(wire: WireClient, topic: str) -> None:
    wire.produce_values(topic, b"a")
    answer = wire.send(request((topic, [(0, 0, -5)])), 12)
    codes = [p.error_code for t in answer.responses for p in t.partitions]
    assert ErrorCode.UNKNOWN_SERVER_ERROR in (answer.error_code, *codes)


@pytest.mark.parametrize("wait", ["max_wait_ms 0", "min_bytes 0"])
def test_who_does_not_want_to_wait_is_answered(wire: WireClient, topic: str, wait: str) -> None:
    fields = (
        {"max_wait_ms": 0, "min_bytes": 1}
        if wait == "max_wait_ms 0"
        else {"max_wait_ms": 50_000, "min_bytes": 0}
    )
    start = time.monotonic()
    assert wire.fetch(topic, 0, **fields).error_code == 0
    assert time.monotonic() - start < QUICK_S


def test_zstd_needs_version_10(wire: WireClient, topic: str) -> None:
    from protocol.records.batch import Record
    from protocol.records.builder import build_batch

    sent = build_batch([Record(0, 1_700_000_000_000, None, b"a", ())], codec=4)
    assert wire.produce(topic, bytes(sent)).error_code == 0
    assert wire.fetch(topic, 0, version=10).error_code == 0


def test_a_fetch_behind_a_waiting_one_is_answered_after_it(wire: WireClient, topic: str) -> None:
    waiting = wire.post(request((topic, [(0, 0, 100)]), max_wait_ms=200), 12)
    behind = wire.post(m.MetadataRequest(topics=[]), 12)
    assert wire.receive(waiting).error_code == 0
    assert wire.receive(behind).cluster_id


def test_reads_cross_segments(wire: WireClient, name: str) -> None:
    wire.create_topic(name, segment_bytes=str(1 << 20))
    for number in range(24):
        wire.produce_values(name, bytes([number]) * 100_000)
    seen = [r.value for one in wire.stored_batches(name) for r in records(one)]
    assert seen == [bytes([number]) * 100_000 for number in range(24)]
