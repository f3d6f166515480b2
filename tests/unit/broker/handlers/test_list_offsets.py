"""ListOffsets: protocol.md 4.2, L1 to L7."""

from __future__ import annotations

import threading

import pytest

from protocol import messages as m
from storage import time_lookup
from tests.support.handler_broker import HandlerBroker

Request = m.ListOffsetsRequest
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED, PENDING_UPLOAD = range(-1, -7, -1)


def ask(
    broker: HandlerBroker,
    timestamp: int,
    version: int = 11,
    *,
    topic: str = "t",
    partition: int = 0,
    epoch: int = -1,
    replica: int = -1,
    isolation: int = 0,
    count: int = 1,
    times: int = 1,
) -> list[m.ListOffsetsResponse.ListOffsetsPartitionResponse]:
    wanted = Request.ListOffsetsPartition(
        partition_index=partition, timestamp=timestamp, current_leader_epoch=epoch, max_num_offsets=count
    )
    request = Request(
        replica_id=replica,
        isolation_level=isolation,
        topics=[Request.ListOffsetsTopic(name=topic, partitions=[wanted] * times)],
        timeout_ms=60_000,
    )
    (answered,) = broker.call(request, version).topics
    assert answered.name == topic
    return answered.partitions


def found(broker: HandlerBroker, timestamp: int, version: int = 11, **fields: object) -> tuple[int, int, int]:
    """(error, timestamp, offset)"""
    (answer,) = ask(broker, timestamp, version, **fields)
    return answer.error_code, answer.timestamp, answer.offset


@pytest.fixture
def filled(broker: HandlerBroker) -> HandlerBroker:
    """Five records; the greatest timestamp is in the middle, inside a compressed batch."""
    broker.create("t", 2)
    broker.produce("t", 0, [(1000, b"a"), (1001, b"b")])
    broker.produce("t", 0, [(1002, b"c"), (1009, b"d"), (1004, b"e")], codec=1)
    return broker


@pytest.mark.parametrize("version", range(1, 12))
def test_l2_l3_l6_at_every_version(filled: HandlerBroker, version: int) -> None:
    assert found(filled, LATEST, version) == (0, -1, 5)
    assert found(filled, EARLIEST, version) == (0, -1, 0)
    assert found(filled, 1001, version) == (0, 1001, 1)
    assert found(filled, 1003, version) == (0, 1009, 3)
    assert found(filled, 0, version) == (0, 1000, 0)
    assert found(filled, 1010, version) == (0, -1, -1)
    (answer,) = ask(filled, LATEST, version)
    assert answer.leader_epoch == (0 if version >= 4 else -1)


def test_l1_v0_lists_segment_starts(filled: HandlerBroker) -> None:
    log = filled.ctx.replicas.get("t", 0).log
    log.roll(filled.ctx.env.clock.now_ms())
    filled.produce("t", 0, [(2000, b"f")])
    assert ask(filled, LATEST, 0, count=10)[0].old_style_offsets == [6, 5, 0]
    assert ask(filled, LATEST, 0, count=2)[0].old_style_offsets == [6, 5]
    assert ask(filled, EARLIEST, 0, count=10)[0].old_style_offsets == [0]
    assert ask(filled, LATEST, 0, count=0)[0].old_style_offsets == []


@pytest.mark.parametrize(
    ("timestamp", "since", "expected"),
    [
        (MAX_TIMESTAMP, 7, (0, 1009, 3)),
        (EARLIEST_LOCAL, 8, (0, -1, 0)),
        (LATEST_TIERED, 9, (0, -1, -1)),
        (PENDING_UPLOAD, 11, (0, -1, -1)),
        (-7, 12, None),
    ],
)
def test_l4_l5_special_timestamps(
    filled: HandlerBroker, timestamp: int, since: int, expected: tuple[int, int, int] | None
) -> None:
    for version in range(1, 12):
        answer = found(filled, timestamp, version)
        assert answer == (expected if version >= since else (35, -1, -1)), version


def test_an_empty_partition(filled: HandlerBroker) -> None:
    (latest,) = ask(filled, LATEST, partition=1)
    (earliest,) = ask(filled, EARLIEST, partition=1)
    assert (latest.offset, latest.leader_epoch) == (0, 0)
    assert (earliest.offset, earliest.leader_epoch) == (0, 0)
    assert found(filled, MAX_TIMESTAMP, partition=1) == (0, -1, -1)


def test_l3_replicas_and_isolation(filled: HandlerBroker) -> None:
    log = filled.ctx.replicas.get("t", 0).log
    log.high_watermark = 2
    assert found(filled, LATEST) == (0, -1, 2)
    assert found(filled, LATEST, isolation=1) == (0, -1, 2)
    assert found(filled, LATEST, replica=-2) == (0, -1, 5)
    assert found(filled, LATEST, replica=3) == (0, -1, 5)
    assert found(filled, 1002) == (0, -1, -1)
    assert found(filled, 1002, replica=-2) == (0, 1002, 2)
    assert found(filled, LATEST, isolation=3) == (-1, -1, -1)


def test_l7_epochs_and_partitions_that_are_not_here(filled: HandlerBroker) -> None:
    assert found(filled, LATEST, epoch=0) == (0, -1, 5)
    assert found(filled, LATEST, epoch=1) == (75, -1, -1)
    assert found(filled, LATEST, epoch=-2) == (74, -1, -1)
    assert found(filled, LATEST, partition=9) == (3, -1, -1)
    assert found(filled, LATEST, topic="nope") == (3, -1, -1)


def test_l7_a_partition_named_twice(filled: HandlerBroker) -> None:
    answers = ask(filled, LATEST, times=2)
    assert [(answer.error_code, answer.offset) for answer in answers] == [(42, -1)]


def test_after_records_were_deleted(filled: HandlerBroker) -> None:
    filled.ctx.replicas.get("t", 0).delete_records(4)
    assert found(filled, EARLIEST) == (0, -1, 4)
    assert found(filled, 0) == (0, 1004, 4)


@pytest.mark.parametrize(
    ("timestamp", "version", "search"),
    [
        (1001, 11, "offset_for_timestamp"),
        (MAX_TIMESTAMP, 11, "max_timestamp_offset"),
        (1001, 0, "start_offsets_before"),
    ],
)
def test_the_loop_goes_on_while_a_time_is_searched_for(
    filled: HandlerBroker, monkeypatch: pytest.MonkeyPatch, timestamp: int, version: int, search: str
) -> None:
    """The search waits here until the loop has done something else."""
    loop_went_on = threading.Event()
    real = getattr(time_lookup, search)

    def waiting(*args: object) -> object:
        filled.ctx.env.loop.call_soon_threadsafe(loop_went_on.set)
        assert loop_went_on.wait(30)
        return real(*args)

    monkeypatch.setattr(time_lookup, search, waiting)
    (answer,) = ask(filled, timestamp, version)
    assert answer.error_code == 0
    assert loop_went_on.is_set()


@pytest.mark.parametrize("timestamp", [LATEST, EARLIEST])
@pytest.mark.parametrize("version", [0, 11])
def test_the_ends_of_a_log_need_no_search(
    filled: HandlerBroker, monkeypatch: pytest.MonkeyPatch, timestamp: int, version: int
) -> None:
    monkeypatch.setattr(filled.ctx.env.blocking, "submit", None)
    (answer,) = ask(filled, timestamp, version)
    assert answer.error_code == 0
