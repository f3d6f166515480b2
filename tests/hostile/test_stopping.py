"""How a broker ends, and what keeps a second one away from its files."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from tests.hostile.attacks import connect, fetch, request_frame
from tests.hostile.victim import Victim
from tests.support.ottla_process import CHECKOUT, OttlaProcess

STOP_S = 30.0  # promises.md, 5
REFUSE_S = 120.0


def run_to_its_end(broker: OttlaProcess) -> subprocess.CompletedProcess[str]:
    """Start a broker that cannot run."""
    return subprocess.run(
        broker.command(), capture_output=True, text=True, timeout=REFUSE_S, cwd=CHECKOUT, check=False
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_good_order_though_clients_are_busy(victim: Victim, number: int) -> None:
    """Long polls, half requests and unread answers do not hold it up; the marker of a clean stop is there."""
    with victim.wire() as wire:
        wire.create_topic("t")
        wire.produce_values("t", b"a")
    peers = [connect(victim) for _ in range(20)]
    waiting = request_frame(fetch("t", 1, max_wait_ms=600_000), 4)
    unread = request_frame(fetch("t"), 4) * 2000
    for index, peer in enumerate(peers):
        peer.setblocking(False)
        peer.send((waiting, waiting[:-3], unread)[index % 3])
    process = victim.broker.process
    assert process is not None
    process.send_signal(number)
    assert process.wait(STOP_S) == 0
    victim.broker.process = None
    for peer in peers:
        peer.close()
    assert (victim.broker.log_dir / ".kafka_cleanshutdown").exists()
    assert not (victim.broker.log_dir / ".lock").exists()
    assert "shut down completed" in victim.lines()[-1]
    victim.broker.start()
    assert "not closed cleanly" not in victim.broker.output()


def test_a_second_signal_ends_it_at_once(victim: Victim) -> None:
    process = victim.broker.process
    assert process is not None
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGTERM)
    assert process.wait(STOP_S) in (0, 128 + signal.SIGTERM)
    victim.broker.process = None
    victim.broker.start()


def test_a_second_broker_on_the_same_directory_stops_and_the_first_goes_on(victim: Victim) -> None:
    with victim.wire() as wire:
        wire.create_topic("t")
        wire.produce_values("t", b"before")
        second = OttlaProcess(directory=victim.broker.directory)
        ended = run_to_its_end(second)
        said = ended.stdout + ended.stderr
        assert ended.returncode != 0
        assert "in use by another process" in said
        assert str(victim.broker.log_dir) in said
        assert "Traceback" not in said
        assert wire.produce_values("t", b"after") == 1
    assert victim.broker.stop() == 0
    victim.broker.start()
    with victim.wire() as wire:
        assert wire.list_offset("t", -1).offset == 2


def test_a_taken_port_is_named_and_nothing_is_written(victim: Victim, tmp_path: Path) -> None:
    second = OttlaProcess({"listeners": f"PLAINTEXT://127.0.0.1:{victim.broker.port}"}, directory=tmp_path)
    ended = run_to_its_end(second)
    said = ended.stdout + ended.stderr
    assert ended.returncode == 1
    assert str(victim.broker.port) in said
    assert "Traceback" not in said
    assert not list(second.log_dir.glob("*/"))
    assert not (second.log_dir / "meta.properties").exists()


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("log.dirs", "/proc/no/such/place"),
        ("log.dirs", "/dev/null"),
        ("num.partitions", "many"),
        ("listeners", "PLAINTEXT://127.0.0.1:99999"),
        ("listeners", "nonsense"),
    ],
)
def test_what_it_cannot_start_with_is_said_in_plain_words(tmp_path: Path, setting: str, value: str) -> None:
    ended = run_to_its_end(OttlaProcess({setting: value}, directory=tmp_path))
    said = ended.stdout + ended.stderr
    assert ended.returncode == 1, said
    assert "Traceback" not in said, said
    assert value.rpartition(":")[2] in said


def test_a_damaged_meta_properties_is_not_overwritten(victim: Victim) -> None:
    """Of another cluster, or unreadable: the broker stops and says so, the file stays as it is."""
    assert victim.broker.stop() == 0
    path = victim.broker.log_dir / "meta.properties"
    right = path.read_bytes()
    for wrong in (right.replace(b"cluster.id=", b"cluster.id=x"), b"\0\xff", b"version=99\n"):
        path.write_bytes(wrong)
        ended = run_to_its_end(victim.broker)
        said = ended.stdout + ended.stderr
        assert ended.returncode == 1, (wrong, said)
        assert "Traceback" not in said, (wrong, said)
        assert "meta.properties" in said or "cluster" in said
        assert path.read_bytes() == wrong
    path.write_bytes(right)
    victim.broker.start()
