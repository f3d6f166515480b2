"""Rules of a topic, and batches that need no check."""

import pytest

from protocol.records.batch import Record
from protocol.records.builder import build_batch
from protocol.records.check import check_produced_batch
from protocol.records.rules import BatchRules, trusted_batch

NOW = 1_790_000_000_000


@pytest.mark.parametrize(
    ("settings", "plain"),
    [
        ({}, True),
        ({"compression": 0}, True),
        ({"timestamp_before_max_ms": 5}, True),
        ({"compression": 1}, False),
        ({"compacted": True}, False),
        ({"log_append_time": True}, False),
    ],
)
def test_plain_then_only_where_an_uncompressed_batch_stays_as_it_is(settings, plain):
    assert BatchRules(**settings).plain is plain


def test_trusted_batch_then_same_facts_as_a_checked_one():
    data = build_batch(
        [Record(0, NOW, b"k", b"v")] * 3, producer_id=3, producer_epoch=1, base_sequence=0, codec=2
    )
    assert trusted_batch(data) == check_produced_batch(data, 0, len(data), BatchRules(), NOW)
