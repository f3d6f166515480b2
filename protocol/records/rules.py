"""What a topic asks of a produced batch, and what the log is told of one that passed.

Values only; `check.py` applies them. Both are made for the hot path: rules are built once for a topic's
configuration, a `Checked` once for each batch, and nothing reads the batch's header again before the append.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from protocol.records.batch import NO_TIMESTAMP, read_header

FOREVER = (1 << 63) - 1
KEEP_CODEC = -1  # compression.type=producer
ANY_RECORD_BYTES = (1 << 31) - 9  # as large as a record can be


@dataclass(slots=True)
class BatchRules:
    """Settings of a topic that decide over a produced batch, with the defaults of Kafka 4.4.

    Treat it as immutable: a changed configuration makes new rules.
    """

    max_message_bytes: int = 1_048_588
    compacted: bool = False
    log_append_time: bool = False
    timestamp_before_max_ms: int = FOREVER
    timestamp_after_max_ms: int = 3_600_000
    compression: int = KEEP_CODEC  # codec number, or KEEP_CODEC
    compression_level: int | None = None
    max_record_bytes: int = ANY_RECORD_BYTES  # plain bytes of one record in a compressed batch
    topic_partition: str = ""  # for messages only
    plain: bool = field(init=False, repr=False, compare=False)
    """An uncompressed batch needs nothing but the walk over its lengths and times."""

    def __post_init__(self) -> None:
        self.plain = not self.compacted and not self.log_append_time and self.compression in (KEEP_CODEC, 0)


class Checked(NamedTuple):
    """A batch that may be appended: buf[at : at + size] of magic 2, for the log to stamp in place."""

    buf: bytearray
    at: int
    size: int
    record_count: int
    last_offset_delta: int
    attributes: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    log_append_time_ms: int  # -1 under CreateTime


def trusted_batch(buf: bytearray, at: int = 0) -> Checked:
    """A batch that this broker has just built (internal topics, markers): its header is taken as it is."""
    head = read_header(buf, at)
    return Checked(
        buf,
        at,
        head.size,
        head.record_count,
        head.last_offset_delta,
        head.attributes,
        head.max_timestamp,
        head.producer_id,
        head.producer_epoch,
        head.base_sequence,
        NO_TIMESTAMP,
    )
