"""`ottla dump-log --share-group-state-decoder` beside Kafka's DumpLogSegments, on share state of both."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from coordinator.placement import partition_for
from coordinator.share.records import ShareKey
from protocol import messages as m
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from tests.support.tools import assert_same, kafka_tool, ottla_tool
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

TOPIC = "__share_group_state"
GROUP = 'grüp:pe "1"\t\x1f\\'
DECODER = "--share-group-state-decoder"


def call(wire: WireClient, cls: Any, entry: str, topic_id: bytes, version: int = 0, **fields: Any) -> int:
    topic = getattr(cls, entry)(topic_id=topic_id, partitions=[cls.PartitionData(partition=0, **fields)])
    [result] = wire.send(cls(group_id=GROUP, topics=[topic]), version).results
    return int(result.partitions[0].error_code)


@pytest.fixture(scope="module")
def written() -> dict[str, str]:
    """Which brokers have share state already, and in which partition's folder."""
    return {}


@pytest.fixture
def log(either_broker, written, tmp_path) -> Path:
    """A copy of a log with a snapshot, updates and a tombstone."""
    servers = either_broker.bootstrap_servers
    if servers not in written:
        with WireClient(servers) as wire:
            topic_id = wire.create_topic("dump-share-state")
            find = m.FindCoordinatorRequest(
                key_type=2, coordinator_keys=[ShareKey(GROUP, topic_id, 0).text()]
            )
            wait_until(lambda: wire.send(find, 6).coordinators[0].error_code == 0, "a coordinator")
            write = m.WriteShareGroupStateRequest
            batches = [
                write.StateBatch(first_offset=5, last_offset=9, delivery_state=2, delivery_count=1),
                write.StateBatch(first_offset=12, last_offset=12, delivery_state=4, delivery_count=5),
            ]
            initialize = (m.InitializeShareGroupStateRequest, "InitializeStateData", topic_id)
            wait_until(
                lambda: call(wire, *initialize, start_offset=-1, state_epoch=1) == 0, "a loaded coordinator"
            )
            call(wire, m.ReadShareGroupStateRequest, "ReadStateData", topic_id, leader_epoch=2)
            fields = {"leader_epoch": 2, "state_epoch": 1, "start_offset": 5, "state_batches": batches}
            for count in (-1, 3):
                error = call(
                    wire, write, "WriteStateData", topic_id, 1, delivery_complete_count=count, **fields
                )
                assert error == 0
            call(wire, *initialize, start_offset=7, state_epoch=1)
            call(wire, m.DeleteShareGroupStateRequest, "DeleteStateData", topic_id)
            written[servers] = f"{TOPIC}-{partition_for(ShareKey(GROUP, topic_id, 0).text(), 50)}"
    copy = tmp_path / "copy"
    shutil.copytree(either_broker.log_dir / written[servers], copy)
    return copy / f"{0:020}.log"


@pytest.mark.parametrize(
    "arguments", [(), ("--print-data-log", "--deep-iteration"), ("--skip-record-metadata",)], ids=str
)
def test_share_state_is_printed_as_kafkas_tool_prints_it(log, arguments) -> None:
    printed = assert_same("dump-log", "--files", str(log), DECODER, *arguments)
    assert (
        printed.count('key: {"type":"0","data":{"groupId":"grüp:pe \\"1\\"\\t\\u001F\\\\","topicId":"') == 3
    )
    assert printed.count('payload: {"version":"0","data":{"snapshotEpoch":0,"leaderEpoch":2,') == 3
    assert printed.count('"deliveryCompleteCount":3,') == 1
    assert printed.count("payload: <DELETE>") == 1
    assert "skipping" not in printed


@pytest.mark.kafka
def test_records_that_are_not_share_state(tmp_path) -> None:
    log = tmp_path / f"{0:020}.log"
    good = b"\0\0\0\1g" + bytes(20)
    records = [Record(0, 1, b"\0\7key", b"x"), Record(1, 1, good, None), Record(2, 1, good, b"\0\5")]
    log.write_bytes(build_batch(records))
    printed = assert_same("dump-log", "--files", str(log), DECODER)
    assert "key: Unknown record type 7 at offset 0, skipping.\n" in printed
    assert "key: Error at offset 2, skipping. Found an unknown record version 5 for 0 type\n" in printed
    for bad in ((b"\0", b"x"), (good, b"\0"), (good[:-1], b"\0\0")):
        log.write_bytes(build_batch([Record(0, 1, *bad)]))
        for tool in (kafka_tool, ottla_tool):
            done = tool("dump-log", "--files", str(log), DECODER)
            assert done.returncode == 0
            assert "key: Error at offset 0, skipping. Could not read " in done.stdout
            assert "payload: " not in done.stdout


@pytest.mark.kafka
def test_records_without_a_key_end_the_dump(tmp_path) -> None:
    log = tmp_path / f"{0:020}.log"
    log.write_bytes(build_batch([Record(0, 1, None, b"x")]))
    for tool in (kafka_tool, ottla_tool):
        done = tool("dump-log", "--files", str(log), DECODER)
        assert done.returncode == 1
        assert "Failed to decode message at offset 0 using the specified decoder" in done.stdout + done.stderr
