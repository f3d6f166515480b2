"""Keys and values of the newer groups' records."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.group.modern.records import (
    CONSUMER,
    SHARE,
    GroupEpoch,
    Kinds,
    TargetEpoch,
    group_epoch_record,
    group_key,
    read_group_epoch,
    read_key,
    read_target,
    read_target_epoch,
    read_value,
    record,
    target_epoch_record,
    target_record,
    tombstone,
)
from protocol import messages as m
from protocol.errors import MalformedMessage

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)


@given(TEXT, TEXT)
def test_keys_are_those_of_the_schemas(group: str, member: str) -> None:
    plain = b"\0\3" + m.ConsumerGroupMetadataKey(group_id=group).encode(0)
    assert group_key(3, group) == plain
    assert read_key(plain, named=False) == (group, "")
    named = b"\0\5" + m.ConsumerGroupMemberMetadataKey(group_id=group, member_id=member).encode(0)
    assert group_key(5, group, member) == named
    assert read_key(named, named=True) == (group, member)


@pytest.mark.parametrize(
    "key", [b"\0\3", b"\0\3\0\4ab", b"\0\5\0\1a\0", b"\0\5\0\1a\0\3b", b"\0\3\xff\xff", b"\0\3\0\1\xff"]
)
def test_keys_that_do_not_parse(key: bytes) -> None:
    with pytest.raises(MalformedMessage):
        read_key(key, named=key[1] == 5)


@pytest.mark.parametrize("kinds", [CONSUMER, SHARE])
def test_what_is_written_is_read(kinds: Kinds) -> None:
    epoch = GroupEpoch(7, -5)
    written = group_epoch_record(kinds, "g", epoch)
    assert written.key[:2] == kinds.group.to_bytes(2, "big")
    assert read_group_epoch(kinds, written.value or b"") == epoch
    target = TargetEpoch(6, 1234)
    assert read_target_epoch(kinds, target_epoch_record(kinds, "g", target).value or b"") == target
    assignment = {b"t" * 16: frozenset({3, 1})}
    written = target_record(kinds, "g", "m", assignment)
    assert read_key(written.key, named=True) == ("g", "m")
    assert read_target(kinds, written.value or b"") == assignment


def test_versions_that_are_not_known_and_tombstones() -> None:
    value = record(3, "g", None, m.ConsumerGroupMetadataValue(epoch=1)).value or b""
    assert read_value(m.ConsumerGroupMetadataValue, b"\0\1" + value[2:]) is None
    assert tombstone(5, "g", "m") == (group_key(5, "g", "m"), None)
