"""A log directory with everything that the storage layer writes so far, for Kafka's own tools to read."""

from __future__ import annotations

from runtime.os_files import OsFileSystem
from storage.log_config import LogConfig
from storage.log_manager import LogManager
from storage.partition_log import PartitionLog
from tests.support.logs import START_MS, append, batch, checked, marker, open_manager

CONFIG = LogConfig(segment_bytes=60_000, index_interval_bytes=2000)
CODECS = range(5)


def fill(log: PartitionLog, rounds: int = 40) -> None:
    """Batches of all codecs and sizes, idempotent ones, epochs, times that go back, several to a turn."""
    sequences = {7: 0, 8: 0}
    for number in range(rounds):
        epoch = number // 15
        for codec in CODECS:
            times = [START_MS + number * 1000 - (i * 37) % 900 for i in range(1 + (number * 7 + codec) % 9)]
            data = batch(len(times), ts=times, size=(number * 53) % 900, codec=codec, key=b"k%d" % codec)
            log.append_as_leader(checked(data), epoch, START_MS)
        for producer in sequences:
            count = 1 + number % 3
            data = batch(
                count, ts=START_MS + number, producer=producer, epoch=0, sequence=sequences[producer]
            )
            sequences[producer] += count
            log.append_as_leader(checked(data), epoch, START_MS)
        if number % 4 == 0:
            log.write_pending()
    append(log, batch(1, ts=START_MS, size=30_000), epoch=9)


def fill_transactions(log: PartitionLog) -> None:
    """Two producers whose transactions overlap and end either way; a third one's stays open."""
    sequences = {21: 0, 22: 0, 23: 0}
    for number in range(30):
        for producer in (21, 22):
            for _ in range(1 + number % 3):
                data = batch(
                    2, ts=START_MS + number, producer=producer, epoch=0, sequence=sequences[producer],
                    transactional=True, size=400,
                )  # fmt: skip
                sequences[producer] += 2
                log.append_as_leader(checked(data), 9, START_MS)
            if (number + producer) % 2:
                end = marker(producer, 0, commit=number % 4 < 2, coordinator_epoch=1)
                log.append_as_leader(checked(end), 9, START_MS, False)
        log.write_pending()
    data = batch(1, ts=START_MS, producer=23, epoch=4, sequence=0, transactional=True)
    append(log, data, epoch=9)


def filled_directory(path: str, *, close: bool = True) -> LogManager:
    """`t-0` and `t-1` (never written) under `path`; closed cleanly or only flushed."""
    manager = open_manager(OsFileSystem(), (path,), CONFIG)
    log = manager.get_or_create("t", 0, bytes(range(1, 17)))
    manager.get_or_create("t", 1, bytes(range(1, 17)))
    fill(log)
    fill_transactions(log)
    log.move_start(3)
    if close:
        manager.close()
    else:
        log.flush()
    return manager
