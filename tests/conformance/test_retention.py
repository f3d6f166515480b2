"""Old records go from a running broker, by time and by size; the active segment by rolling it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

EARLIEST, LATEST = -2, -1
OFTEN = {
    "log.initial.task.delay.ms": "0",
    "log.retention.check.interval.ms": "200",
    "log.segment.delete.delay.ms": "1000",
}
YEARS_AGO_MS = 1_500_000_000_000
BIG = b"x" * 400_000


@pytest.fixture(scope="module", params=[OttlaProcess, KafkaProcess], ids=["ottla", "kafka"])
def broker(request: pytest.FixtureRequest) -> Iterator[OttlaProcess | KafkaProcess]:
    started = OttlaProcess(OFTEN) if request.param is OttlaProcess else KafkaProcess("4.4.0", OFTEN)
    with started as running:
        yield running


@pytest.fixture
def wire(broker: OttlaProcess | KafkaProcess) -> Iterator[WireClient]:
    with WireClient(broker.bootstrap_servers) as wire:
        yield wire


def bounds(wire: WireClient, topic: str) -> tuple[int, int]:
    return wire.list_offset(topic, EARLIEST).offset, wire.list_offset(topic, LATEST).offset


def files(broker: OttlaProcess | KafkaProcess, topic: str) -> list[str]:
    return sorted(path.name for path in (broker.log_dir / f"{topic}-0").glob("*.log*"))


@pytest.mark.kafka
def test_what_is_older_than_retention_ms_goes_with_the_active_segment(
    broker: OttlaProcess | KafkaProcess, wire: WireClient
) -> None:
    wire.create_topic("by-time", retention_ms="3600000")
    wire.produce_values("by-time", b"a", b"b", timestamp=YEARS_AGO_MS)
    wait_until(lambda: bounds(wire, "by-time") == (2, 2), "the old records to go")
    wait_until(lambda: files(broker, "by-time") == [f"{2:020}.log"], "their files to go")
    assert wire.produce_values("by-time", b"c", timestamp=YEARS_AGO_MS) == 2


@pytest.mark.kafka
def test_what_is_beyond_retention_bytes_goes_segment_by_segment(wire: WireClient) -> None:
    settings = {"retention_ms": "-1", "retention_bytes": "1500000", "segment_bytes": "1048576"}
    wire.create_topic("by-size", **settings)
    for _ in range(10):  # two in each segment
        wire.produce_values("by-size", BIG, timestamp=YEARS_AGO_MS)
    wait_until(lambda: bounds(wire, "by-size") == (6, 10), "two segments to be left")


@pytest.mark.kafka
def test_nothing_goes_that_may_stay(broker: OttlaProcess | KafkaProcess, wire: WireClient) -> None:
    """Seen by a topic beside it that has been looked at in the same turn."""
    for name, retention_ms in (("stays", "-1"), ("goes", "1000")):
        wire.create_topic(name, retention_ms=retention_ms)
        wire.produce_values(name, b"x", timestamp=YEARS_AGO_MS)
    wait_until(lambda: bounds(wire, "goes") == (1, 1), "the other topic's record to go")
    assert bounds(wire, "stays") == (0, 1)
