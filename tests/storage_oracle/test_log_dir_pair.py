"""Log directories go from Apache Kafka to us, partitions move from one to the other, and Kafka goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.entropy import SeededRandom
from runtime.os_files import OsFileSystem
from storage.log_config import LogConfig
from storage.log_dirs import read_meta
from storage.log_manager import LogManager
from tests.support.kafka_process import KafkaProcess
from tests.support.log_dirs import alter, await_move, lies, places, settings
from tests.support.logs import FixedClock
from tests.support.moves import begin_move, change_over, copy_some, hosted
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.kafka
TOPIC = "pair"
CONFIG = LogConfig(segment_bytes=1 << 20)


def ours(kafka: KafkaProcess) -> LogManager:
    files, paths = OsFileSystem(), [str(kafka.directory / name) for name in ("data", "b", "c")]
    meta = read_meta(files, f"{paths[0]}/meta.properties")
    assert meta is not None
    manager = LogManager(files, FixedClock(), SeededRandom(b"pair"), paths, lambda topic: CONFIG)
    manager.open(meta.cluster_id, meta.node_id)
    manager.load()
    assert not manager.unclean
    return manager


def serves(wire: WireClient, index: int) -> bool:
    return bool(wire.list_offset(TOPIC, -1, index).error_code == 0)


def test_moves_of_either_broker_are_understood_by_the_other(tmp_path: Path) -> None:
    with KafkaProcess(overrides=settings(tmp_path), directory=tmp_path) as kafka:
        with WireClient(kafka.bootstrap_servers) as wire:
            for index, name in enumerate(("data", "b")):
                alter(wire, tmp_path / name, TOPIC, index)
            wire.create_topic(TOPIC, 2)
            wait_until(lambda: len(lies(wire, TOPIC)) == 2, "the logs")
            for index in range(2):
                for number in range(30):
                    wire.produce_values(TOPIC, b"%d" % number * 1000, partition=index)
            stored = [wire.stored_batches(TOPIC, index) for index in range(2)]
            assert alter(wire, tmp_path / "c", TOPIC, 1) == [0]
            await_move(wire, TOPIC, 1, "c")
        kafka.stop()

        manager, clock = ours(kafka), FixedClock()
        moved = manager.get(TOPIC, 1)
        assert moved is not None
        assert moved.local.directory == str(tmp_path / "c" / f"{TOPIC}-1")
        log = manager.get(TOPIC, 0)
        assert log is not None
        change_over(begin_move(manager, hosted(log), manager.dirs[1], clock))
        begun = begin_move(manager, hosted(moved), manager.dirs[0], clock)
        assert copy_some(begun, 5000)
        manager.close()

        kafka.start()
        with WireClient(kafka.bootstrap_servers) as wire:
            wait_until(lambda: serves(wire, 0) and serves(wire, 1), "Kafka to lead its partitions")
            await_move(wire, TOPIC, 1, "data")  # Kafka goes on with what we began
            assert places(wire, TOPIC) == {0: "b", 1: "data"}
            assert [wire.stored_batches(TOPIC, index) for index in range(2)] == stored
            wire.produce_values(TOPIC, b"more", partition=0)
        kafka.stop()

        manager = ours(kafka)
        found = {log.name: log.local.directory for log in manager if log.topic == TOPIC}
        assert found == {
            f"{TOPIC}-0": str(tmp_path / "b/pair-0"),
            f"{TOPIC}-1": str(tmp_path / "data/pair-1"),
        }
        assert len(manager.futures) == 0
        manager.close()
