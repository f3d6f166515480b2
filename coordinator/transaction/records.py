"""Records of `__transaction_state`: the whole state of a transactional id, or its end.

A key begins with an i16, the record's type (0), a value with an i16, its version. Version 1, with the ids
around a change of producer id and the client's version, is written where the feature transaction.version is
at 1 or more. A value without its partitions (null) is that of state Empty.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError
from typing import Final

from coordinator.result import CoordinatorRecord
from coordinator.transaction.state import Transaction, TxnState
from protocol import messages as m
from protocol.errors import MalformedMessage

KEY_TYPE: Final = 0
PLAIN, FLEXIBLE = 0, 1

_I16: Final = Struct(">h")


def leading(data: bytes) -> int:
    """The i16 in front of a key or value. Raises MalformedMessage."""
    try:
        number: int = _I16.unpack_from(data)[0]
    except StructError:
        raise MalformedMessage("A key or value has less than two bytes") from None
    return number


def read_key(key: bytes) -> str:
    """The transactional id. Raises MalformedMessage."""
    read, _ = m.TransactionLogKey.decode(0, key, _I16.size)
    return read.transactional_id


def read_value(value: bytes) -> Transaction | None:
    """None for a version that is not known. Raises MalformedMessage."""
    version = leading(value)
    if version not in (PLAIN, FLEXIBLE):
        return None
    read, _ = m.TransactionLogValue.decode(version, value, _I16.size)
    try:
        state = TxnState(read.transaction_status)
    except ValueError:
        raise MalformedMessage(f"There is no transaction status {read.transaction_status}") from None
    return Transaction(
        producer_id=read.producer_id,
        epoch=read.producer_epoch,
        timeout_ms=read.transaction_timeout_ms,
        state=state,
        partitions=frozenset(
            (topic.topic, index)
            for topic in read.transaction_partitions or ()
            for index in topic.partition_ids
        ),
        start_ms=read.transaction_start_timestamp_ms,
        update_ms=read.transaction_last_update_timestamp_ms,
        previous_id=read.previous_producer_id,
        next_id=read.next_producer_id,
        version=read.client_transaction_version,
    )


def state_record(transactional_id: str, txn: Transaction, version: int) -> CoordinatorRecord:
    """The state as a record with a value of this version."""
    by_topic: dict[str, list[int]] = {}
    for topic, index in sorted(txn.partitions):
        by_topic.setdefault(topic, []).append(index)
    value = m.TransactionLogValue(
        producer_id=txn.producer_id,
        producer_epoch=txn.epoch,
        transaction_timeout_ms=txn.timeout_ms,
        transaction_status=txn.state,
        transaction_partitions=None
        if txn.state is TxnState.EMPTY
        else [
            m.TransactionLogValue.PartitionsSchema(topic=topic, partition_ids=indexes)
            for topic, indexes in by_topic.items()
        ],
        transaction_last_update_timestamp_ms=txn.update_ms,
        transaction_start_timestamp_ms=txn.start_ms,
    )
    if version >= FLEXIBLE:
        value.previous_producer_id, value.next_producer_id = txn.previous_id, txn.next_id
        value.client_transaction_version = txn.version
    return CoordinatorRecord(_key(transactional_id), _I16.pack(version) + value.encode(version))


def tombstone(transactional_id: str) -> CoordinatorRecord:
    """The end of a transactional id."""
    return CoordinatorRecord(_key(transactional_id), None)


def _key(transactional_id: str) -> bytes:
    return _I16.pack(KEY_TYPE) + m.TransactionLogKey(transactional_id=transactional_id).encode(0)
