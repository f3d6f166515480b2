"""What the cleaner tells about itself: Kafka's gauges, and one log line for each log cleaned."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1024 * 1024


@dataclass(slots=True)
class CleaningStats:
    """One cleaning of one log, in bytes, messages and seconds."""

    name: str
    first_dirty: int
    end_offset: int
    map_bytes: int = 0
    map_messages: int = 0
    map_seconds: float = 0.0
    map_utilization: float = 0.0
    start_bytes: int = 0
    start_messages: int = 0
    end_bytes: int = 0
    end_messages: int = 0
    invalid_messages: int = 0
    left_whole: int = 0
    seconds: float = 0.0

    def line(self) -> str:
        """For the log."""
        seconds = max(self.seconds, 1e-6)
        clean_seconds = max(self.seconds - self.map_seconds, 1e-6)
        saved = 100.0 * (1 - self.end_bytes / self.start_bytes) if self.start_bytes else 0.0
        fewer = 100.0 * (1 - self.end_messages / self.start_messages) if self.start_messages else 0.0
        return (
            f"Cleaned log {self.name} (dirty section [{self.first_dirty}, {self.end_offset})): "
            f"{self.start_bytes / MIB:.1f} MB in {self.seconds:.1f} s "
            f"({self.start_bytes / MIB / seconds:.1f} MB/s); "
            f"indexed {self.map_bytes / MIB:.1f} MB in {self.map_seconds:.1f} s, "
            f"map {self.map_utilization:.1%} full; "
            f"rewrote {self.start_bytes / MIB:.1f} MB in {clean_seconds:.1f} s; "
            f"size {self.start_bytes / MIB:.1f} MB ({self.start_messages} messages) -> "
            f"{self.end_bytes / MIB:.1f} MB ({self.end_messages} messages), "
            f"{saved:.1f}% smaller, {fewer:.1f}% fewer messages"
        )


@dataclass(slots=True)
class CleanerMetrics:
    """Kafka's gauges of the log cleaner (kafka.log:type=LogCleaner and LogCleanerManager).

    The maxima are over the last cleaning of each thread.
    """

    last: dict[int, CleaningStats]  # by thread
    last_run_ms: int = -1
    max_compaction_delay_ms: int = 0
    max_dirty_ratio: float = 0.0
    dead_threads: int = 0

    @property
    def max_buffer_utilization_percent(self) -> int:
        return int(100 * max((each.map_utilization for each in self.last.values()), default=0.0))

    @property
    def cleaner_recopy_percent(self) -> int:
        start = sum(each.start_bytes for each in self.last.values())
        return int(100 * sum(each.end_bytes for each in self.last.values()) / max(start, 1))

    @property
    def max_clean_time_secs(self) -> int:
        return int(max((each.seconds for each in self.last.values()), default=0.0))
