"""Opening a partition directory: leftovers, segments, and what a crash left behind.

After a clean stop nothing is read but the end of the active segment; where that is no batch any more, it is
read as after a crash. After anything else the segments from the one that holds the recovery point on are read
wholly: every CRC is checked, both indexes, the leader epochs and the producers are rebuilt, and the log is
cut at the first batch that is torn or wrong; segments behind the cut go. Files below the recovery point are
trusted, as Kafka trusts them.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from runtime.files import FileSystem
from storage import names, scan
from storage.append import replay_batch
from storage.errors import CorruptLog
from storage.leader_epochs import LeaderEpochs
from storage.local_log import LocalLog
from storage.producers.state import ProducerState
from storage.segment import Segment

if TYPE_CHECKING:
    from storage.partition_log import PartitionLog

logger = logging.getLogger(__name__)


def load_log(log: PartitionLog, *, clean: bool, recovery_point: int, log_start: int, now_ms: int) -> None:
    """Fill in a log from its directory.

    `log_start` and `recovery_point` come from the checkpoints (0 where there is none). Raises OSError,
    ValueError for a file name that no log has.
    """
    local = log.local
    found = remove_leftovers(local.files, local.directory)
    producers: ProducerState | None = None
    for segment in open_segments(local, found, now_ms):
        local.segments.add(segment)
    if not len(local.segments):
        local.new_segment(log_start, now_ms)
    start = max(log_start, local.segments.first.base_offset)
    indexed = {names.offset_of(n) for n in found if n.endswith(names.OFFSET_INDEX)}
    incomplete = [s for s in local.segments if s.base_offset not in indexed and s.size]
    if clean and not local.segments.active.has_sound_index():
        logger.warning("%s: its index is damaged and made anew", local.segments.active.path(names.LOG))
        incomplete.append(local.segments.active)
    end = 0
    if clean and not incomplete:
        try:
            end = local.segments.active.find_end_offset()
        except CorruptLog as error:
            path = local.segments.active.path(names.LOG)
            logger.warning("%s was whole when it was closed: %s", path, error)
            incomplete.append(local.segments.active)
    untouched = clean and not incomplete and local.segments.active.base_offset in indexed
    if clean and not incomplete:
        local.recovery_point = end
        local.mark_known()
    else:
        first = local.segments.floor(recovery_point) if not clean else None
        recover_from = min(
            [s.base_offset for s in incomplete] + ([first.base_offset] if first else []), default=0
        )
        producers = recover(local, log.leader_epochs, recover_from, now_ms)
        end = local.segments.active.find_end_offset()
        local.recovery_point = min(recovery_point, end) if not clean else end
    if end < start:
        logger.warning("%s ends at %d, below its start %d: it begins anew there", log.name, end, start)
        local.restart_at(start, now_ms)
        log.leader_epochs.clear()
        producers = ProducerState(local.files, local.directory)
        producers.clear(start)
        end, untouched = start, False
    log.leader_epochs.restrict(start, end)
    log.adopt_producers(producers)
    local.flushed_position = local.segments.active.size if clean else 0
    log.opened(start, end)
    if untouched:
        log.clean_end = end


def open_segments(local: LocalLog, found: list[str], now_ms: int) -> list[Segment]:
    """A segment for each `.log` file; index files without one are removed."""
    bases = {names.offset_of(n) for n in found if n.endswith(names.LOG)}
    for name in found:
        if name.endswith((names.OFFSET_INDEX, names.TIME_INDEX, names.TXN_INDEX)):
            if names.offset_of(name) not in bases:
                local.files.remove(f"{local.directory}/{name}")
        elif name.endswith(names.SNAPSHOT):
            names.offset_of(name)
    return [Segment(local.files, local.directory, base, now_ms=now_ms) for base in sorted(bases)]


def remove_leftovers(files: FileSystem, directory: str) -> list[str]:
    """Finish or undo what a crash interrupted (deletion, cleaning, splitting); the files that remain."""
    found = files.list_dir(directory)
    if not any(name.endswith((names.DELETED, names.CLEANED, names.SWAP)) for name in found):
        return found
    gone = [n for n in found if n.endswith(names.DELETED) and not n.endswith(".checkpoint.deleted")]
    cleaned = [n for n in found if n.endswith(names.CLEANED)]
    swap = [n for n in found if n.endswith(names.SWAP)]
    if cleaned:
        lowest = min(names.offset_of(n) for n in cleaned)
        unfinished = [n for n in swap if names.offset_of(n) >= lowest]
        gone += cleaned + unfinished
        swap = [n for n in swap if n not in unfinished]
    gone += _replaced_by(files, directory, found, swap)
    for name in gone:
        files.remove(f"{directory}/{name}")
    for name in swap:
        files.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(names.SWAP)}")
    return files.list_dir(directory)


def _replaced_by(files: FileSystem, directory: str, found: list[str], swap: list[str]) -> list[str]:
    """The files whose offsets finished `.swap` segments cover."""
    logs = [n for n in swap if n.endswith(names.LOG + names.SWAP)]
    if not logs:
        return []
    end = 0
    for name in logs:
        handle = files.open(f"{directory}/{name}")
        end = max(end, names.offset_of(name))
        for facts in scan.scan(handle, 0, handle.size()):
            end = max(end, facts.last_offset + 1)
        handle.close()
    start = min(names.offset_of(n) for n in swap)
    numbered = [
        n for n in found if n.endswith((names.LOG, names.OFFSET_INDEX, names.TIME_INDEX, names.TXN_INDEX))
    ]
    return [n for n in numbered if start <= names.offset_of(n) < end]


def recover(local: LocalLog, epochs: LeaderEpochs, from_offset: int, now_ms: int) -> ProducerState:
    """Read the segments from the one that holds `from_offset` on, and cut the log where it stops being right.

    Returns the producers' state at the new end, of which a snapshot is taken.
    """
    segments = local.segments.from_offset(from_offset)
    producers = load_producers(local, segments[0].base_offset)
    before = local.segments.floor(segments[0].base_offset - 1)
    if before is not None:
        before.complete_time_index()
    for snapshot in producers.snapshot_offsets():
        if snapshot > segments[0].base_offset:
            local.files.remove(producers.path_of(snapshot))
    for number, segment in enumerate(segments):
        cut = recover_segment(segment, local, epochs, producers)
        if segment is not segments[-1] or cut:
            segment.seal()
        if cut:
            later = segments[number + 1 :]
            for lost in later:
                logger.warning("%s: segment %d behind the cut goes", local.directory, lost.base_offset)
            local.set_aside(later, now_ms)
            break
        producers.take_snapshot()
    producers.take_snapshot()
    return producers


def recover_segment(segment: Segment, local: LocalLog, epochs: LeaderEpochs, producers: ProducerState) -> int:
    """Check one segment batch by batch and rebuild what is derived from it; the bytes that were cut off."""
    segment.reset_indexes()
    interval = local.config.index_interval_bytes
    end, previous, size = 0, segment.base_offset - 1, segment.handle.size()
    latest_epoch = epochs.latest_epoch
    segment.first_timestamp = -1
    reason = ""
    try:
        for facts in scan.verified(segment.handle, 0, size):
            if facts.last_offset <= previous or not segment.fits(facts.last_offset):
                reason = f"offset {facts.last_offset} after {previous}"
                break
            if end == 0:
                segment.first_timestamp = facts.max_timestamp
            if facts.max_timestamp > segment.max_timestamp:
                segment.raise_max_timestamp(facts.max_timestamp, facts.last_offset)
            if facts.position - segment.last_indexed_position > interval:
                segment.add_index_entry(
                    facts.last_offset, facts.position, segment.max_timestamp, segment.max_timestamp_offset
                )
            if facts.leader_epoch > latest_epoch:
                epochs.assign(facts.leader_epoch, facts.base_offset)
                latest_epoch = facts.leader_epoch
            if facts.producer_id >= 0:
                batch = segment.handle.read_at(facts.position, facts.size) if facts.control else b""
                replay_batch(producers, facts, batch)
            end = facts.position + facts.size
            previous = facts.last_offset
    except CorruptLog as error:
        reason = str(error)
    producers.map_end_offset = max(producers.map_end_offset, previous + 1)
    if end < size:
        logger.warning(
            "%s: cut %d bytes at position %d, offset %d: %s",
            segment.path(names.LOG), size - end, end, previous + 1, reason,
        )  # fmt: skip
        segment.handle.truncate(end)
        segment.handle.sync()  # or the next power cut would mix the lost tail with what is written now
    segment.size = end
    return size - end


def load_producers(local: LocalLog, end_offset: int) -> ProducerState:
    """The producers as of `end_offset`: the newest snapshot below it, and the log from there on."""
    producers = ProducerState(local.files, local.directory)
    offset = producers.load(local.segments.first.base_offset, end_offset)
    for segment in local.segments.from_offset(offset):
        if offset >= end_offset or segment.base_offset >= end_offset:
            break
        _, position = segment.offset_index.lookup(offset)
        for facts in scan.scan(segment.handle, position, segment.size):
            if facts.last_offset < offset:
                continue
            if facts.base_offset >= end_offset:
                break
            if facts.producer_id >= 0:
                batch = segment.handle.read_at(facts.position, facts.size) if facts.control else b""
                replay_batch(producers, facts, batch)
    producers.map_end_offset = end_offset
    return producers
