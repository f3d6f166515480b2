"""Disks that fail, fill up or go away under a broker with several, and moves between them that are killed.

What a file system of its own is needed for is mounted where the process may do that; tests/simulation and the
unit tests of storage prove the same on a simulated disk, so nothing depends on it.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from tests.conformance.test_configs import BROKER, DELETE, SET, change
from tests.conformance.test_groups_offsets import commit, fetch, partition
from tests.hostile.load import Producer, run_all
from tests.hostile.test_crash import stored
from tests.hostile.test_full_disk import may_mount
from tests.hostile.victim import MIB
from tests.support.group_member import await_coordinator
from tests.support.log_dirs import (
    NAMES,
    alter,
    await_move,
    break_dir,
    described,
    mend_dir,
    places,
    settings,
)
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR
TOPIC = "t"
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
READY_S = 60.0


@contextmanager
def running(directory: Path, **more: str) -> Iterator[OttlaProcess]:
    with OttlaProcess(settings(directory, **more), directory) as broker:
        yield broker


def one_in_each(broker: OttlaProcess, wire: WireClient) -> None:
    """A topic with a partition in each directory, with records."""
    for index, name in enumerate(NAMES):
        alter(wire, broker.directory / name, TOPIC, index)
    wire.create_topic(TOPIC, len(NAMES))
    assert places(wire, TOPIC) == dict(enumerate(NAMES))
    for index in range(len(NAMES)):
        wire.produce_values(TOPIC, b"x" * 1000, b"y" * 1000, partition=index)


def new_producer_id(wire: WireClient) -> int:
    """Asked again while the broker has no block of ids yet."""
    found: list[int] = []

    def given() -> bool:
        answer = wire.send(m.InitProducerIdRequest(transactional_id=None), 4)
        found.append(answer.producer_id)
        return bool(answer.error_code == 0)

    wait_until(given, "a producer id")
    assert found[-1] >= 0
    return found[-1]


def subdirectories(broker: OttlaProcess, suffix: str) -> list[Path]:
    found = [path for name in NAMES for path in (broker.directory / name).glob(f"{TOPIC}-0*")]
    return [path for path in found if path.name.endswith(suffix)]


def copied_bytes(broker: OttlaProcess) -> int:
    try:
        return sum(
            file.stat().st_size for path in subdirectories(broker, "-future") for file in path.glob("*.log")
        )
    except FileNotFoundError:  # the copy has just taken the place of the log
        return 0


# --- moves that are killed


def has_begun(broker: OttlaProcess) -> object:
    return subdirectories(broker, "-future") or is_over(broker)  # in one look, or while nobody looked


def has_some(broker: OttlaProcess) -> object:
    return copied_bytes(broker) > MIB or is_over(broker)


def marks(broker: OttlaProcess) -> list[Path]:
    return [path for name in NAMES for path in (broker.directory / name).glob(f"{TOPIC}-0/moved-here")]


def is_marked(broker: OttlaProcess) -> object:
    return [*broker.directory.glob("*/*/moved-here")] or is_over(broker)


def is_over(broker: OttlaProcess) -> object:
    return subdirectories(broker, "-delete")


@pytest.mark.parametrize("moment", [has_begun, has_some, is_marked, is_over], ids=lambda each: each.__name__)
def test_a_kill_at_any_moment_of_a_move_loses_nothing(
    tmp_path: Path, moment: Callable[[OttlaProcess], object]
) -> None:
    with running(tmp_path, log_segment_bytes=str(MIB)) as broker:
        enough = threading.Event()
        with WireClient(broker.bootstrap_servers) as wire:
            alter(wire, tmp_path / "data", TOPIC, 0)
            wire.create_topic(TOPIC)
            if moment in (has_begun, has_some):
                assert change(wire, BROKER, "", (RATE, SET, str(2 * MIB))) == 0
            for _ in range(60):
                wire.produce_values(TOPIC, b"x" * 100_000)
            producer = Producer(broker.bootstrap_servers, TOPIC, 0, codec=0)
            producer.producer_id = new_producer_id(wire)
            [writing] = run_all([producer], enough)
            wait_until(lambda: len(producer.acknowledged) > 20, "the producer")
            assert alter(wire, tmp_path / "b", TOPIC, 0) == [0]
            wait_until(lambda: moment(broker), moment.__name__)
        broker.kill()
        writing.join(READY_S)
        broker.start()
        with WireClient(broker.bootstrap_servers) as wire:
            change(wire, BROKER, "", (RATE, DELETE, None))
            await_move(wire, TOPIC, 0, "b")
            found = stored(wire, TOPIC, 0)
            lost = [offset for value, offset in producer.acknowledged.items() if found.get(offset) != value]
            assert not lost
            assert list(found) == list(range(len(found)))
            producer.produce(wire)  # what was not answered, once
            assert len(set(stored(wire, TOPIC, 0).values())) == len(stored(wire, TOPIC, 0)) - 59
            wait_until(lambda: not marks(broker), "the mark of the move to go")
        assert "Traceback" not in broker.output()


@pytest.mark.parametrize("synced_after", [1 << 40, 1], ids=["unsynced", "synced"])
def test_moves_to_and_fro_under_load(tmp_path: Path, synced_after: int) -> None:
    more = {"log_flush_interval_messages": str(synced_after)}
    with running(tmp_path, log_segment_bytes=str(MIB), **more) as broker:
        enough = threading.Event()
        with WireClient(broker.bootstrap_servers) as wire:
            alter(wire, tmp_path / "data", TOPIC, 0)
            wire.create_topic(TOPIC)
            producer = Producer(broker.bootstrap_servers, TOPIC, 0, codec=0)
            producer.producer_id = new_producer_id(wire)
            [writing] = run_all([producer], enough)
            for name in ("b", "c", "data", "c"):
                begun = len(producer.acknowledged)
                assert alter(wire, tmp_path / name, TOPIC, 0) == [0]
                await_move(wire, TOPIC, 0, name)
                wait_until(lambda begun=begun: len(producer.acknowledged) > begun + 30, "the producer")
            enough.set()
            writing.join(READY_S)
            found = stored(wire, TOPIC, 0)
            assert {value: offset for offset, value in found.items()} == producer.acknowledged
        assert "Traceback" not in broker.output()


def test_offsets_are_committed_while_their_log_moves(tmp_path: Path) -> None:
    log_name = "__consumer_offsets"
    with running(tmp_path, offsets_topic_num_partitions="1") as broker:
        with WireClient(broker.bootstrap_servers) as wire:
            wire.create_topic(TOPIC)
            await_coordinator(wire, "g")
            committed = 0
            for name in ("b", "c", "data"):
                assert alter(wire, tmp_path / name, log_name, 0) == [0]
                while places(wire, log_name)[0] != name:
                    committed += 1
                    assert commit(wire, "g", {TOPIC: [partition(0, committed)]}) == {TOPIC: [(0, 0)]}
                for _ in range(5):
                    committed += 1
                    assert commit(wire, "g", {TOPIC: [partition(0, committed)]}) == {TOPIC: [(0, 0)]}
            assert fetch(wire, "g", {TOPIC: [0]})[TOPIC][0][1] == committed
        broker.kill()
        broker.start()
        with WireClient(broker.bootstrap_servers) as wire:
            await_coordinator(wire, "g")
            assert fetch(wire, "g", {TOPIC: [0]})[TOPIC][0][1] == committed
            break_dir(tmp_path / places(wire, log_name)[0])
            wait_until(lambda: coordinator_error(wire, "g"), "the coordinator to go")
            assert coordinator_error(wire, "g") == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert "Traceback" not in broker.output()


def coordinator_error(wire: WireClient, group: str) -> int:
    asked = m.FindCoordinatorRequest(key_type=0, coordinator_keys=[group])
    return int(wire.send(asked, 4).coordinators[0].error_code)


# --- directories that fail


def test_missing_at_the_start_it_is_offline_and_not_made_anew(tmp_path: Path) -> None:
    with running(tmp_path) as broker:
        with WireClient(broker.bootstrap_servers) as wire:
            one_in_each(broker, wire)
        broker.stop()
        (tmp_path / "c").rename(tmp_path / "unmounted")
        broker.start()
        assert not (tmp_path / "c").exists()
        with WireClient(broker.bootstrap_servers) as wire:
            assert described(wire)["c"].error_code == STORAGE_ERROR
            answers = [wire.fetch(TOPIC, 0, index).error_code for index in range(3)]
            assert answers == [0, 0, STORAGE_ERROR]
            told = wire.metadata(TOPIC).topics[0].partitions[2]
            assert (told.leader_id, told.offline_replicas) == (-1, [1])
            wire.create_topic("new", 4)
            assert set(places(wire, "new").values()) == {"data", "b"}
        broker.stop()
        (tmp_path / "unmounted").rename(tmp_path / "c")
        broker.start()
        with WireClient(broker.bootstrap_servers) as wire:
            assert places(wire, TOPIC) == dict(enumerate(NAMES))
            assert len(wire.stored_batches(TOPIC, 2)) == 1
        assert "Traceback" not in broker.output()


def test_a_new_directory_is_taken_into_use_once_it_is_made(tmp_path: Path) -> None:
    with running(tmp_path) as broker:
        broker.stop()
        broker.overrides["log.dirs"] += f",{tmp_path / 'd'}"
        (tmp_path / "d").mkdir()
        broker.start()
        with WireClient(broker.bootstrap_servers) as wire:
            wire.create_topic(TOPIC, 4)
            assert sorted(places(wire, TOPIC).values()) == ["b", "c", "d", "data"]
            assert (tmp_path / "d" / "meta.properties").exists()


def test_the_target_of_a_move_fails_and_the_partition_is_served_where_it_was(tmp_path: Path) -> None:
    with running(tmp_path) as broker, WireClient(broker.bootstrap_servers) as wire:
        one_in_each(broker, wire)
        assert change(wire, BROKER, "", (RATE, SET, "1")) == 0
        wire.produce_values(TOPIC, b"x" * 1000)
        assert alter(wire, tmp_path / "b", TOPIC, 0) == [0]
        break_dir(tmp_path / "b")
        wait_until(lambda: described(wire)["b"].error_code, "the failure")
        assert places(wire, TOPIC) == {0: "data", 2: "c"}
        wire.produce_values(TOPIC, b"still")
        assert change(wire, BROKER, "", (RATE, DELETE, None)) == 0
        assert alter(wire, tmp_path / "c", TOPIC, 0) == [0]
        await_move(wire, TOPIC, 0, "c")
        assert len(wire.stored_batches(TOPIC)) == 3
        said = broker.output()
        assert f"Stopping serving logs in dir {tmp_path / 'b'}" in said
        assert "Logs for partitions t-1 are offline and logs for future partitions t-0 are offline" in said
        assert "Traceback" not in said


def test_the_metadata_directory_fails_and_the_broker_ends(tmp_path: Path) -> None:
    with running(tmp_path) as broker:
        broker.stop()
        (tmp_path / "metadata" / "ottla-metadata.sqlite").rename(tmp_path / "data" / "ottla-metadata.sqlite")
        del broker.overrides["metadata.log.dir"]
        broker.start()
        with WireClient(broker.bootstrap_servers) as wire:
            one_in_each(broker, wire)
        break_dir(tmp_path / "data")
        assert broker.process is not None
        assert broker.process.wait(READY_S) == 1
        broker.process = None
        assert (
            f"Shutdown broker because the metadata log dir {tmp_path / 'data'} has failed" in broker.output()
        )
        mend_dir(tmp_path / "data")
        broker.start()
        with WireClient(broker.bootstrap_servers) as wire:
            assert places(wire, TOPIC) == dict(enumerate(NAMES))


# --- file systems of the test's own


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system, where the third log directory lies."""
    mounted = tmp_path / "disk"
    mounted.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={8 * MIB}", "tmpfs", str(mounted)], check=True)
    (tmp_path / "c").symlink_to(mounted / "logs")
    (mounted / "logs").mkdir()
    yield mounted
    subprocess.run(["umount", "-l", str(mounted)], check=True)


if may_mount():

    def test_one_of_several_disks_is_full_for_a_while(tmp_path: Path, disk: Path) -> None:
        (disk / "ballast").write_bytes(bytes(4 * MIB))
        with running(tmp_path, log_segment_bytes=str(MIB)) as broker:
            with WireClient(broker.bootstrap_servers) as wire:
                one_in_each(broker, wire)
                batch = lambda: build_batch([Record(0, 1_700_000_000_000, None, b"z" * 100_000, ())])  # noqa: E731
                codes = [wire.produce(TOPIC, batch(), 2).error_code for _ in range(60)]
                assert codes[0] == 0
                assert codes[-1] == STORAGE_ERROR
                assert set(codes) == {0, STORAGE_ERROR}
                assert described(wire)["c"].error_code == 0
                assert wire.produce(TOPIC, batch(), 1).error_code == 0
                taken = len(stored(wire, TOPIC, 2))
                assert taken == 2 + codes.count(0)
                assert wire.produce(TOPIC, batch(), 0).error_code == 0
                assert alter(wire, tmp_path / "c", TOPIC, 0)[0] in (0, STORAGE_ERROR)
                (disk / "ballast").unlink()
                assert wire.produce(TOPIC, batch(), 2).error_code == 0
                assert alter(wire, tmp_path / "c", TOPIC, 0) == [0]
                await_move(wire, TOPIC, 0, "c")  # a move that waited for room has gone on
            said = broker.output()
            assert "offline" not in said
            assert "Traceback" not in said

    @contextmanager
    def read_only(path: Path) -> Iterator[None]:
        """A read-only view of a directory in its place; what is open already stays writable."""
        subprocess.run(["mount", "--bind", str(path), str(path)], check=True)
        subprocess.run(["mount", "-o", "remount,bind,ro", str(path)], check=True)
        try:
            yield
        finally:
            subprocess.run(["umount", "-l", str(path)], check=True)

    def test_a_disk_that_becomes_read_only_is_offline_until_it_is_not(tmp_path: Path, disk: Path) -> None:
        with running(tmp_path) as broker:
            with WireClient(broker.bootstrap_servers) as wire:
                one_in_each(broker, wire)
                with read_only(disk / "logs"):
                    wait_until(lambda: described(wire)["c"].error_code, "the failure")
                    answers = [wire.fetch(TOPIC, 0, index).error_code for index in range(3)]
                    assert answers == [0, 0, STORAGE_ERROR]
                    wire.produce_values(TOPIC, b"still", partition=1)
            assert "Read-only file system" in broker.output()
            broker.stop()
            with read_only(disk / "logs"):
                broker.start()  # the other directories are enough
                with WireClient(broker.bootstrap_servers) as wire:
                    assert described(wire)["c"].error_code == STORAGE_ERROR
                    wire.produce_values(TOPIC, b"still", partition=1)
                broker.stop()
            broker.start()
            with WireClient(broker.bootstrap_servers) as wire:
                assert len(wire.stored_batches(TOPIC, 2)) == 1
                assert len(wire.stored_batches(TOPIC, 1)) == 3
            assert "Traceback" not in broker.output()
