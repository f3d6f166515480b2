"""A pass of the cleaner in one call, without worker processes."""

from __future__ import annotations

from storage.cleaner.choice import assess
from storage.cleaner.manager import CleanerManager, CleanerSettings, Cleaning
from storage.cleaner.session import Pass
from storage.log_manager import LogManager
from storage.partition_log import PartitionLog
from tests.support.logs import FixedClock


def clean_log(
    manager: LogManager,
    log: PartitionLog,
    clock: FixedClock | None = None,
    *,
    memory_bytes: int = 1 << 20,
    window_bytes: int = 64 << 10,
    took=lambda size: None,
    flush: bool = True,
) -> Cleaning:
    """Clean what there is to clean, whether the log is due or not."""
    if flush:  # what is not synced is not cleaned
        log.flush()
    cleaner = CleanerManager(manager, (clock or FixedClock()).now_ms)
    now_ms = (clock or FixedClock()).now_ms()
    dirty = assess(log, log.directory.clean_offsets.get((log.topic, log.partition)), now_ms)
    cleaning = cleaner.begin(dirty, CleanerSettings(memory_bytes=memory_bytes, window_bytes=window_bytes))
    job = Pass(log.local.files, cleaning.request, took)
    cleaner.mapped(cleaning, job.build_map())
    for sources in cleaning.groups:
        cleaner.swap_in(cleaning, sources, job.clean(sources, cleaner.last_records(cleaning)))()
    cleaner.finish(cleaning, 0)
    log.directory.clean_offsets.write_if_changed()
    return cleaning
