"""Records of __share_group_state, byte for byte."""

from __future__ import annotations

import pytest

from coordinator.share.batches import StateBatch
from coordinator.share.records import (
    ShareKey,
    read_key,
    read_snapshot,
    read_update,
    record_type,
    snapshot_record,
    tombstone,
    update_record,
)
from coordinator.share.state import ShareState
from protocol.errors import MalformedMessage

TOPIC_ID = bytes(range(16))
KEY = ShareKey("grp", TOPIC_ID, 7)
STATE = ShareState(
    snapshot_epoch=1,
    state_epoch=2,
    leader_epoch=3,
    start_offset=4,
    complete_count=5,
    batches=(StateBatch(6, 7, 2, 1),),
    create_ms=8,
    write_ms=9,
)


def i32(number: int) -> bytes:
    return number.to_bytes(4, "big", signed=True)


def i64(number: int) -> bytes:
    return number.to_bytes(8, "big", signed=True)


BATCH = i64(6) + i64(7) + b"\x02" + b"\0\1" + b"\0"
COMPLETE_COUNT = b"\x01\x00\x04" + i32(5)
"""One tagged field, number 0, of four bytes."""


def test_a_snapshot() -> None:
    record = snapshot_record(KEY, STATE)
    assert record.key == b"\0\0" + b"\0\3grp" + TOPIC_ID + i32(7)
    assert record.value == (
        b"\0\0" + i32(1) + i32(2) + i32(3) + i64(4) + i64(8) + i64(9) + b"\x02" + BATCH + COMPLETE_COUNT
    )
    read = read_snapshot(record.value)
    assert read is not None
    assert (read.state_epoch, read.delivery_complete_count) == (2, 5)


def test_an_update() -> None:
    record = update_record(KEY, STATE)
    assert record.key == b"\0\1" + b"\0\3grp" + TOPIC_ID + i32(7)
    assert record.value == b"\0\0" + i32(1) + i32(3) + i64(4) + b"\x02" + BATCH + COMPLETE_COUNT
    read = read_update(record.value)
    assert read is not None
    assert read.leader_epoch == 3


def test_a_tombstone_has_the_key_of_a_snapshot() -> None:
    assert tombstone(KEY) == (snapshot_record(KEY, STATE).key, None)


def test_keys_and_values_of_other_versions() -> None:
    record = snapshot_record(KEY, STATE)
    assert read_key(record.key) == KEY
    assert record_type(record.key) == 0
    assert read_snapshot(b"\0\1") is None
    assert read_update(b"\0\1") is None
    with pytest.raises(MalformedMessage):
        record_type(b"\0")
    with pytest.raises(MalformedMessage):
        read_key(record.key[:-1])
    with pytest.raises(MalformedMessage):
        read_snapshot((record.value or b"")[:-9])


def test_what_is_hashed() -> None:
    assert KEY.text() == "grp:AAECAwQFBgcICQoLDA0ODw:7"
