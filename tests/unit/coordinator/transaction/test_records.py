"""Records of __transaction_state."""

from __future__ import annotations

from dataclasses import replace
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.transaction import records
from coordinator.transaction.state import Transaction, TxnState
from protocol.errors import MalformedMessage

TXN = Transaction(
    producer_id=5,
    epoch=2,
    timeout_ms=60_000,
    state=TxnState.ONGOING,
    partitions=frozenset([("a", 1), ("a", 0), ("b", 7)]),
    start_ms=100,
    update_ms=200,
)
transactions = st.builds(
    Transaction,
    producer_id=st.integers(-1, 2**63 - 1),
    epoch=st.integers(-1, 32767),
    timeout_ms=st.integers(0, 2**31 - 1),
    state=st.sampled_from(list(TxnState)[:6]),
    partitions=st.frozensets(st.tuples(st.text(max_size=5), st.integers(0, 2**31 - 1)), max_size=5),
    start_ms=st.integers(-1, 2**63 - 1),
    update_ms=st.integers(-1, 2**63 - 1),
    previous_id=st.integers(-1, 2**63 - 1),
    next_id=st.integers(-1, 2**63 - 1),
    version=st.integers(0, 2),
)


def test_the_plain_form_byte_by_byte() -> None:
    """As Kafka's TransactionLogValue version 0: partitions by topic, then the times."""
    record = records.state_record("t", TXN, 0)
    assert record.key == b"\0\0" + b"\0\1t"
    assert record.value == (
        pack(">hqhib", 0, 5, 2, 60_000, 1)
        + pack(">i", 2)
        + b"\0\1a"
        + pack(">iii", 2, 0, 1)
        + b"\0\1b"
        + pack(">ii", 1, 7)
        + pack(">qq", 200, 100)
    )


def test_a_state_between_transactions_has_no_partitions_at_all() -> None:
    value = records.state_record("t", Transaction(5, 0), 0).value
    assert value is not None
    assert value[17:21] == b"\xff\xff\xff\xff"


@given(st.text(max_size=20), transactions, st.sampled_from([0, 1]))
def test_what_is_written_is_read(transactional_id: str, txn: Transaction, version: int) -> None:
    record = records.state_record(transactional_id, txn, version)
    assert record.value is not None
    assert records.read_key(record.key) == transactional_id
    expected = replace(txn, last_epoch=-1)
    if txn.state is TxnState.EMPTY:
        expected = replace(expected, partitions=frozenset())
    if version == 0:
        expected = replace(expected, previous_id=-1, next_id=-1, version=0)
    assert records.read_value(record.value) == expected


def test_a_tombstone_names_the_id() -> None:
    record = records.tombstone("t")
    assert (records.read_key(record.key), record.value) == ("t", None)


def test_values_of_later_versions_are_not_read() -> None:
    assert records.read_value(b"\0\2whatever") is None


@pytest.mark.parametrize("value", [b"", b"\0", b"\0\0", b"\0\0" + bytes(10)])
def test_short_values_are_malformed(value: bytes) -> None:
    with pytest.raises(MalformedMessage):
        records.read_value(value)


def test_a_status_that_is_none_is_malformed() -> None:
    value = records.state_record("t", TXN, 0).value
    assert value is not None
    with pytest.raises(MalformedMessage):
        records.read_value(value[:16] + b"\x09" + value[17:])
