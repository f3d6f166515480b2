"""A log directory fails while the broker runs: the others serve, clients hear 56 (KIP-112; storage.md 6.11).

One broker of each kind goes through it, step by step: the tests of this module build on each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from tests.support.kafka_process import KafkaProcess
from tests.support.log_dirs import NAMES, alter, break_dir, described, lies, mend_dir, places, settings
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

Broker = OttlaProcess | KafkaProcess
STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR
TOPIC, FAILED = "spread", "c"
VALUE = 500


@pytest.fixture(scope="module", params=[OttlaProcess, pytest.param(KafkaProcess, marks=pytest.mark.kafka)])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Three partitions, one in each directory, with two batches each; then the last directory has failed."""
    directory = tmp_path_factory.mktemp("failing")
    with request.param(overrides=settings(directory), directory=directory) as running:
        with WireClient(running.bootstrap_servers) as wire:
            for index, name in enumerate(NAMES):
                alter(wire, directory / name, TOPIC, index)
            wire.create_topic(TOPIC, 3)
            wait_until(lambda: places(wire, TOPIC) == dict(enumerate(NAMES)), "the partitions")
            for index in range(3):
                for _ in range(2):
                    wire.produce_values(TOPIC, b"x" * VALUE, partition=index)
            break_dir(directory / FAILED)
            wait_until(lambda: described(wire)[FAILED].error_code, "the directory to fail")
            wait_until(lambda: partitions(wire)[2].leader_id == -1, "the metadata")
        yield running


@pytest.fixture
def wire(broker: Broker) -> Iterator[WireClient]:
    with WireClient(broker.bootstrap_servers) as client:
        yield client


def partitions(wire: WireClient) -> list[Any]:
    return sorted(wire.metadata(TOPIC).topics[0].partitions, key=lambda each: each.partition_index)


def test_it_is_described_with_56_and_nothing_in_it(wire: WireClient) -> None:
    rows = described(wire)
    assert [rows[name].error_code for name in NAMES] == [0, 0, STORAGE_ERROR]
    failed = rows[FAILED]
    assert (failed.topics, failed.total_bytes, failed.usable_bytes) == ([], -1, -1)
    assert lies(wire, TOPIC).keys() == {0, 1}
    for version in range(1, 5):
        assert described(wire, version)[FAILED].error_code == STORAGE_ERROR


def test_metadata_tells_no_leader_and_an_offline_replica(wire: WireClient) -> None:
    healthy, _, failed = partitions(wire)
    assert (healthy.error_code, healthy.leader_id, healthy.isr_nodes, healthy.offline_replicas) == (
        0, 1, [1], [],
    )  # fmt: skip
    assert failed.error_code == ErrorCode.LEADER_NOT_AVAILABLE
    assert (failed.leader_id, failed.replica_nodes, failed.isr_nodes) == (-1, [1], [])
    assert failed.offline_replicas == [1]
    Ask = m.DescribeTopicPartitionsRequest
    topic = wire.send(Ask(topics=[Ask.TopicRequest(name=TOPIC)]), 0).topics[0]
    told = topic.partitions[2]
    assert (told.error_code, told.leader_id, told.offline_replicas) == (0, -1, [1])
    assert (told.eligible_leader_replicas, told.last_known_elr) == ([1], [1])


def list_offsets(wire: WireClient, index: int) -> int:
    return int(wire.list_offset(TOPIC, -1, index).error_code)


def produce(wire: WireClient, index: int) -> int:
    batch = build_batch([Record(0, 1_700_000_000_000, None, b"v", ())])
    answer = wire.produce(TOPIC, batch, index)
    assert (answer.base_offset >= 0) == (answer.error_code == 0)
    return int(answer.error_code)


def fetch(wire: WireClient, index: int) -> int:
    return int(wire.fetch(TOPIC, 0, index).error_code)


def delete_records(wire: WireClient, index: int) -> int:
    Trim = m.DeleteRecordsRequest
    rows = [Trim.DeleteRecordsPartition(partition_index=index, offset=0)]
    request = Trim(topics=[Trim.DeleteRecordsTopic(name=TOPIC, partitions=rows)], timeout_ms=30_000)
    return int(wire.send(request, 2).topics[0].partitions[0].error_code)


def epoch_end(wire: WireClient, index: int) -> int:
    Ask = m.OffsetForLeaderEpochRequest
    rows = [Ask.OffsetForLeaderPartition(partition=index, leader_epoch=0)]
    request = Ask(replica_id=-1, topics=[Ask.OffsetForLeaderTopic(topic=TOPIC, partitions=rows)])
    return int(wire.send(request, 4).topics[0].partitions[0].error_code)


@pytest.mark.parametrize("ask", [produce, fetch, list_offsets, delete_records, epoch_end])
def test_its_partitions_answer_56_and_the_others_serve(
    wire: WireClient, ask: Callable[[WireClient, int], int]
) -> None:
    assert [ask(wire, index) for index in range(3)] == [0, 0, STORAGE_ERROR]


def test_the_refused_produce_says_no_more_than_the_code(wire: WireClient) -> None:
    answer = wire.produce(TOPIC, build_batch([Record(0, 1_700_000_000_000, None, b"v", ())]), 2)
    assert (answer.error_code, answer.error_message, answer.record_errors) == (STORAGE_ERROR, None, [])


def test_nothing_moves_to_it_or_from_it(wire: WireClient, broker: Broker) -> None:
    assert alter(wire, broker.directory / FAILED, TOPIC, 0) == [STORAGE_ERROR]
    assert alter(wire, broker.directory / "b", TOPIC, 2) == [STORAGE_ERROR]
    assert alter(wire, broker.directory / FAILED, "absent", 0) == [STORAGE_ERROR]


def test_new_partitions_go_elsewhere(wire: WireClient) -> None:
    wire.create_topic("new", 4)
    wait_until(lambda: len(lies(wire, "new")) == 4, "the new partitions")
    assert set(places(wire, "new").values()) == {"data", "b"}
    wire.produce_values("new", b"v", partition=3)


def test_after_a_restart_it_serves_again_with_all_its_records(broker: Broker) -> None:
    broker.kill()
    mend_dir(broker.directory / FAILED)
    broker.start()
    with WireClient(broker.bootstrap_servers) as wire:
        wait_until(lambda: list_offsets(wire, 2) == 0, "the leader")
        assert [row.error_code for row in described(wire).values()] == [0, 0, 0]
        assert places(wire, TOPIC) == dict(enumerate(NAMES))
        assert len(wire.stored_batches(TOPIC, 2)) == 2
        assert partitions(wire)[2].offline_replicas == []
        wire.produce_values(TOPIC, b"again", partition=2)


def test_the_last_one_ends_the_process_with_code_1(broker: Broker) -> None:
    for name in NAMES:
        break_dir(broker.directory / name)
    process = broker.process
    assert process is not None
    assert process.wait(60) == 1
    broker.process = None
    for name in NAMES:
        mend_dir(broker.directory / name)


def test_without_the_metadata_directory_there_is_no_broker(tmp_path: Path, broker: Broker) -> None:
    if broker.process is None:
        broker.start()
    broker.stop()
    broker.overrides["metadata.log.dir"] = str(broker.directory / "elsewhere")
    with pytest.raises(RuntimeError):
        broker.start()
