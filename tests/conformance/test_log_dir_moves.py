"""Several log directories: placement, moves between them, cordons (KIP-113, KIP-1066; storage.md 1.10)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from tests.conformance.test_configs import BROKER, SET, change
from tests.support.kafka_process import KafkaProcess
from tests.support.log_dirs import NAMES, alter, await_move, described, lies, places, settings
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient


@pytest.fixture(scope="module", params=[OttlaProcess, pytest.param(KafkaProcess, marks=pytest.mark.kafka)])
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OttlaProcess | KafkaProcess]:
    directory = tmp_path_factory.mktemp("dirs")
    with request.param(overrides=settings(directory), directory=directory) as running:
        yield running


@pytest.fixture
def wire(broker: OttlaProcess | KafkaProcess) -> Iterator[WireClient]:
    with WireClient(broker.bootstrap_servers) as client:
        yield client


def made(wire: WireClient, name: str, partitions: int) -> dict[int, str]:
    """A new topic; where its partitions lie."""
    wire.create_topic(name, partitions)
    wait_until(lambda: len(lies(wire, name)) == partitions, f"the logs of {name}")
    return places(wire, name)


def test_new_partitions_go_where_the_fewest_are(wire: WireClient, name: str) -> None:
    before = {each: sum(len(t.partitions) for t in row.topics) for each, row in described(wire).items()}
    assert set(before) == set(NAMES)
    made(wire, name, 6)
    after = {each: sum(len(t.partitions) for t in row.topics) for each, row in described(wire).items()}
    assert sum(after.values()) - sum(before.values()) == 6
    assert max(after.values()) - min(after.values()) <= max(1, max(before.values()) - min(before.values()))


@pytest.mark.parametrize("version", [1, 2])
def test_a_place_may_be_chosen_before_there_is_a_partition(
    wire: WireClient, broker: OttlaProcess | KafkaProcess, name: str, version: int
) -> None:
    for directory in ("b", "c"):
        asked = alter(wire, broker.directory / directory, name, 0, 1, version=version)
        assert asked == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
    assert made(wire, name, 2) == {0: "c", 1: "c"}


def test_a_partition_moves_with_its_records_and_is_served_meanwhile(
    wire: WireClient, broker: OttlaProcess | KafkaProcess, name: str
) -> None:
    [source] = made(wire, name, 1).values()
    for _ in range(20):
        wire.produce_values(name, b"x" * 1000, b"y" * 500)
    stored = wire.stored_batches(name)
    [before] = lies(wire, name)[0]
    assert (before.size, before.lag, before.is_future) == (sum(map(len, stored)), 0, False)
    for target in [each for each in NAMES if each != source] + [source]:
        assert alter(wire, broker.directory / target, name, 0) == [0]
        assert alter(wire, broker.directory / target, name, 0) == [0]  # again: it goes there already
        wire.produce_values(name, b"meanwhile")
        await_move(wire, name, 0, target)
        assert wire.stored_batches(name)[: len(stored)] == stored
    assert wire.list_offset(name, -1).offset == 43
    assert lies(wire, name)[0][0].size == sum(map(len, wire.stored_batches(name)))


def test_deleted_records_stay_deleted(
    wire: WireClient, broker: OttlaProcess | KafkaProcess, name: str
) -> None:
    [source] = made(wire, name, 1).values()
    for _ in range(3):
        wire.produce_values(name, b"a", b"b", b"c")
    Trim = m.DeleteRecordsRequest
    places_ = [Trim.DeleteRecordsPartition(partition_index=0, offset=4)]
    request = Trim(topics=[Trim.DeleteRecordsTopic(name=name, partitions=places_)], timeout_ms=30_000)
    assert wire.send(request, 2).topics[0].partitions[0].low_watermark == 4
    target = "c" if source != "c" else "b"
    assert alter(wire, broker.directory / target, name, 0) == [0]
    await_move(wire, name, 0, target)
    assert (wire.list_offset(name, -2).offset, wire.list_offset(name, -1).offset) == (4, 9)
    assert wire.fetch(name, 3).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_producers_retry_is_known_after_the_move(
    wire: WireClient, broker: OttlaProcess | KafkaProcess, name: str
) -> None:
    [source] = made(wire, name, 1).values()
    batches = [
        build_batch(
            [Record(0, 1_700_000_000_000, None, b"%d" % number, ())],
            producer_id=77,
            producer_epoch=0,
            base_sequence=number,
        )
        for number in range(4)
    ]
    for batch in batches:
        assert wire.produce(name, bytearray(batch)).error_code == 0
    target = "c" if source != "c" else "b"
    assert alter(wire, broker.directory / target, name, 0) == [0]
    await_move(wire, name, 0, target)
    for number, batch in enumerate(batches):
        answer = wire.produce(name, bytearray(batch))
        assert (answer.error_code, answer.base_offset) == (0, number)


def test_what_is_refused(wire: WireClient, broker: OttlaProcess | KafkaProcess, name: str) -> None:
    made(wire, name, 1)
    there = broker.directory / "c"
    for nowhere in (broker.directory / "d", f"{there}/", "c", ""):
        assert alter(wire, nowhere, name, 0) == [ErrorCode.LOG_DIR_NOT_FOUND]
    assert alter(wire, there, name, 1) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert alter(wire, there, "x" * 249, 0) == [ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert wire.send(m.AlterReplicaLogDirsRequest(dirs=[]), 2).results == []


def test_a_cordoned_directory_takes_nothing_new(
    wire: WireClient, broker: OttlaProcess | KafkaProcess, name: str
) -> None:
    cordoned = str(broker.directory / "b")
    assert alter(wire, cordoned, name, 0) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert change(wire, BROKER, "1", ("cordoned.log.dirs", SET, cordoned)) == 0
    wait_until(lambda: described(wire)["b"].is_cordoned, "the cordon")
    assert [described(wire)[each].is_cordoned for each in NAMES] == [False, True, False]
    assert "b" not in made(wire, f"{name}-many", 5).values()
    made(wire, name, 1)
    assert alter(wire, cordoned, f"{name}-many", 0) == [ErrorCode.INVALID_REPLICA_ASSIGNMENT]
    assert alter(wire, cordoned, f"{name}-absent", 0) == [ErrorCode.INVALID_REPLICA_ASSIGNMENT]
    assert change(wire, BROKER, "1", ("cordoned.log.dirs", SET, "*")) == 0
    wait_until(lambda: all(row.is_cordoned for row in described(wire).values()), "the cordons")
    wait_until(lambda: creation(wire, name) == ErrorCode.INVALID_REPLICATION_FACTOR, "the controller to know")
    check_nothing_is_created(wire, name)
    assert change(wire, BROKER, "1", ("cordoned.log.dirs", SET, "")) == 0
    wait_until(lambda: not described(wire)["b"].is_cordoned, "the end of the cordon")
    wait_until(lambda: creation(wire, name) == ErrorCode.NONE, "the controller to know of it")


def creation(wire: WireClient, name: str) -> int:
    """What the controller would say to a new topic: the broker tells it of its directories."""
    Create = m.CreateTopicsRequest
    topic = Create.CreatableTopic(name=f"{name}-z", num_partitions=1, replication_factor=1)
    [told] = wire.send(Create(topics=[topic], timeout_ms=30_000, validate_only=True), 7).topics
    return int(told.error_code)


def check_nothing_is_created(wire: WireClient, name: str) -> None:
    """With all directories cordoned."""
    Create, More = m.CreateTopicsRequest, m.CreatePartitionsRequest
    none_takes = "All brokers are currently fenced, or have all their log directories cordoned."
    mine_not = "The manual partition assignment includes broker 1, but all its log directories are cordoned."
    me = Create.CreatableReplicaAssignment(partition_index=0, broker_ids=[1])
    topics = [
        Create.CreatableTopic(name=f"{name}-x", num_partitions=2, replication_factor=1),
        Create.CreatableTopic(name=f"{name}-y", num_partitions=-1, replication_factor=-1, assignments=[me]),
    ]
    told = {row.name[-1]: row for row in wire.send(Create(topics=topics, timeout_ms=30_000), 7).topics}
    assert told["x"].error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert told["x"].error_message == f"Unable to replicate the partition 1 time(s): {none_takes}"
    assert told["y"].error_code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert told["y"].error_message == mine_not
    mine = [More.CreatePartitionsAssignment(broker_ids=[1])]
    for assignments, error, text in (
        (None, ErrorCode.INVALID_REPLICATION_FACTOR, none_takes),
        (mine, ErrorCode.INVALID_REPLICA_ASSIGNMENT, mine_not),
    ):
        more = More.CreatePartitionsTopic(name=name, count=2, assignments=assignments)
        [row] = wire.send(More(topics=[more], timeout_ms=30_000), 3).results
        assert (row.error_code, row.error_message) == (error, text)


def test_all_at_once(wire: WireClient, broker: OttlaProcess | KafkaProcess, name: str) -> None:
    made(wire, name, 9)
    for index in range(9):
        wire.produce_values(name, b"%d" % index, partition=index)
    for target in ("b", "c"):
        assert alter(wire, Path(broker.directory, target), name, *range(9)) == [0] * 9
        for index in range(9):
            await_move(wire, name, index, target)
    assert [wire.list_offset(name, -1, index).offset for index in range(9)] == [1] * 9
