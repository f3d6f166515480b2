"""Batches of keyed records are those of the general builder."""

from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.records.batch import Record
from protocol.records.builder import build_batch
from protocol.records.keyed import keyed_batch
from protocol.records.rules import trusted_batch

KEYS = st.one_of(st.binary(max_size=70), st.integers(500, 530).map(bytes), st.integers(8180, 8200).map(bytes))
RECORDS = st.lists(st.tuples(KEYS, st.one_of(st.none(), KEYS)), min_size=1, max_size=5)
TIMES = st.integers(0, 2**62)


@settings(max_examples=200)
@given(RECORDS, TIMES, st.booleans(), st.integers(0, 2**62), st.integers(0, 2**15 - 1))
def test_it_is_what_the_builder_makes(
    records: list[tuple[bytes, bytes | None]], timestamp: int, transactional: bool, producer: int, epoch: int
) -> None:
    more = {"producer_id": producer, "producer_epoch": epoch, "transactional": True} if transactional else {}
    expected = build_batch([Record(0, timestamp, key, value) for key, value in records], **more)
    assert keyed_batch(records, timestamp, **more) == trusted_batch(expected)


def test_more_records_than_small_numbers() -> None:
    records = [(b"k", b"v")] * 9000
    assert keyed_batch(records, 5).buf == build_batch([Record(0, 5, *each) for each in records])
