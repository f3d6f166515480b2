"""`ottla dump-log --offsets-decoder` beside Kafka's DumpLogSegments: logs of groups, every record type."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from coordinator.placement import partition_for
from ottla.cli.record_decoders import GROUP_RECORDS
from protocol import messages as m
from protocol.consumer_blobs import encode_assignment, encode_subscription
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from protocol.records.control import build_end_marker
from protocol.schema.cache import definition
from protocol.schema.model import Field, Struct
from tests.support.tools import assert_same
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

DECODER = "--offsets-decoder"
UUID = bytes(range(1, 17))
VALUES = {
    "bool": True,
    "int8": 1,
    "int16": 2,
    "uint16": 60000,
    "int32": 3,
    "uint32": 4_000_000_000,
    "int64": 1_700_000_000_000,
    "float64": 1.5,
    "uuid": UUID,
    "string": 'tëxt "quoted"\n',
    "bytes": b"\x00\xff\x10",
}


def filled(made: Any, message: Any, struct: Struct, version: int, *, nulls: bool) -> Any:
    """A message with something other than the default in each field of its version."""
    for field in struct.fields:
        if version in field.versions:
            setattr(made, field.attribute, content(message, field, version, nulls))
    return made


def content(message: Any, field: Field, version: int, nulls: bool) -> Any:
    if nulls and version in field.nullable:
        return None
    if field.struct is not None:
        one = filled(getattr(message, field.struct.name)(), message, field.struct, version, nulls=nulls)
    else:
        one = VALUES[field.element]
    return [one] * 2 if field.is_array else one


def every_record(names: dict[int, str] = GROUP_RECORDS) -> list[Record]:
    records = []
    for kind, name in names.items():
        key_class, value_class = getattr(m, f"{name}Key"), getattr(m, f"{name}Value")
        key = filled(key_class(), key_class, definition(f"{name}Key").root, 0, nulls=False)
        key_bytes = kind.to_bytes(2, "big") + key.encode(0)
        for version in range(value_class.MIN_VERSION, value_class.MAX_VERSION + 1):
            for nulls in (False, True):
                root = definition(f"{name}Value").root
                value = filled(value_class(), value_class, root, version, nulls=nulls)
                blob = version.to_bytes(2, "big") + value.encode(version)
                records.append(Record(0, 1, key_bytes, blob, ()))
            records.append(
                Record(0, 1, key_bytes, version.to_bytes(2, "big") + value_class().encode(version), ())
            )
        records.append(Record(0, 1, key_bytes, None, ()))
    return records


def group_metadata(subscription: bytes, assignment: bytes, protocol_type: str = "consumer") -> Record:
    member = m.GroupMetadataValue.MemberMetadata(
        member_id="m", client_id="c", client_host="/h", subscription=subscription, assignment=assignment
    )
    value = m.GroupMetadataValue(protocol_type=protocol_type, protocol="range", leader="m", members=[member])
    key = m.GroupMetadataKey(group="g")
    return Record(0, 1, b"\x00\x02" + key.encode(0), b"\x00\x03" + value.encode(3), ())


def blobs() -> list[Record]:
    subscription = m.ConsumerProtocolSubscription(
        topics=["t", "u"],
        user_data=b"\x01\x02",
        owned_partitions=[m.ConsumerProtocolSubscription.TopicPartition(topic="t", partitions=[0, 2])],
        generation_id=7,
        rack_id="r",
    )
    assignment = m.ConsumerProtocolAssignment(
        assigned_partitions=[m.ConsumerProtocolAssignment.TopicPartition(topic="t", partitions=[1])]
    )
    records = [
        group_metadata(encode_subscription(subscription, version), encode_assignment(assignment, version))
        for version in range(4)
    ]
    good = encode_assignment(assignment, 3)
    return [
        *records,
        group_metadata(b"", b""),
        group_metadata(b"\x00", good),
        group_metadata(b"\x00\x01\x00\x00", good),
        group_metadata(b"\x00\x01\x02", b"\x03", "connect"),
    ]


def broken() -> list[Record]:
    commit = b"\x00\x01" + m.OffsetCommitKey(group="g", topic="t", partition=1).encode(0)
    return [
        Record(0, 1, b"\x00\x63rest", b"\x00\x00", ()),
        Record(0, 1, b"\x00\x09", None, ()),
        Record(0, 1, b"\x00", None, ()),
        Record(0, 1, commit, b"\x00", ()),
        Record(0, 1, commit, b"\x00\x63\x00", ()),
    ]


def written(folder: Path, records: list[Record]) -> Path:
    log = folder / f"{0:020}.log"
    log.write_bytes(
        b"".join(bytes(build_batch([record], base_offset=at)) for at, record in enumerate(records))
    )
    return log


@pytest.mark.kafka
@pytest.mark.parametrize("make", [every_record, blobs, broken], ids=lambda make: make.__name__)
def test_records_of_every_type_and_version_are_printed_as_kafkas_tool_prints_them(tmp_path, make) -> None:
    records = make()
    printed = assert_same("dump-log", "--files", str(written(tmp_path, records)), DECODER)
    assert printed.count("\n| offset: ") == len(records)


@pytest.mark.kafka
def test_transactional_commits_and_bare_records_are_printed_as_kafkas_tool_prints_them(tmp_path) -> None:
    log = tmp_path / f"{0:020}.log"
    marker = {"producer_id": 5, "producer_epoch": 1, "coordinator_epoch": 3, "timestamp": 17}
    records = [*blobs()[:1], *broken()[:1]]
    batch = build_batch(records, producer_id=5, producer_epoch=1, base_sequence=0, transactional=True)
    log.write_bytes(bytes(batch) + bytes(build_end_marker(True, base_offset=2, **marker)))
    for arguments in ((), ("--skip-record-metadata",), ("--print-data-log", "--deep-iteration")):
        assert_same("dump-log", "--files", str(log), DECODER, *arguments)


GROUPS = {"dump-classic": {}, "dump-consumer": {"group.protocol": "consumer"}}


def fill(address: str, group: str, settings: dict[str, str]) -> None:
    """One member reads a record, commits and leaves."""
    producer = Producer({"bootstrap.servers": address})
    producer.produce(f"{group}-topic", b"x")
    producer.flush()
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
    )
    consumer.subscribe([f"{group}-topic"])
    read = []

    def one() -> bool:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            read.append(message)
        return bool(read)

    wait_until(one, "a record")
    consumer.commit(asynchronous=False)
    consumer.close()


@pytest.mark.parametrize("group", GROUPS)
def test_logs_of_groups_are_printed_as_kafkas_tool_prints_them(either_broker, tmp_path, group) -> None:
    address = either_broker.bootstrap_servers
    with WireClient(address) as wire:
        wire.create_topic(f"{group}-topic", 2)
    fill(address, group, GROUPS[group])
    folder = either_broker.log_dir / f"__consumer_offsets-{partition_for(group, 50)}"
    for log in sorted(folder.glob("*.log")):
        shutil.copy(log, tmp_path)
        printed = assert_same("dump-log", "--files", str(tmp_path / log.name), DECODER)
        assert f'"group":"{group}","topic":"{group}-topic"' in printed
        assert "skipping" not in printed
