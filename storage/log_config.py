"""The settings of one partition's log, typed, under Kafka's topic-level names.

A value object: a change of a topic's configuration builds a new one and hands it to the log. Defaults are
those of Apache Kafka 4.4. Times in milliseconds, sizes in bytes; `FOREVER` stands for Kafka's "never".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from protocol.records.rules import ANY_RECORD_BYTES, BatchRules

FOREVER = (1 << 63) - 1
CODEC_IDS = {"producer": -1, "uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


@dataclass(slots=True)
class LogConfig:
    """Settings of a log. Validation is the configuration layer's; here values are taken as valid."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 604_800_000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    preallocate: bool = False
    max_message_bytes: int = 1_048_588
    max_decompressed_message_bytes: int = ANY_RECORD_BYTES
    compression_type: str = "producer"
    compression_gzip_level: int = -1
    compression_lz4_level: int = 9
    compression_zstd_level: int = 3
    message_timestamp_type: str = "CreateTime"
    message_timestamp_before_max_ms: int = FOREVER
    message_timestamp_after_max_ms: int = 3_600_000
    message_downconversion_enable: bool = True
    flush_messages: int = FOREVER
    flush_ms: int = FOREVER
    retention_ms: int = 604_800_000
    retention_bytes: int = -1
    file_delete_delay_ms: int = 60_000
    cleanup_policy: tuple[str, ...] = ("delete",)
    delete_retention_ms: int = 86_400_000
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = FOREVER
    min_cleanable_dirty_ratio: float = 0.5
    min_insync_replicas: int = 1
    unclean_leader_election_enable: bool = False
    _rules: BatchRules | None = field(default=None, init=False, repr=False, compare=False)

    @classmethod
    def from_kafka(cls, values: Mapping[str, Any]) -> LogConfig:
        """Build from typed values under dotted names (`segment.bytes`); others are passed over."""
        known = {f.name for f in fields(cls) if f.init}
        chosen: dict[str, Any] = {}
        for key, value in values.items():
            name = key.replace(".", "_")
            if name in known and value is not None:
                chosen[name] = tuple(value) if name == "cleanup_policy" else value
        return cls(**chosen)

    @property
    def compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def deletes(self) -> bool:
        return "delete" in self.cleanup_policy

    @property
    def log_append_time(self) -> bool:
        return self.message_timestamp_type == "LogAppendTime"

    @property
    def roll_ms(self) -> int:
        """Age at which a segment is closed; a compacted log may not wait longer than its maximum lag."""
        return min(self.segment_ms, self.max_compaction_lag_ms) if self.compacted else self.segment_ms

    def rules(self) -> BatchRules:
        """What a produced batch has to satisfy, for `check_produced_batch`; built once."""
        if self._rules is None:
            self._rules = BatchRules(
                max_message_bytes=self.max_message_bytes,
                compacted=self.compacted,
                log_append_time=self.log_append_time,
                timestamp_before_max_ms=self.message_timestamp_before_max_ms,
                timestamp_after_max_ms=self.message_timestamp_after_max_ms,
                compression=CODEC_IDS[self.compression_type],
                compression_level=self._level(),
                max_record_bytes=self.max_decompressed_message_bytes,
            )
        return self._rules

    def _level(self) -> int | None:
        levels = {
            "gzip": self.compression_gzip_level,
            "lz4": self.compression_lz4_level,
            "zstd": self.compression_zstd_level,
        }
        return levels.get(self.compression_type)
