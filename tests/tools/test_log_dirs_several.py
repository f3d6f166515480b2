"""`ottla log-dirs` beside LogDirsCommand on brokers with several directories: a move, a failure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance.test_configs import BROKER, DELETE, SET, change
from tests.support.broker_settings import await_setting
from tests.support.kafka_process import KafkaProcess
from tests.support.log_dirs import alter, await_move, break_dir, described, lies, settings
from tests.support.ottla_process import OttlaProcess
from tests.support.tools import assert_alike
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

TOPIC = "several"
RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
Broker = OttlaProcess | KafkaProcess


@pytest.fixture(params=[OttlaProcess, pytest.param(KafkaProcess, marks=pytest.mark.kafka)])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Partition 0 lies in `data` with five batches."""
    directory = tmp_path_factory.mktemp("several")
    with request.param(overrides=settings(directory), directory=directory) as running:
        with WireClient(running.bootstrap_servers) as wire:
            alter(wire, directory / "data", TOPIC, 0)
            wire.create_topic(TOPIC)
            wait_until(lambda: lies(wire, TOPIC), "the log")
            for _ in range(5):
                wire.produce_values(TOPIC, b"x" * 1000)
        yield running


def printed(broker: Broker) -> dict[str, dict[str, Any]]:
    """What both tools say, by the directory's name; they must say the same."""
    at = ("--describe", "--bootstrap-server", broker.bootstrap_servers, "--topic-list", TOPIC)
    return rows_of(assert_alike(lambda done: (done.returncode, rows_of(done.stdout)), "log-dirs", *at))


def rows_of(printed: str) -> dict[str, dict[str, Any]]:
    [of_broker] = json.loads(printed.splitlines()[-1])["brokers"]
    return {row["logDir"].rpartition("/")[2]: row for row in of_broker["logDirs"]}


def test_a_copy_is_told_as_future_with_its_lag(broker: Broker) -> None:
    with WireClient(broker.bootstrap_servers) as wire:
        assert change(wire, BROKER, "1", (RATE, SET, "1")) == 0
        await_setting(wire, RATE, "1")
        wire.produce_values(TOPIC, b"first")
        assert alter(wire, broker.directory / "b", TOPIC, 0) == [0]
        wait_until(lambda: len(lies(wire, TOPIC)[0]) == 2, "the copy")
        rows = printed(broker)
        [log] = rows["data"]["partitions"]
        [copy] = rows["b"]["partitions"]
        assert (log["isFuture"], log["offsetLag"], log["partition"]) == (False, 0, f"{TOPIC}-0")
        assert (copy["isFuture"], copy["partition"]) == (True, f"{TOPIC}-0")
        assert 0 <= copy["offsetLag"] <= 6
        assert change(wire, BROKER, "1", (RATE, DELETE, None)) == 0


def test_a_failed_directory_is_told_with_its_error(broker: Broker) -> None:
    with WireClient(broker.bootstrap_servers) as wire:
        assert alter(wire, broker.directory / "c", TOPIC, 0) == [0]
        await_move(wire, TOPIC, 0, "c")
        break_dir(broker.directory / "c")
        wait_until(lambda: described(wire)["c"].error_code, "the failure")
    rows = printed(broker)
    assert rows["c"]["error"] == "org.apache.kafka.common.errors.KafkaStorageException"
    assert rows["c"]["partitions"] == []
    assert [rows[name]["error"] for name in ("data", "b")] == [None, None]
