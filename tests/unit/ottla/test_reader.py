"""Reading records: positions, resets, old formats, aborted transactions; the client is a double."""

from __future__ import annotations

import pytest

from ottla.client import ClientError
from ottla.reader import EARLIEST, LATEST, Reader
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from protocol.records.control import build_end_marker
from protocol.records.legacy import build_message_set

KEY = ("t", 0)
FIRST, END = 4, 90


class Leader:
    """Stands for a KafkaClient whose cluster has one partition."""

    timeout_s = 1.0

    def __init__(self, *answers: dict[str, object]) -> None:
        self.answers = list(answers)
        self.asked: list[int] = []
        self.forgotten: list[tuple[str, int]] = []

    def by_leader(self, partitions):
        return {1: {"t": [0]}} if partitions else {}

    def leader(self, topic, partition):
        return 1

    def forget_leader(self, topic, partition):
        self.forgotten.append((topic, partition))

    def connection(self, node):
        return self

    def version_for(self, api_key):
        return m.FetchRequest.MAX_VERSION if api_key == ApiKey.FETCH else 1

    def call(self, request, node, version=None):
        if isinstance(request, m.ListOffsetsRequest):
            named = request.topics[0].partitions[0].timestamp
            found = m.ListOffsetsResponse.ListOffsetsPartitionResponse(
                offset=FIRST if named == EARLIEST else END
            )
            topic = m.ListOffsetsResponse.ListOffsetsTopicResponse(name="t", partitions=[found])
            return m.ListOffsetsResponse(topics=[topic])
        assert version <= 12  # where topics still have names
        self.asked.append(request.topics[0].partitions[0].fetch_offset)
        part = m.FetchResponse.PartitionData(partition_index=0, **self.answers.pop(0))
        topic = m.FetchResponse.FetchableTopicResponse(topic="t", partitions=[part])
        return m.FetchResponse(responses=[topic])


def batch(first: int, *values: bytes, **options: object) -> bytes:
    records = [Record(index, 100 + index, None, value) for index, value in enumerate(values)]
    return bytes(build_batch(records, base_offset=first, **options))


def offsets(reader: Reader) -> list[int]:
    return [received.record.offset for received in reader.read()]


def test_a_position_inside_a_batch_begins_inside_it_and_moves_on() -> None:
    leader = Leader({"records": batch(10, b"a", b"b", b"c") + batch(13, b"d")}, {"records": b""})
    reader = Reader(leader, {KEY: 11})
    assert offsets(reader) == [11, 12, 13]
    assert offsets(reader) == []
    assert leader.asked == [11, 14]


def test_named_starts_are_asked_of_the_leader() -> None:
    for start, expected in ((EARLIEST, FIRST), (LATEST, END)):
        leader = Leader({"records": None})
        assert offsets(Reader(leader, {KEY: start})) == []
        assert leader.asked == [expected]


def test_a_position_outside_the_log_goes_where_the_reader_was_told() -> None:
    for reset, expected in ((EARLIEST, FIRST), (LATEST, END)):
        leader = Leader({"error_code": ErrorCode.OFFSET_OUT_OF_RANGE}, {"records": b""})
        reader = Reader(leader, {KEY: 1000}, reset)
        assert offsets(reader) == []
        assert offsets(reader) == []
        assert leader.asked == [1000, expected]


def test_a_leader_that_moved_is_forgotten_and_a_lasting_error_is_raised() -> None:
    leader = Leader(
        {"error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER},
        {"error_code": ErrorCode.TOPIC_AUTHORIZATION_FAILED},
    )
    reader = Reader(leader, {KEY: 0})
    assert offsets(reader) == []
    assert leader.forgotten == [KEY]
    with pytest.raises(ClientError, match="t-0"):
        offsets(reader)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1])
def test_old_formats_are_read(magic, codec) -> None:
    records = [Record(offset, 7, b"k", b"v%d" % offset) for offset in range(3)]
    data = bytes(build_message_set(records, magic=magic, codec=codec))
    received = list(Reader(Leader({"records": data}), {KEY: 1}).read())
    assert [(each.record.offset, each.record.value) for each in received] == [(1, b"v1"), (2, b"v2")]
    assert {each.timestamp_type for each in received} == {"CreateTime" if magic else "NoTimestampType"}


def test_log_append_time_is_told() -> None:
    data = batch(0, b"a", log_append_time_ms=77)
    (received,) = Reader(Leader({"records": data}), {KEY: 0}).read()
    assert (received.timestamp_type, received.record.timestamp) == ("LogAppendTime", 77)


def transactional() -> bytes:
    """Producer 5 aborts offsets 0-1, then commits 4; producer 6 commits 2; 3 and 5 are markers."""
    options = {"transactional": True, "producer_epoch": 0}
    marker = {"producer_id": 5, "producer_epoch": 0, "coordinator_epoch": 0, "timestamp": 1}
    return b"".join(
        (
            batch(0, b"aborted", b"aborted", producer_id=5, base_sequence=0, **options),
            batch(2, b"other", producer_id=6, base_sequence=0, **options),
            bytes(build_end_marker(False, base_offset=3, **marker)),
            batch(4, b"committed", producer_id=5, base_sequence=2, **options),
            bytes(build_end_marker(True, base_offset=5, **marker)),
        )
    )


def test_read_committed_leaves_out_what_was_aborted_until_its_marker() -> None:
    aborted = [m.FetchResponse.AbortedTransaction(producer_id=5, first_offset=0)]
    answer = {"records": transactional(), "aborted_transactions": aborted}
    leader = Leader(answer, {"records": b""})
    reader = Reader(leader, {KEY: 0}, read_committed=True)
    assert offsets(reader) == [2, 4]
    assert offsets(reader) == []
    assert leader.asked == [0, 6]


def test_read_uncommitted_shows_everything_but_markers() -> None:
    reader = Reader(Leader({"records": transactional()}), {KEY: 0})
    assert offsets(reader) == [0, 1, 2, 4]


def test_bytes_that_are_no_records_are_told_with_their_place() -> None:
    broken = bytearray(batch(0, b"abc"))
    broken[-1] = 5  # one header announced, none there
    with pytest.raises(ClientError, match="t-0 at offset 0 can't be read"):
        offsets(Reader(Leader({"records": bytes(broken)}), {KEY: 0}))
