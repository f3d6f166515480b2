"""Keys and values of __consumer_offsets, byte for byte and through the general codecs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.group import records
from coordinator.group.records import (
    NO_LEADER_EPOCH,
    Offset,
    OffsetKey,
    UnknownRecords,
    group_record,
    key_type,
    known_offset_key,
    offset_record,
    offset_tombstones,
    read_group_key,
    read_group_value,
    read_offset_key,
    read_offset_value,
)
from protocol import messages as m
from protocol.errors import MalformedMessage

KEY = OffsetKey("g", "topic", 258)


def quiet() -> UnknownRecords:
    return UnknownRecords(lambda line: None)


def test_an_offset_is_written_at_key_1_and_value_3() -> None:
    key, value = offset_record(KEY, Offset(5, 6, "m", 7))
    assert key == b"\0\1" + b"\0\1g" + b"\0\5topic" + b"\0\0\1\2"
    assert value == b"\0\3" + (5).to_bytes(8, "big") + b"\0\0\0\6" + b"\0\1m" + (7).to_bytes(8, "big")


def test_an_expiry_time_makes_it_value_1_and_costs_the_leader_epoch() -> None:
    _, value = offset_record(KEY, Offset(5, 6, "m", 7, 8))
    numbers = [number.to_bytes(8, "big") for number in (5, 7, 8)]
    assert value == b"\0\1" + numbers[0] + b"\0\1m" + numbers[1] + numbers[2]
    assert read_offset_value(value, 3, quiet()) == Offset(5, -1, "m", 7, 8, 3)


def test_an_expiry_time_beyond_all_numbers_is_the_last_one() -> None:
    """OffsetCommit 2 to 4 may ask for a retention of 2**63 - 1 ms from now."""
    _, value = offset_record(KEY, Offset(5, 6, "m", 7, 2**63 + 7))
    assert read_offset_value(value, 3, quiet()) == Offset(5, -1, "m", 7, 2**63 - 1, 3)


def test_a_tombstone_has_the_key_alone() -> None:
    assert offset_tombstones(KEY.group, [KEY[1:]]) == [(offset_record(KEY, Offset(5, 6, "m", 7)).key, None)]


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.integers(-1, 2**63 - 1), st.integers(-1, 2**31 - 1), st.text(max_size=9), st.integers(0, 2**40))
def test_every_version_is_read(version: int, offset: int, epoch: int, text: str, commit_ms: int) -> None:
    written = m.OffsetCommitValue(
        offset=offset, leader_epoch=epoch, metadata=text, commit_timestamp=commit_ms, expire_timestamp=44
    )
    value = version.to_bytes(2, "big") + written.encode(version)
    epoch_read = epoch if version >= 3 else -1
    expiry = 44 if version == 1 else -1
    assert read_offset_value(value, 9, quiet()) == Offset(offset, epoch_read, text, commit_ms, expiry, 9)


@pytest.mark.parametrize("kind", [0, 1])
@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.text(max_size=9), st.text(max_size=9), st.integers(0, 2**31 - 1))
def test_both_key_types_are_read(kind: int, group: str, topic: str, partition: int) -> None:
    key = kind.to_bytes(2, "big") + m.OffsetCommitKey(group=group, topic=topic, partition=partition).encode(0)
    assert key_type(key) == kind
    assert read_offset_key(key) == (group, topic, partition)


def test_unknown_value_versions_are_passed_over_with_one_warning() -> None:
    lines: list[str] = []
    unknown = UnknownRecords(lines.append)
    for _ in range(3):
        assert read_offset_value(b"\0\5" + bytes(40), 0, unknown) is None
        assert read_group_value(b"\0\5" + bytes(40), unknown) is None
    assert len(lines) == 2
    assert unknown.seen == {("value version", 1, 5): 3, ("value version", 2, 5): 3}


@pytest.mark.parametrize("size", range(23))
def test_cut_values_and_keys_are_malformed(size: int) -> None:
    key, value = offset_record(KEY, Offset(5, 6, "m", 7))
    with pytest.raises(MalformedMessage):
        read_offset_value((value or b"")[:size], 0, quiet())
    with pytest.raises(MalformedMessage):
        read_offset_key(key[: min(size, len(key) - 1)])


@pytest.mark.parametrize("at", [2, 5])
def test_lengths_below_zero_are_malformed(at: int) -> None:
    key = bytearray(offset_record(KEY, Offset(5, 6, "m", 7)).key)
    key[at : at + 2] = b"\xff\xff"
    with pytest.raises(MalformedMessage):
        read_offset_key(bytes(key))


@pytest.mark.parametrize(
    "value", [b"\0\3" + bytes(12) + b"\xff\xff" + bytes(20), b"\0\0" + bytes(8) + b"\xff\xfe" + bytes(20)]
)
def test_metadata_of_a_length_below_zero_is_malformed(value: bytes) -> None:
    with pytest.raises(MalformedMessage):
        read_offset_value(value, 0, quiet())


def test_a_key_without_a_type_is_malformed() -> None:
    with pytest.raises(MalformedMessage):
        key_type(b"\0")


def test_a_group_is_written_at_version_3_and_read_back() -> None:
    value = m.GroupMetadataValue(protocol_type="consumer", generation=4, current_state_timestamp=9)
    key, written = group_record(m.GroupMetadataKey(group="g"), value)
    assert key == b"\0\2\0\1g"
    assert written is not None
    assert written[:2] == b"\0\3"
    assert read_group_key(key) == "g"
    assert read_group_value(written, quiet()) == value
    assert group_record(m.GroupMetadataKey(group="g"), None) == (key, None)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    st.sampled_from([0, 1]),
    st.text(max_size=9),
    st.text(max_size=9),
    st.integers(0, 2**31 - 1),
    st.binary(max_size=9),
)
def test_a_known_key_is_read_as_any_other(
    kind: int, group: str, topic: str, partition: int, more: bytes
) -> None:
    key = kind.to_bytes(2, "big") + m.OffsetCommitKey(group=group, topic=topic, partition=partition).encode(0)
    for _ in range(2):
        assert known_offset_key(key) == known_offset_key(key + more) == (group, topic, partition)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.binary(max_size=24).map(lambda data: b"\0\1\0" + data))
def test_a_known_key_is_refused_as_any_other(key: bytes) -> None:
    try:
        wanted = read_offset_key(key)
    except MalformedMessage:
        with pytest.raises(MalformedMessage):
            known_offset_key(key)
    else:
        assert known_offset_key(key) == wanted


def test_a_long_key_is_written_and_read_and_not_kept() -> None:
    key = OffsetKey("g" * 32_767, "t", 3)
    kept = _remembered()
    written = offset_record(key, Offset(1, NO_LEADER_EPOCH, "", 0)).key
    assert known_offset_key(written) == key
    assert kept == _remembered()


def _remembered() -> list[object]:
    remembered = records._remembered_group_and_topic, records._remembered_before_partition
    return [each.cache_info() for each in remembered]
