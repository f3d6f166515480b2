"""Partition logs for tests: a fixed clock, batches in one line, a manager on any file system."""

from __future__ import annotations

from collections.abc import Sequence

from protocol.records.batch import Record, batches, read_header, records
from protocol.records.builder import build_batch
from protocol.records.control import build_end_marker
from protocol.records.rules import Checked, trusted_batch
from runtime.entropy import SeededRandom
from runtime.files import FileSystem
from storage.log_config import LogConfig
from storage.log_manager import LogManager
from storage.partition_log import PartitionLog
from storage.producers.entry import ProducerEntry

CLUSTER = "abcdefghijklmnopqrstuv"
TOPIC_ID = bytes(range(1, 17))
START_MS = 1_700_000_000_000


def facts(entry: ProducerEntry) -> tuple[object, ...]:
    """All that is known of a producer, comparable."""
    return (
        entry.producer_id,
        entry.epoch,
        tuple(entry.batches),
        entry.coordinator_epoch,
        entry.last_timestamp,
        entry.current_txn_first_offset,
    )


class FixedClock:
    """Time that moves when told."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self.ms = now_ms

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000

    def worked(self) -> float:
        return self.ms / 1000


def close_clean(log: PartitionLog) -> None:
    """As the manager closes each log at a clean stop."""
    job = log.prepare_close()
    if job is not None:
        job.run()
        log.closed_clean()
    log.close()


def batch(
    count: int = 1,
    *,
    ts: int | Sequence[int] = START_MS,
    size: int = 20,
    producer: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    codec: int = 0,
    key: bytes | None = None,
    base: int = 0,
    leader_epoch: int = -1,
    transactional: bool = False,
) -> bytearray:
    """A batch of `count` records with values of `size` bytes; `ts` for all, or one for each."""
    times = [ts] * count if isinstance(ts, int) else list(ts)
    rows = [Record(base + i, at, key, bytes([i % 251]) * size) for i, at in enumerate(times)]
    return build_batch(
        rows,
        base_offset=base,
        codec=codec,
        producer_id=producer,
        producer_epoch=epoch if producer < 0 or epoch >= 0 else 0,
        base_sequence=sequence,
        leader_epoch=leader_epoch,
        transactional=transactional,
    )


def marker(
    producer: int, epoch: int, *, commit: bool, base: int = 0, coordinator_epoch: int = 0
) -> bytearray:
    return build_end_marker(
        commit,
        producer_id=producer,
        producer_epoch=epoch,
        coordinator_epoch=coordinator_epoch,
        timestamp=START_MS,
        base_offset=base,
        leader_epoch=0,
    )


def checked(data: bytearray) -> Checked:
    return trusted_batch(data)


def open_manager(
    files: FileSystem,
    paths: Sequence[str] = ("/logs",),
    config: LogConfig | None = None,
    clock: FixedClock | None = None,
    seed: bytes = b"logs",
    broker_id: int = 1,
) -> LogManager:
    """A manager that is open and loaded."""
    settings = config or LogConfig()
    manager = LogManager(files, clock or FixedClock(), SeededRandom(seed), paths, lambda topic: settings)
    manager.open(CLUSTER, broker_id)
    manager.load()
    return manager


def append(log: PartitionLog, data: bytearray, epoch: int = 0, now_ms: int = START_MS) -> int:
    """Append and write one batch; its base offset. Everything written counts as committed."""
    appended = log.append_as_leader(checked(data), epoch, now_ms)
    log.write_pending()
    log.set_high_watermark(log.end_offset)
    return appended.base_offset


def read_offsets(log: PartitionLog, start: int | None = None, max_bytes: int = 1 << 20) -> list[int]:
    """Offsets of all records from `start` to the end, by reads as a consumer makes them."""
    return [record.offset for record in read_records(log, start, max_bytes)]


def read_records(log: PartitionLog, start: int | None = None, max_bytes: int = 1 << 20) -> list[Record]:
    offset = log.start_offset if start is None else start
    found: list[Record] = []
    while offset < log.end_offset:
        data = log.read(offset, max_bytes, log.end_offset).to_bytes()
        if not data:
            break
        for at, _ in batches(data):
            for record in records(data, at):
                if record.offset >= offset:
                    found.append(record)
                    offset = record.offset + 1
            offset = max(offset, read_header(data, at).last_offset + 1)  # compaction leaves gaps
    return found
