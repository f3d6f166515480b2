"""Records of Produce v0 to v2: codes and conversion as Kafka 3.9's validator has them."""

import pytest

from protocol.errors import ErrorCode, InvalidRecords
from protocol.records.batch import Record, read_header, records
from protocol.records.builder import build_batch
from protocol.records.check import BatchRules
from protocol.records.check_legacy import check_produced_set
from protocol.records.compression import compress
from protocol.records.legacy import append_message, build_message_set
from tests.unit.protocol.records.other_clients import aio_messages, messages

NOW = 1_790_000_000_000
RULES = BatchRules()


def rows(count=4, key=b"k", time=NOW):
    return [Record(i, time + i, key, b"v%d" % i) for i in range(count)]


def check(data, rules=RULES):
    return check_produced_set(data, 0, len(data), rules, NOW)


def refusal(data, rules=RULES):
    with pytest.raises(InvalidRecords) as caught:
        check(data, rules)
    return caught.value


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1, 2, 3])
@pytest.mark.parametrize("target", [-1, 0, 1, 2, 3, 4])
def test_set_then_one_batch_with_the_codec_of_set_or_topic(magic, codec, target):
    checked = check(build_message_set(rows(), magic, codec), BatchRules(compression=target))
    found = list(records(checked.buf))
    assert found == [Record(r.offset, r.timestamp if magic else -1, r.key, r.value) for r in rows()]
    head = read_header(checked.buf)
    assert head.codec == (codec if target < 0 else target)
    assert (checked.record_count, checked.last_offset_delta, checked.producer_id) == (4, 3, -1)
    assert checked.max_timestamp == head.max_timestamp == (NOW + 3 if magic else -1)
    assert checked.size == len(checked.buf)


@pytest.mark.parametrize("module", [messages, aio_messages])
@pytest.mark.parametrize("codec", [0, 1, 2, 3])
def test_set_of_another_client_then_accepted(module, codec):
    builder = module.LegacyRecordBatchBuilder(1, codec, 1 << 20)
    for record in rows():
        builder.append(record.offset, timestamp=record.timestamp, key=record.key, value=record.value)
    assert list(records(check(bytes(builder.build())).buf)) == rows()


def test_cut_entry_then_dropped_and_nothing_whole_is_none():
    data = build_message_set(rows(), 1)
    assert check(data[:-1]).record_count == 3
    assert check(data[:20]) is None
    assert check(b"") is None
    assert check(build_batch(rows())[:-1]) is None


def test_set_of_magic_2_then_checked_as_a_batch():
    data = build_batch(rows(), codec=1)
    assert check(data).buf == data
    assert check(build_batch(rows(), codec=4)).record_count == 4
    assert refusal(data + data).error is ErrorCode.INVALID_RECORD


def test_log_append_time_then_type_and_time_of_the_batch():
    checked = check(build_message_set(rows(), 1, 1), BatchRules(log_append_time=True))
    assert (checked.log_append_time_ms, checked.max_timestamp) == (NOW, NOW)
    assert {record.timestamp for record in records(checked.buf)} == {NOW}
    assert read_header(checked.buf).is_log_append_time


def changed(data, at):
    data = bytearray(data)
    data[at] ^= 1
    return data


def wrapper(inner, magic=1, codec=1):
    out = bytearray()
    append_message(out, magic, 0, NOW, None, compress(codec, inner), codec)
    return out


ONE = build_message_set(rows(1), 1)


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (changed(ONE, -1), ErrorCode.CORRUPT_MESSAGE),
        (ONE + changed(ONE, 13), ErrorCode.CORRUPT_MESSAGE),
        (wrapper(changed(ONE, -1)), ErrorCode.CORRUPT_MESSAGE),
        (ONE + build_message_set(rows(1), 0), ErrorCode.INVALID_RECORD),
        (ONE + build_batch(rows()), ErrorCode.INVALID_RECORD),
        (wrapper(ONE) + wrapper(ONE), ErrorCode.INVALID_RECORD),
        (wrapper(ONE) + ONE, ErrorCode.INVALID_RECORD),
        (wrapper(wrapper(ONE)), ErrorCode.INVALID_RECORD),
        (wrapper(b""), ErrorCode.INVALID_RECORD),
        (wrapper(ONE, codec=4), ErrorCode.INVALID_RECORD),
        (wrapper(build_message_set(rows(1), 0)), ErrorCode.INVALID_RECORD),
        (b"\0" * 40, ErrorCode.CORRUPT_MESSAGE),
    ],
)
def test_set_that_kafka_refuses_then_its_code(data, error):
    assert refusal(data).error is error


def test_size_then_of_each_entry_and_of_the_result():
    data = build_message_set([Record(i, NOW, b"k", bytes(500)) for i in range(4)], 1)
    assert refusal(data, BatchRules(max_message_bytes=500)).error is ErrorCode.MESSAGE_TOO_LARGE
    assert refusal(data, BatchRules(max_message_bytes=1000)).error is ErrorCode.MESSAGE_TOO_LARGE
    assert check(data, BatchRules(max_message_bytes=3000)).record_count == 4


def test_null_keys_on_compacted_topic_then_indexes():
    rules = BatchRules(compacted=True)
    these = [Record(i, NOW, None if i > 1 else b"k", b"v") for i in range(4)]
    refused = refusal(build_message_set(these, 1, 1), rules)
    assert (refused.error, [i for i, _ in refused.record_errors]) == (ErrorCode.INVALID_RECORD, [2, 3])
    # without a wrapper every message is a batch of its own, and the first bad one ends it
    assert [i for i, _ in refusal(build_message_set(these, 1), rules).record_errors] == [0]


def test_times_out_of_range_then_invalid_timestamp():
    late = build_message_set(rows(2, time=NOW + 3_600_001), 1, 1)
    refused = refusal(late)
    assert (refused.error, len(refused.record_errors)) == (ErrorCode.INVALID_TIMESTAMP, 2)
    assert check(build_message_set(rows(2, time=NOW + 3_600_001), 0)).record_count == 2
    claiming = build_message_set(rows(1), 1, 0, log_append_time_ms=NOW)
    assert refusal(claiming, BatchRules(log_append_time=True)).error is ErrorCode.INVALID_TIMESTAMP
    assert check(claiming).record_count == 1
