"""What the check of a load lets pass: a value twice only under a higher epoch of its producer."""

from __future__ import annotations

import time

import pytest

from protocol.records.batch import Record
from protocol.records.builder import build_batch
from tests.cluster.load import Load, check
from tests.support.ottla_process import OttlaProcess
from tests.support.wire_client import WireClient


def write(broker: OttlaProcess, topic: str, *written: tuple[int, int, int]) -> Load:
    """Value, epoch and sequence of each; the last copy of a value is the one that was acknowledged."""
    places: dict[int, tuple[int, int]] = {}
    with WireClient(broker.bootstrap_servers) as wire:
        wire.create_topic(topic)
        for value, epoch, sequence in written:
            record = Record(0, int(time.time() * 1000), None, b"%d" % value, ())
            batch = build_batch([record], producer_id=7, producer_epoch=epoch, base_sequence=sequence)
            answer = wire.produce(topic, batch)
            assert answer.error_code == 0, answer
            places[value] = 0, answer.base_offset
    acknowledged = {place: value for value, place in places.items()}
    return Load(broker.bootstrap_servers, topic, 1, acknowledged, sent=len(places))


def test_what_librdkafka_sends_again_under_its_next_epoch(ottla_process: OttlaProcess) -> None:
    load = write(ottla_process, "raised", (0, 0, 0), (1, 0, 1), (2, 0, 2), (1, 1, 0), (2, 1, 1), (3, 1, 2))
    assert check(load, load.bootstrap_servers) == {1, 2}


def test_what_is_there_once(ottla_process: OttlaProcess) -> None:
    load = write(ottla_process, "once", (0, 0, 0), (1, 0, 1), (2, 1, 0))
    assert check(load, load.bootstrap_servers) == set()


@pytest.mark.parametrize(
    ("name", "written", "said"),
    [
        ("same", [(0, 0, 0), (1, 0, 1), (1, 0, 2)], "there twice.*{1: \\[0, 0\\]}"),
        ("order", [(0, 0, 0), (2, 0, 1), (1, 0, 2)], "partition 0 is not in the order"),
    ],
)
def test_what_does_not_pass(
    ottla_process: OttlaProcess, name: str, written: list[tuple[int, int, int]], said: str
) -> None:
    load = write(ottla_process, name, *written)
    with pytest.raises(AssertionError, match=said):
        check(load, load.bootstrap_servers)
