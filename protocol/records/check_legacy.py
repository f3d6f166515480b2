"""What Kafka checks in the records of Produce v0 to v2, and how they become a batch of magic 2.

These requests carry a message set of magic 0 or 1, or batches of magic 2. A cut entry at the end is dropped;
a set without a whole entry is no error and appends nothing. Every entry's size (10) and checksum (2) are
checked, then that all have one magic and, if anything is compressed, that there is one entry (87); then each
message: no nested compression, inner checksums (2), keys on a compacted topic (87), times (32).

All becomes one batch: keys, values and timestamps (-1 for magic 0), offsets in one run, the set's codec or
the topic's. A set of magic 2 is checked like the batch of a newer Produce; as in Kafka only v3 to v6 refuse
zstd.
"""

from __future__ import annotations

from collections.abc import Iterator

from protocol.records.batch import MAGIC_AT, NO_TIMESTAMP, Record, batches
from protocol.records.builder import build_batch
from protocol.records.check import BatchRules, Checked, check_produced_batch, corrupt, too_large
from protocol.records.crc import Buffer
from protocol.records.legacy import Message, read_message, unwrapped
from protocol.records.rules import KEEP_CODEC, trusted_batch
from protocol.records.times import RecordErrors
from protocol.records.walk import invalid

SET_SIZE_RATIO = 4


def check_produced_set(buf: Buffer, at: int, size: int, rules: BatchRules, now_ms: int) -> Checked | None:
    """Check the records of a Produce v0-v2 in buf[at : at + size]; None where there is no whole entry.

    Raises InvalidRecords with Kafka's code. A set of more than `SET_SIZE_RATIO` times what a batch may take
    is refused before it is looked at: no message becomes so much smaller when it is converted.
    """
    if size > SET_SIZE_RATIO * rules.max_message_bytes:
        raise too_large(size, rules)
    if type(buf) is not bytearray:
        buf, at = bytearray(memoryview(buf)[at : at + size]), 0
    entries = list(batches(buf, at, at + size))
    if not entries:
        return None
    magics = {buf[begin + MAGIC_AT] for begin, _ in entries}
    if magics == {2}:
        if len(entries) > 1:
            raise invalid("Compressed outer record has more than one batch")
        return check_produced_batch(buf, *entries[0], rules, now_ms)
    outer: list[Message] = []
    for begin, length in entries:
        if length > rules.max_message_bytes:
            raise too_large(length, rules)
        if buf[begin + MAGIC_AT] == 2:
            continue
        message = read_message(buf, begin, length)
        if not message.crc_is_right:
            raise corrupt("the checksum of a message is wrong")
        outer.append(message)
    if len(magics) > 1:
        raise invalid("Batch magic byte is not the same as the first batch's magic byte")
    codec = next((message.codec for message in reversed(outer) if message.codec), 0)
    if codec and len(outer) > 1:
        raise invalid("Compressed outer record has more than one batch")
    return _up_converted(outer, codec, rules, now_ms)


def _up_converted(outer: list[Message], codec: int, rules: BatchRules, now_ms: int) -> Checked:
    errors = RecordErrors(rules, now_ms)
    keep = rules.compression == KEEP_CODEC
    built = build_batch(
        _renumbered(outer, errors),
        codec=codec if keep else rules.compression,
        level=None if keep else rules.compression_level,
        log_append_time_ms=now_ms if rules.log_append_time else None,
    )
    if len(built) > rules.max_message_bytes:
        raise too_large(len(built), rules)
    append_time = now_ms if rules.log_append_time else NO_TIMESTAMP
    return trusted_batch(built)._replace(log_append_time_ms=append_time)


def _renumbered(outer: list[Message], errors: RecordErrors) -> Iterator[Record]:
    """All messages of the set in turn. Raises for the first entry that has faults, with all of its own."""
    total = 0
    for message in outer:
        for index, one in enumerate(unwrapped(message) if message.codec else (message,)):
            if not one.crc_is_right:
                raise corrupt("the checksum of a message inside a compressed one is wrong")
            errors.look_at(index, one.timestamp, one.key is None, message.is_log_append_time)
            yield Record(total, one.timestamp, one.key, one.value)
            total += 1
        errors.raise_if_any()
