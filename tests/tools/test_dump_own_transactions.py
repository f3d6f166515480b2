"""What our coordinators write of transactions, read by Kafka's DumpLogSegments and by `ottla dump-log`.

At each level of the feature transaction.version: a transaction with a group's offset that is committed, and
one that is aborted. Both tools print the same lines, and the lines say what was done.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from tests.support.ottla_process import OttlaProcess
from tests.support.tools import assert_same, ottla_tool
from tests.support.transactions import OPENING, TxnProducer, until_settled
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

pytestmark = pytest.mark.kafka

LEVELS = (2, 1, 0)
TOPIC = "dumped"
STATE, OFFSETS = "__transaction_state", "__consumer_offsets"
FEATURE = "transaction.version"
OWN_EPOCHS = 2  # the level from which each transaction has an epoch of its own
JSON_LINE = re.compile(r"^\| offset: (\d+) .*? key: (\{.*?\}) payload: (\{.*\})$", re.M)


@dataclass
class Done:
    """What a producer has become at one level: its id, and the epoch in which it began."""

    name: str
    producer_id: int
    epoch: int


@dataclass
class Broker:
    """A broker, and what was done on it at each level."""

    process: OttlaProcess
    done: dict[int, Done]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """One whose coordinators have one partition each."""
    settings = {"transaction.state.log.num.partitions": "1", "offsets.topic.num.partitions": "1"}
    with OttlaProcess(settings) as process, WireClient(process.bootstrap_servers) as wire:
        wire.create_topic(TOPIC)
        request = m.FindCoordinatorRequest(key=group(LEVELS[0]), key_type=0)
        wait_until(lambda: wire.send(request, 3).error_code == ErrorCode.NONE, "the coordinator of groups")
        yield Broker(process, {level: run_at(process, wire, level) for level in LEVELS})


def run_at(process: OttlaProcess, wire: WireClient, level: int) -> Done:
    """One transaction is committed and another one aborted, with the level that the feature has then."""
    if level != LEVELS[0]:
        wanted = ("--feature", f"{FEATURE}={level}")
        moved = ottla_tool("features", "--bootstrap-server", process.bootstrap_servers, "downgrade", *wanted)
        assert moved.returncode == 0, moved.stdout + moved.stderr
    producer = TxnProducer(wire, f"level-{level}").init()
    done = Done(producer.id, producer.producer_id, producer.epoch)
    for offset, commit in ((level + 10, True), (level + 20, False)):
        assert producer.reach_add((TOPIC, 0)) == ErrorCode.NONE
        assert producer.produce(TOPIC, b"v") == ErrorCode.NONE
        assert producer.add_offsets(group(level)) == ErrorCode.NONE
        commit_offset = partial(producer.commit_offset, group(level), (TOPIC, 0), offset)
        assert until_settled(commit_offset, *OPENING) == ErrorCode.NONE
        assert producer.end(commit, version=5 if level >= OWN_EPOCHS else 4) == ErrorCode.NONE
        producer.await_state("CompleteCommit" if commit else "CompleteAbort")
    return done


def group(level: int) -> str:
    return f"group-{level}"


def dumped(broker: Broker, topic: str, decoder: str, folder: Path) -> str:
    """What both tools print of the topic's log, the same."""
    copy = shutil.copy(broker.process.log_dir / f"{topic}-0" / f"{0:020}.log", folder)
    printed = assert_same("dump-log", "--files", str(copy), decoder)
    assert "skipping" not in printed
    return printed


def decoded(printed: str) -> list[tuple[int, dict[str, Any], dict[str, Any]]]:
    """Offset, key and value of each record."""
    return [
        (int(offset), json.loads(key), json.loads(value)) for offset, key, value in JSON_LINE.findall(printed)
    ]


@pytest.mark.parametrize("level", LEVELS)
def test_states_are_told_as_they_came(broker: Broker, level: int, tmp_path: Path) -> None:
    done = broker.done[level]
    printed = dumped(broker, STATE, "--transaction-log-decoder", tmp_path)
    values = [value for _, key, value in decoded(printed) if key["data"] == {"transactionalId": done.name}]
    assert {value["version"] for value in values} == {"1" if level else "0"}
    data, both = [(TOPIC, [0])], [(OFFSETS, [0]), (TOPIC, [0])]
    own = level >= OWN_EPOCHS  # each decision raises the epoch
    first, second, third = (done.epoch + own * number for number in range(3))
    assert [told(value["data"]) for value in values] == [
        ("Empty", first, []),
        ("Ongoing", first, data),
        ("Ongoing", first, both),
        ("PrepareCommit", second, both),
        ("CompleteCommit", second, []),
        ("Ongoing", second, data),
        ("Ongoing", second, both),
        ("PrepareAbort", third, both),
        ("CompleteAbort", third, []),
    ]
    assert {value["data"]["producerId"] for value in values} == {done.producer_id}
    assert {value["data"]["transactionTimeoutMs"] for value in values} == {60_000}


def told(data: dict[str, Any]) -> tuple[str, int, list[tuple[str, list[int]]]]:
    partitions = [(each["topic"], each["partitionIds"]) for each in data["transactionPartitions"] or ()]
    return data["transactionStatus"], data["producerEpoch"], sorted(partitions)


@pytest.mark.parametrize("level", LEVELS)
def test_offsets_are_told_with_their_markers(broker: Broker, level: int, tmp_path: Path) -> None:
    done = broker.done[level]
    printed = dumped(broker, OFFSETS, "--offsets-decoder", tmp_path)
    commits = [
        (value["data"]["offset"])
        for _, key, value in decoded(printed)
        if key["data"] == {"group": group(level), "topic": TOPIC, "partition": 0}
    ]
    assert commits == [level + 10, level + 20]
    batches = [line for line in printed.splitlines() if f" producerId: {done.producer_id} " in line]
    assert [("isControl: true" in line, "isTransactional: true" in line) for line in batches] == [
        (False, True), (True, True), (False, True), (True, True)
    ]  # fmt: skip
    ends = re.findall(r"endTxnMarker: (\w+) coordinatorEpoch: 0", printed)
    assert ends == ["COMMIT", "ABORT"] * len(LEVELS)
