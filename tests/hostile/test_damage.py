"""Files that a crash, a disk or a hand has damaged: readable up to there, one clear line, and on it goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.test_crash import stored
from tests.hostile.victim import Victim

SETTINGS = {"log.segment.bytes": "1048576", "log.index.interval.bytes": "4096"}
VALUES = [b"%d" % number + b"v" * 20_000 for number in range(120)]  # three segments
BATCH_BYTES = 20_000  # at least


def newest(folder: Path, pattern: str) -> Path:
    return max(folder.glob(pattern))


def oldest(folder: Path, pattern: str) -> Path:
    return min(folder.glob(pattern))


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def cut(path: Path, count: int) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - count)


def overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at if at >= 0 else path.stat().st_size + at)
        file.write(data)


ALL = len(VALUES)

TAILS = {
    "garbage": (lambda log: append(log, b"\xde\xad\xbe\xef" * 100), ALL),
    "zeros": (lambda log: append(log, bytes(100_000)), ALL),
    "the start of a header": (lambda log: append(log, log.read_bytes()[:40]), ALL),
    "a batch that was there before": (lambda log: append(log, log.read_bytes()[:20_100]), ALL),
    "a size of 2 GiB": (lambda log: append(log, bytes(8) + b"\x7f\xff\xff\xff" + bytes(100)), ALL),
    "cut in the middle of a batch": (lambda log: cut(log, 5000), ALL - 1),
    "cut in a header": (lambda log: cut(log, BATCH_BYTES + 40), ALL - 1),
    "a flipped byte in the last batch": (lambda log: overwrite(log, -1000, b"\xff"), ALL - 1),
    "zeros over the end": (lambda log: overwrite(log, -5000, bytes(5000)), ALL - 1),
}

DERIVED = {
    "no index": lambda folder: newest(folder, "*.index").unlink(),
    "no index of a closed segment": lambda folder: oldest(folder, "*.index").unlink(),
    "no time index": lambda folder: newest(folder, "*.timeindex").unlink(),
    "no indexes at all": lambda folder: [path.unlink() for path in folder.glob("*index")],
    "an index of garbage": lambda folder: append(newest(folder, "*.index"), b"\xff" * 801),
    "an index of garbage of a closed segment": lambda folder: append(oldest(folder, "*.index"), b"\xff" * 80),
    "a time index of garbage": lambda folder: append(newest(folder, "*.timeindex"), b"\x01" * 1201),
    "an index of zeros": lambda folder: append(newest(folder, "*.index"), bytes(10 << 20)),
    "no epochs": lambda folder: (folder / "leader-epoch-checkpoint").unlink(),
    "epochs of garbage": lambda folder: (folder / "leader-epoch-checkpoint").write_bytes(b"\0\xffgarbage"),
    "no snapshots": lambda folder: [path.unlink() for path in folder.glob("*.snapshot")],
    "a snapshot of garbage": lambda folder: append(newest(folder, "*.snapshot"), b"\xff" * 50),
    "an empty snapshot": lambda folder: newest(folder, "*.snapshot").write_bytes(b""),
    "leftovers": lambda folder: (folder / "00000000000000000000.log.deleted").write_bytes(b"x"),
}


def folder_of(victim: Victim, partition: int) -> Path:
    return victim.broker.log_dir / f"t-{partition}"


def fill(victim: Victim, partitions: int) -> None:
    """Three segments in each partition."""
    with victim.wire() as wire:
        wire.create_topic("t", partitions=partitions)
        for partition in range(partitions):
            for value in VALUES:
                wire.produce_values("t", value, partition=partition)


def check(victim: Victim, counts: dict[str, int], also: list[bytes]) -> None:
    """Each partition, named by what is wrong with it, holds so many of the values, and what came after."""
    with victim.wire() as wire:
        for partition, (what, count) in enumerate(counts.items()):
            found = list(stored(wire, "t", partition).values())
            assert found == [*VALUES[:count], *also], (what, len(found))
            assert wire.list_offset("t", 1_700_000_000_000, partition).offset == 0, what


def restart_and_check(victim: Victim, counts: dict[str, int]) -> list[str]:
    """Start, read, produce, stop in good order, start again, read; the log lines of the first start."""
    before = len(victim.lines())
    victim.broker.start()
    lines = victim.lines(before)
    check(victim, counts, [])
    with victim.wire() as wire:
        for partition, (what, count) in enumerate(counts.items()):
            assert wire.produce_values("t", b"goes on", partition=partition) == count, what
    assert victim.broker.stop() == 0
    victim.broker.start()
    check(victim, counts, [b"goes on"])
    assert not [line for line in lines if "Traceback" in line or " ERROR " in line]
    return lines


def test_torn_and_wrong_tails() -> None:
    with Victim(SETTINGS) as victim:
        fill(victim, len(TAILS))
        victim.broker.kill()
        for partition, (damage, _) in enumerate(TAILS.values()):
            damage(newest(folder_of(victim, partition), "*.log"))
        lines = restart_and_check(victim, {what: count for what, (_, count) in TAILS.items()})
        for partition, what in enumerate(TAILS):
            about = [line for line in lines if f"/t-{partition}/" in line]
            assert len(about) == 1, (what, about)
            assert "cut" in about[0]


@pytest.mark.parametrize("clean", [False, True])
def test_derived_files_that_are_missing_or_wrong(clean: bool) -> None:
    """After a crash they are rebuilt; after a clean stop what is damaged is noticed, or does no harm."""
    with Victim(SETTINGS) as victim:
        fill(victim, len(DERIVED))
        if clean:
            assert victim.broker.stop() == 0
        else:
            victim.broker.kill()
            victim.broker.start()
            victim.broker.kill()
        assert (victim.broker.log_dir / ".kafka_cleanshutdown").exists() == clean
        for partition, damage in enumerate(DERIVED.values()):
            damage(folder_of(victim, partition))
        restart_and_check(victim, dict.fromkeys(DERIVED, ALL))


def test_a_byte_that_rots_in_a_closed_segment_reaches_the_reader_as_it_is() -> None:
    """Promise 7: a fetch passes stored bytes on with their checksum, so that a checking reader sees it."""
    with Victim(SETTINGS) as victim:
        fill(victim, 1)
        assert victim.broker.stop() == 0
        overwrite(oldest(folder_of(victim, 0), "*.log"), 1000, b"\x01")
        victim.broker.start()
        with victim.wire() as wire:
            answer = wire.fetch("t", 0)
            assert answer.error_code == 0
            assert bytes(answer.records[1000:1001]) == b"\x01"
            assert wire.list_offset("t", -1).offset == ALL
            assert wire.produce_values("t", b"goes on") == ALL
