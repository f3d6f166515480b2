"""`ottla verify-log` on directories that Ottla and Apache Kafka wrote, whole and damaged in every way."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.tools import ottla_tool
from tests.support.wire_client import WireClient

TOPIC = "verify-log"
SETTINGS = {"log.segment.bytes": str(1 << 20), "log.index.interval.bytes": "200"}
RECORDS = 24  # of 150,000 bytes: six in each segment


def fill(broker: OttlaProcess | KafkaProcess) -> None:
    with WireClient(broker.bootstrap_servers) as wire:
        wire.create_topic(TOPIC, 1)
        for number in range(RECORDS):
            wire.produce_values(TOPIC, b"%06d" % number * 25_000, partition=0)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log directory of a broker that has ended in good order."""
    directory = tmp_path_factory.mktemp("ottla")
    with OttlaProcess(SETTINGS, directory=directory) as broker:
        fill(broker)
        broker.stop()
        return broker.log_dir


@pytest.fixture
def copy(stopped: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(stopped, tmp_path / "copy", ignore=shutil.ignore_patterns(".lock")))


@pytest.fixture
def folder(copy: Path) -> Path:
    return copy / f"{TOPIC}-0"


def logs(folder: Path, suffix: str = ".log") -> list[Path]:
    return sorted(folder.glob(f"*{suffix}"))


def verified(folder: Path, *options: str) -> tuple[int, list[str], str]:
    """Exit code, findings without the folder's path, the last line."""
    done = ottla_tool("verify-log", str(folder), *options)
    assert done.stderr == ""
    *findings, last = done.stdout.splitlines()
    return done.returncode, [line.replace(f"{folder}/", "") for line in findings], last


def test_what_a_broker_left_is_whole(copy: Path) -> None:
    code, findings, last = verified(copy, "--deep-iteration")
    assert (code, findings) == (0, [])
    segments = len(list(copy.glob("*/*.log")))
    assert segments >= 4
    size = sum(path.stat().st_size for path in copy.glob("*/*.log"))
    assert f", {segments:,} segments, {RECORDS} batches, {RECORDS} records, {size:,} bytes: 0 damaged" in last
    code, findings, last = verified(copy / f"{TOPIC}-0")
    assert (code, findings) == (0, [])
    assert last.startswith("Looked at 1 partitions, ")
    assert "records" not in last


@pytest.mark.kafka
def test_what_apache_kafka_left_is_whole(tmp_path: Path) -> None:
    with KafkaProcess("4.4.0", directory=tmp_path) as broker:
        fill(broker)
        broker.stop()
        code, findings, last = verified(broker.log_dir, "--deep-iteration")
    assert (code, findings) == (0, [])
    assert f" {RECORDS} batches, {RECORDS} records" in last


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(data)


def a_byte(folder: Path) -> str:
    flip(logs(folder)[1], 100)
    return f"damaged: {logs(folder)[1].name}: the batch at byte 0 "


def a_torn_end(folder: Path) -> str:
    last = logs(folder)[-1]
    size = last.stat().st_size
    last.write_bytes(last.read_bytes() + b"\0\0\0\0\0\0\0\x28\0\0\x01\0" + b"x" * 30)
    return f"damaged: {last.name}: 42 bytes behind byte {size} are no whole batch"


def zeros_at_the_end(folder: Path) -> str:
    last = logs(folder)[-1]
    last.write_bytes(last.read_bytes() + bytes(100))
    return f"damaged: {last.name}: "


def an_index_entry(folder: Path) -> str:
    index = logs(folder, ".index")[0]
    flip(index, 7)
    return f"damaged: {index.name}: 1 of "


def a_time_index_entry(folder: Path) -> str:
    index = logs(folder, ".timeindex")[0]
    flip(index, 7)
    return f"damaged: {index.name}: "


def an_index_of_half_an_entry(folder: Path) -> str:
    index = logs(folder, ".index")[0]
    index.write_bytes(index.read_bytes()[:-3])
    return f"damaged: {index.name}: "


def a_segment_twice(folder: Path) -> str:
    first, second, *_ = logs(folder)
    number = int(first.stem) + 1
    shutil.copy(second, folder / f"{number:020}.log")
    return f"damaged: {number:020}.log: begins below offset "


def a_snapshot(folder: Path) -> str:
    (folder / f"{3:020}.snapshot").write_bytes(b"\0\x01nonsense")
    return f"damaged: {3:020}.snapshot: "


def epochs(folder: Path) -> str:
    (folder / "leader-epoch-checkpoint").write_text("0\n2\n5 0\n3 7\n")
    return "damaged: leader-epoch-checkpoint: has epochs that do not rise"


def the_topic_id(folder: Path) -> str:
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: nothing")
    return "damaged: partition.metadata: "


def an_aborted_transaction(folder: Path) -> str:
    (folder / f"{0:020}.txnindex").write_bytes(b"\0\x07" + bytes(32))
    return f"damaged: {0:020}.txnindex: has entries of an unknown version"


DAMAGES = [
    a_byte, a_torn_end, zeros_at_the_end, an_index_entry, a_time_index_entry, an_index_of_half_an_entry,
    a_segment_twice, a_snapshot, epochs, the_topic_id, an_aborted_transaction,
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_is_told(folder: Path, damage: Callable[[Path], str]) -> None:
    expected = damage(folder)
    before = contents(folder)
    code, findings, last = verified(folder)
    assert code == 1
    assert any(line.startswith(expected) for line in findings), (expected, findings)
    assert not last.endswith(": 0 damaged, 0 notes")
    assert contents(folder) == before, "nothing is changed"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_what_a_start_puts_right_is_a_note(folder: Path) -> None:
    (folder / f"{0:020}.log.deleted").write_bytes(b"x")
    (folder / f"{9:020}.index").write_bytes(b"")
    (folder / f"{999:020}.snapshot").write_bytes(logs(folder, ".snapshot")[0].read_bytes())
    code, findings, last = verified(folder)
    assert code == 0
    assert sorted(findings) == [
        f"note: {0:020}.log.deleted: was left behind by a stop in the middle of something",
        f"note: {9:020}.index: belongs to no log",
        f"note: {999:020}.snapshot: lies behind the end of the log, {RECORDS}",
    ]
    assert last.endswith(": 0 damaged, 3 notes")


ROOT_FILES = [
    ("meta.properties", "version=7\n"),
    ("recovery-point-offset-checkpoint", "0\n2\nt 0 5\n"),
    ("replication-offset-checkpoint", "0\n1\nt x 5\n"),
    ("log-start-offset-checkpoint", "1\n"),
]


@pytest.mark.parametrize(("name", "text"), ROOT_FILES)
def test_files_of_the_directory_itself(copy: Path, name: str, text: str) -> None:
    (copy / name).write_text(text)
    code, findings, _ = verified(copy)
    assert code == 1
    assert [line.split(": ")[:2] for line in findings] == [["damaged", name]]


def test_directories_that_are_no_partitions(copy: Path) -> None:
    (copy / "lost+found").mkdir()
    (copy / f"gone-0.{'0' * 32}-delete").mkdir()
    code, findings, _ = verified(copy)
    assert code == 1
    assert findings == [
        f"note: gone-0.{'0' * 32}-delete: set aside (delete)",
        "damaged: lost+found: directory 'lost+found' is not of the form TOPIC-PARTITION: "
        "Kafka does not start with it",
    ]


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    done = ottla_tool("verify-log", str(tmp_path / "absent"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"{tmp_path}/absent is no directory\n"
