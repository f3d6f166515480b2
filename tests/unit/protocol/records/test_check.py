"""What is refused, with which code, and what is changed: as a running Kafka 4.4.0 answers the same bytes."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.errors import ErrorCode, InvalidRecords
from protocol.records.batch import HEADER, Record, read_header, records, wrap64
from protocol.records.builder import append_record, build_batch, stamp_crc, wrap_section
from protocol.records.check import BatchRules, check_produced_batch
from protocol.records.compression import compress
from tests.unit.protocol.records.reference_parser import Refused, parse

NOW = 1_790_000_000_000
RULES = BatchRules(max_message_bytes=2000)
CORRUPT, TOO_LARGE, INVALID = ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_RECORD
SERVER_ERROR, BAD_TIME = ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.INVALID_TIMESTAMP


def rows(count, time=NOW, key=b"k"):
    return [Record(index, time, key, b"v" * 100) for index in range(count)]


def batch(count=3, **options):
    return build_batch(rows(count), **options)


def patched(layout, at, value, data=None, right_crc=True):
    data = batch() if data is None else data
    struct.pack_into(layout, data, at, value)
    if right_crc:
        stamp_crc(data, 0, len(data))
    return data


def with_wrong_crc(data):
    data[17] ^= 1
    return data


def check(data, rules=RULES, **options):
    return check_produced_batch(bytearray(data), 0, len(data), rules, NOW, **options)


def refusal(data, rules=RULES, **options):
    with pytest.raises(InvalidRecords) as caught:
        check(data, rules, **options)
    return caught.value


def out_of(checked):
    return list(records(checked.buf, checked.at))


@pytest.mark.parametrize(
    ("data", "error"),
    [
        # several faults at once: the order of the checks
        (with_wrong_crc(patched(">q", 0, 77)), INVALID),
        (patched(">q", 0, 77, batch(60)), INVALID),
        (with_wrong_crc(batch(60)), TOO_LARGE),
        (with_wrong_crc(patched(">h", 21, 5)), CORRUPT),
        (patched(">q", 0, 7, patched(">h", 21, 5)), INVALID),
        (patched(">i", 57, 9, patched(">h", 21, 5)), SERVER_ERROR),
        (patched(">h", 21, 7), SERVER_ERROR),
        # not one whole batch of magic 2
        (b"", INVALID),
        (batch()[:-1], INVALID),
        (batch()[:61], INVALID),
        (batch()[:30], INVALID),
        (batch()[:16], INVALID),
        (batch()[:11], INVALID),
        (batch() + batch(), INVALID),
        (with_wrong_crc(batch()) + batch(), INVALID),
        (batch() + patched(">b", 16, 9), CORRUPT),
        (batch() + bytes(12), CORRUPT),
        (batch() + struct.pack(">qiib", 0, 100, 0, 9), CORRUPT),
        (patched(">b", 16, 3), CORRUPT),
        (patched(">b", 16, -1), CORRUPT),
        (patched(">b", 16, 1), INVALID),
        (patched(">b", 16, 0), INVALID),
        # lengths
        (patched(">i", 8, 13), CORRUPT),
        (patched(">i", 8, 14), CORRUPT),
        (patched(">i", 8, 40), CORRUPT),
        (patched(">i", 8, 48), CORRUPT),
        (patched(">i", 8, -1), CORRUPT),
        (patched(">i", 8, len(batch()) - 11), INVALID),
        (patched(">i", 8, len(batch()) - 13), CORRUPT),
        (patched(">i", 8, len(batch()) - 11) + b"\0", CORRUPT),
        # header fields
        (with_wrong_crc(batch()), CORRUPT),
        (patched(">h", 21, 0x20), INVALID),
        (patched(">i", 23, 7), INVALID),
        (patched(">i", 23, -5), INVALID),
        (patched(">i", 57, 0), INVALID),
        (patched(">i", 57, -1), INVALID),
        (batch(producer_id=5, producer_epoch=0), INVALID),
        # records
        (wrap_section(bytes(batch()[61:]) + b"\0", attributes=0, last_offset_delta=2, base_timestamp=NOW,
                      max_timestamp=NOW, count=3), INVALID),
        (wrap_section(b"", attributes=0, last_offset_delta=0, base_timestamp=NOW, max_timestamp=NOW, count=1),
         INVALID),
        (patched(">B", 61, 0xDE), INVALID),
    ],
)  # fmt: skip
def test_batch_that_kafka_refuses_then_its_code(data, error):
    assert refusal(data).error is error


@pytest.mark.parametrize(
    ("count", "delta"), [(0, 3), (15, 3), (-3, 3), (2, -3), (2, 6), (2, 0), (5, 6), (1, 2)]
)
def test_count_and_last_delta_that_disagree_then_refused(count, delta):
    data = batch()
    struct.pack_into(">i", data, 57, count)
    assert refusal(patched(">i", 23, delta, data)).error is INVALID


@pytest.mark.parametrize(
    "behind", [b"", b"\0", bytes(11), struct.pack(">qii", 0, 100, 0), struct.pack(">qiib", 0, 100, 0, 2)]
)
def test_bytes_behind_that_are_no_batch_then_left_out(behind):
    data = batch()
    checked = check(data + behind)
    assert (checked.at, checked.size) == (0, len(data))
    assert checked.buf[: checked.size] == data


def test_good_batch_then_facts_of_its_header_and_the_same_buffer():
    data = batch(5, producer_id=9, producer_epoch=3, base_sequence=70, transactional=True)
    buf = bytearray(b"before") + data + b"behind"
    checked = check_produced_batch(buf, 6, len(data), RULES, NOW)
    assert checked.buf is buf
    assert checked[1:] == (6, len(data), 5, 4, 0x10, NOW, 9, 3, 70, -1)
    assert buf == b"before" + data + b"behind"
    unknown = patched(">h", 21, 0x40 | 0x80)
    assert check(unknown).attributes == 0xC0


def test_read_only_buffer_then_checked_in_a_copy():
    data = bytes(batch())
    for buf in (data, memoryview(data)):
        checked = check_produced_batch(buf, 0, len(data), RULES, NOW)
        assert type(checked.buf) is bytearray
        assert checked.buf == data


@pytest.mark.parametrize("codec", range(5))
def test_every_codec_then_stored_as_sent(codec):
    data = batch(12, codec=codec)
    checked = check(data)
    assert checked.buf == data
    assert checked.attributes == codec


def test_zstd_before_produce_7_then_unsupported_compression_type():
    data = batch(codec=4)
    assert refusal(data, api_version=6).error is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert refusal(patched(">q", 0, 7, data), api_version=6).error is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert check(batch(codec=4), api_version=7).size
    assert check(batch(codec=1), api_version=3).size


@pytest.mark.parametrize("codec", range(1, 5))
@pytest.mark.parametrize("section", [b"", b"\xffunreadable", None])
def test_compressed_data_that_cannot_be_read_then_unknown_server_error(codec, section):
    if section is None:
        section = compress(codec, batch()[61:])[:-3]
    data = wrap_section(
        section, attributes=codec, last_offset_delta=2, base_timestamp=NOW, max_timestamp=NOW, count=3
    )
    assert refusal(data).error is SERVER_ERROR


@pytest.mark.parametrize("codec", range(1, 5))
@pytest.mark.parametrize("damage", [b"", b"\0"])
def test_compressed_records_that_are_too_few_or_leave_bytes_then_refused(codec, damage):
    section = bytes(batch()[61:]) + damage if damage else bytes(batch(2)[61:])
    data = wrap_section(
        compress(codec, section),
        attributes=codec, last_offset_delta=2, base_timestamp=NOW, max_timestamp=NOW, count=3,
    )  # fmt: skip
    assert refusal(data).error is INVALID


@pytest.mark.parametrize("codec", range(5))
def test_null_key_on_compacted_topic_then_indexes_of_the_records(codec):
    data = build_batch([Record(i, NOW, None if i in (1, 4) else b"k", b"v") for i in range(6)], codec=codec)
    rules = BatchRules(compacted=True, topic_partition="t-0")
    refused = refusal(data, rules)
    assert refused.error is INVALID
    assert [index for index, _ in refused.record_errors] == [1, 4]
    assert "without key in topic partition t-0" in refused.record_errors[0][1]
    assert check(batch(codec=codec), rules).record_count == 3


def test_many_null_keys_then_errors_are_bounded():
    refused = refusal(
        build_batch([Record(i, NOW, None, b"") for i in range(5000)]), BatchRules(compacted=True)
    )
    assert len(refused.record_errors) == 1000
    assert "5000 record errors" in str(refused)


def test_bad_time_beside_null_key_then_invalid_timestamp_with_both():
    data = build_batch(
        [Record(0, NOW, None, b""), Record(1, NOW + 10**9, b"k", b""), Record(2, NOW, b"k", b"")]
    )
    refused = refusal(data, BatchRules(compacted=True))
    assert refused.error is BAD_TIME
    assert [index for index, _ in refused.record_errors] == [0, 1]


def renumbered(deltas, codec):
    section = bytearray()
    for index, delta in enumerate(deltas):
        append_record(section, Record(0, NOW, b"k%d" % index, b"v"), 0, delta)
    return wrap_section(
        compress(codec, section),
        attributes=codec, last_offset_delta=len(deltas) - 1, base_timestamp=NOW, max_timestamp=NOW,
        count=len(deltas), producer_id=4, producer_epoch=1, base_sequence=11,
    )  # fmt: skip


@pytest.mark.parametrize("deltas", [[0, 0, 0], [1, 2, 3], [2, 1, 0], [0, 5000, 9]])
def test_offset_deltas_out_of_sequence_then_refused_unless_recompressed(deltas):
    assert refusal(renumbered(deltas, 0)).error is INVALID
    for codec in range(1, 5):
        assert refusal(renumbered(deltas, codec)).error is ErrorCode.UNKNOWN_SERVER_ERROR
        other = codec % 4 + 1
        checked = check(renumbered(deltas, codec), BatchRules(compression=other))
        assert [(r.offset, r.key) for r in out_of(checked)] == [(0, b"k0"), (1, b"k1"), (2, b"k2")]
        head = read_header(checked.buf)
        assert (head.codec, head.producer_id, head.producer_epoch, head.base_sequence) == (other, 4, 1, 11)


@pytest.mark.parametrize("source", range(5))
@pytest.mark.parametrize("target", range(5))
def test_topic_with_codec_of_its_own_then_recompressed_unless_equal(source, target):
    fields = {"producer_id": 6, "producer_epoch": 2, "base_sequence": 8, "transactional": True}
    data = build_batch(
        [Record(i, NOW + i, b"k", b"v" * 40, (("h", b"x"),)) for i in range(20)], codec=source, **fields
    )
    checked = check(data, BatchRules(compression=target))
    assert out_of(checked) == list(records(data))
    before, after = read_header(data), read_header(checked.buf, checked.at)
    assert after.codec == target
    assert after.attributes == 0x10 | target
    assert after[6:] == before[6:]
    assert check(checked.buf, BatchRules()) == checked
    assert (checked.buf == data) == (source == target)


def test_same_codec_of_another_level_then_kept():
    data = batch(codec=1, level=1)
    assert check(data, BatchRules(compression=1, compression_level=9)).buf == data


def test_recompressed_beyond_max_message_bytes_then_too_large():
    data = batch(60, codec=1)
    assert len(data) < 400
    assert refusal(data, BatchRules(max_message_bytes=2000, compression=0)).error is TOO_LARGE
    assert refusal(data, BatchRules(max_message_bytes=len(data) - 1)).error is TOO_LARGE
    assert check(data, BatchRules(max_message_bytes=len(data))).size == len(data)


def test_checksum_of_rebuilt_and_stamped_batches_then_right():
    for rules in (BatchRules(compression=2), BatchRules(log_append_time=True)):
        checked = check(batch(codec=3), rules)
        again = bytearray(checked.buf)
        stamp_crc(again, checked.at, checked.size)
        assert again == checked.buf


def test_large_record_in_compressed_batch_then_bounded():
    value = bytes(56 << 20)
    data = build_batch([Record(0, NOW, b"k", value)], codec=4)
    assert len(data) < 10_000
    assert refusal(data).error is TOO_LARGE
    assert check(data, BatchRules(max_message_bytes=30 << 20)).record_count == 1


# --- against a plain model of the rules --------------------------------------------------------------------

MAX = (1 << 63) - 1


def model(data, rules, now):
    """Codes of Kafka for a batch whose header is sound; its record times and keys by the plain parser."""
    head = read_header(data)
    try:
        found = parse(bytes(data[61:]), head.record_count)
    except Refused:
        return INVALID, None
    errors, latest = {}, -1
    claimed = head.is_log_append_time
    for index, (delta, _, key, _, _) in enumerate(found):
        time = head.max_timestamp if claimed else wrap64(head.base_timestamp + delta)
        age = wrap64(now - time)
        if rules.compacted and key is None:
            errors[index] = INVALID
        elif not rules.log_append_time and time != -1:
            if age > rules.timestamp_before_max_ms or wrap64(-age) > rules.timestamp_after_max_ms:
                errors[index] = BAD_TIME
        elif claimed:
            errors[index] = BAD_TIME
        latest = max(latest, time)
    if errors:
        return (BAD_TIME if BAD_TIME in errors.values() else INVALID), sorted(errors)
    if any(row[1] != index for index, row in enumerate(found)):
        return INVALID, []
    return None, (now if rules.log_append_time else latest)


times = st.one_of(
    st.integers(NOW - 2000, NOW + 2000),
    st.sampled_from([-1, 0, -5, NOW, NOW + 3_600_000, NOW + 3_600_001, MAX, -MAX - 1]),
    st.integers(-MAX - 1, MAX),
)
spans = st.sampled_from([0, 1000, 3_600_000, MAX])


@settings(max_examples=200, derandomize=True, deadline=None)
@given(
    st.one_of(
        st.lists(times, min_size=1, max_size=6),
        st.lists(times, min_size=1, max_size=2).map(lambda two: two * 15),
    ),
    st.lists(st.booleans(), min_size=1, max_size=3),
    st.builds(
        BatchRules, compacted=st.booleans(), log_append_time=st.booleans(), timestamp_before_max_ms=spans,
        timestamp_after_max_ms=spans,
    ),
    st.one_of(st.none(), times),
    st.sampled_from([0, 0, 8]),
)  # fmt: skip
def test_times_and_keys_then_verdict_and_header_of_the_model(these, keys, rules, latest, type_bit):
    data = build_batch(
        Record(i, time, b"k" if keys[i % len(keys)] else None, b"v") for i, time in enumerate(these)
    )
    if latest is not None:
        struct.pack_into(">q", data, 35, latest)
    data = patched(">h", 21, type_bit, data)
    error, facts = model(data, rules, NOW)
    for codec in (0, 1):
        head = list(HEADER.unpack_from(data))
        section = compress(codec, data[61:])
        head[1], head[5] = len(section) + 49, head[5] | codec
        sent = bytearray(HEADER.pack(*head)) + section
        stamp_crc(sent, 0, len(sent))
        if error is not None:
            refused = refusal(sent, rules)
            assert (refused.error, [index for index, _ in refused.record_errors]) == (error, facts)
            continue
        checked = check(sent, rules)
        after = read_header(checked.buf)
        assert after.max_timestamp == checked.max_timestamp == facts
        assert after.is_log_append_time == rules.log_append_time
        assert checked.log_append_time_ms == (NOW if rules.log_append_time else -1)
        assert checked.buf[61:] == section
        assert check(checked.buf, BatchRules(compacted=rules.compacted, timestamp_after_max_ms=MAX)).size
