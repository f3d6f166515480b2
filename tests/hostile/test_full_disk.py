"""A disk that fills up under load and gets room again: 56, nothing acknowledged is lost, and on it goes.

Needs a small file system of its own: a tmpfs, which root may mount. Elsewhere the twin of the file system in
tests/unit/storage/test_log_machine.py is the proof, and this file has nothing to run.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.errors import ErrorCode
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from tests.hostile.test_crash import stored
from tests.hostile.victim import MIB, Victim
from tests.support.wire_client import WireClient

DISK_BYTES = 24 * MIB
BALLAST_BYTES = 6 * MIB
VALUE_BYTES = 100_000
SETTINGS = {"log.segment.bytes": "4194304"}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A directory with little room."""
    mounted = tmp_path / "disk"
    mounted.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(mounted)], check=True)
    yield mounted
    subprocess.run(["umount", "-l", str(mounted)], check=True)


def may_mount() -> bool:
    """Whether this process may mount a tmpfs."""
    return (
        shutil.which("unshare") is not None
        and subprocess.run(
            ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, check=False
        ).returncode
        == 0
    )


def produce(wire: WireClient, number: int, producer_id: int = -1, sequence: int = -1) -> int:
    """One batch of one record; the error code."""
    value = b"%d/" % number + b"x" * VALUE_BYTES
    batch = build_batch(
        [Record(0, 1_700_000_000_000, None, value, ())],
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=sequence,
    )
    answer = wire.produce("t", batch)
    assert (answer.base_offset >= 0) == (answer.error_code == 0)
    return int(answer.error_code)


def numbers(wire: WireClient) -> list[int]:
    return [int(value.split(b"/")[0]) for value in stored(wire, "t", 0).values()]


def fill_up(wire: WireClient, acknowledged: list[int], producer_id: int) -> None:
    """Produce until the disk is full; what is refused is refused with 56."""
    refused = 0
    while refused < 5:
        code = produce(wire, len(acknowledged), producer_id, len(acknowledged))
        assert code in (0, ErrorCode.KAFKA_STORAGE_ERROR)
        if code:
            refused += 1
        else:
            acknowledged.append(len(acknowledged))


if may_mount():

    def test_a_full_disk_answers_56_and_takes_writes_again_when_there_is_room(small_disk: Path) -> None:
        ballast = small_disk / "ballast"
        ballast.write_bytes(bytes(BALLAST_BYTES))
        acknowledged: list[int] = []
        with Victim(SETTINGS, small_disk.parent / "broker") as victim:
            victim.broker.stop()
            victim.broker.overrides["log.dirs"] = str(small_disk / "data")
            victim.broker.start()
            with victim.wire() as wire:
                wire.create_topic("t")
                fill_up(wire, acknowledged, producer_id=7)
                assert len(acknowledged) > 100
                assert numbers(wire) == acknowledged  # readable while full, nothing half written
                begun = len(acknowledged)
                ballast.unlink()
                fill_up(wire, acknowledged, producer_id=7)
                assert len(acknowledged) > begun + 30
                assert numbers(wire) == acknowledged
            assert not [line for line in victim.lines() if "Traceback" in line or "offline" in line]
            victim.broker.kill()
            victim.broker.start()  # on a full disk, after a crash
            with victim.wire() as wire:
                assert numbers(wire) == acknowledged
            assert victim.broker.stop() is not None

    def test_a_disk_that_takes_nothing_at_the_start_is_said(small_disk: Path) -> None:
        victim = Victim({"log.dirs": str(small_disk / "data")}, small_disk.parent / "broker")
        victim.broker.directory.mkdir()
        ballast = small_disk / "ballast"
        ballast.write_bytes(bytes(DISK_BYTES - 4096))
        assert "full" in failed_start(victim)
        ballast.unlink()
        subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
        assert "Read-only" in failed_start(victim)


def failed_start(victim: Victim) -> str:
    """What a broker says that cannot start."""
    ended = subprocess.run(victim.broker.command(), capture_output=True, text=True, timeout=120, check=False)
    said = ended.stdout + ended.stderr
    assert ended.returncode == 1, said
    assert "Traceback" not in said, said
    return said
