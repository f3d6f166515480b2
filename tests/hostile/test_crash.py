"""kill -9 under load: nothing acknowledged is lost, and nothing of an idempotent producer is doubled."""

from __future__ import annotations

import subprocess
import threading

import pytest

from protocol import messages as m
from protocol.records.batch import batches, records
from tests.hostile.load import Producer, run_all
from tests.hostile.victim import Victim
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

PARTITIONS = 3
CYCLES = 5
BATCHES_A_CYCLE = 150
SETTINGS = {"log.segment.bytes": "1048576"}


def producers(victim: Victim) -> list[Producer]:
    """A plain and an idempotent one for each partition of two topics, with all codecs among them."""
    made = []
    with victim.wire() as wire:
        for name, idempotent in (("plain", False), ("idempotent", True)):
            wire.create_topic(name, partitions=PARTITIONS)
            for partition in range(PARTITIONS):
                made.append(Producer(victim.address, name, partition, codec=len(made) % 5))
                if idempotent:
                    made[-1].producer_id = wire.send(
                        m.InitProducerIdRequest(transactional_id=None), 4
                    ).producer_id
    return made


def stored(wire: WireClient, topic: str, partition: int) -> dict[int, bytes]:
    """Values by offset, read from the start to the end of a partition."""
    found: dict[int, bytes] = {}
    offset = wire.list_offset(topic, -2, partition).offset
    end = wire.list_offset(topic, -1, partition).offset
    while offset < end:
        answer = wire.fetch(topic, offset, partition)
        assert answer.error_code == 0, answer
        for at, size in batches(answer.records):
            for each in records(answer.records[at : at + size]):
                found[each.offset] = bytes(each.value)
        assert max(found) >= offset
        offset = max(found) + 1
    return found


def check(wire: WireClient, each: Producer) -> None:
    """Everything acknowledged is at its offset; offsets have no hole; the idempotent one has no double."""
    found = stored(wire, each.topic, each.partition)
    lost = [offset for value, offset in each.acknowledged.items() if found.get(offset) != value]
    assert not lost, (each.topic, each.partition, lost[:5])
    assert list(found) == list(range(len(found)))
    if each.producer_id >= 0:
        assert len(set(found.values())) == len(found)
        numbers = [int(value.split(b"/")[2]) for value in found.values()]
        assert numbers == sorted(numbers)


def leader_epoch(wire: WireClient, topic: str, partition: int) -> int:
    return int(wire.metadata(topic).topics[0].partitions[partition].leader_epoch)


def test_kill_9_in_the_middle_of_produce_load() -> None:
    with Victim(SETTINGS) as victim:
        clients = producers(victim)
        epochs: dict[tuple[str, int], int] = {}
        for cycle in range(CYCLES):
            enough = threading.Event()
            before = sum(each.sent for each in clients)
            threads = run_all(clients, enough)
            wait_until(
                lambda before=before: sum(each.sent for each in clients) - before > BATCHES_A_CYCLE,
                "the load",
            )
            victim.broker.kill()
            for thread in threads:
                thread.join()
            victim.broker.start()
            with victim.wire() as wire:
                for each in clients:
                    check(wire, each)
                    epoch = leader_epoch(wire, each.topic, each.partition)
                    assert epoch > epochs.get((each.topic, each.partition), -1), (cycle, each)
                    epochs[each.topic, each.partition] = epoch
                    each.produce(wire)  # what was not answered goes first
                    check(wire, each)
        segments = list((victim.broker.log_dir / "idempotent-0").glob("*.log"))
        assert len(segments) > 1, "the load was too small for a second segment"
        assert victim.broker.stop() == 0
        victim.broker.start()
        with victim.wire() as wire:
            for each in clients:
                check(wire, each)
                assert leader_epoch(wire, each.topic, each.partition) == epochs[each.topic, each.partition]


@pytest.mark.parametrize("kills", [4])
def test_kill_9_while_the_broker_starts(kills: int) -> None:
    """A crash in the middle of a recovery is a crash like any other."""
    with Victim(SETTINGS) as victim:
        with victim.wire() as wire:
            wire.create_topic("t")
            values = [b"%d" % number + bytes(50_000) for number in range(60)]
            for value in values:
                wire.produce_values("t", value)
        for number in range(kills):
            victim.broker.kill()
            start_and_kill(victim, 0.1 + 0.1 * number)
        victim.broker.start()
        with victim.wire() as wire:
            assert list(stored(wire, "t", 0).values()) == values
            assert wire.produce_values("t", b"goes on") == len(values)


def start_and_kill(victim: Victim, after_s: float) -> None:
    """Start the broker and kill it before it is ready, or soon after."""
    process = subprocess.Popen(
        victim.broker.command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        process.wait(after_s)
    except subprocess.TimeoutExpired:
        process.kill()
    process.wait()
