"""Moving a partition between log directories, step by step and without threads."""

from __future__ import annotations

from replication.log_dir_moves import Move
from replication.metadata.image import PartitionImage
from replication.partition import Partition
from storage.log_dirs import LogDir
from storage.log_manager import LogManager
from storage.partition_log import PartitionLog
from tests.support.logs import TOPIC_ID, FixedClock


def hosted(log: PartitionLog) -> Partition:
    """A partition of this broker, which leads it."""
    partition = Partition(log.topic, log.partition, TOPIC_ID, log)
    partition.apply(PartitionImage(log.partition, 1, 0, 0, (1,), (1,)), 1)
    return partition


def begin_move(manager: LogManager, partition: Partition, directory: LogDir, clock: FixedClock) -> Move:
    """A new copy, or the one that is there."""
    key = partition.topic, partition.index
    future = manager.futures.get(*key) or manager.futures.create(partition.log, directory)
    return Move(partition, future, manager, clock)


def copy_some(move: Move, max_bytes: int = 1) -> bool:
    """Copy one piece; whether there was one."""
    piece = move.take(max_bytes)
    if piece is None:
        return False
    try:
        piece.load()
    finally:
        piece.release()
    move.append(piece)
    return True


def change_over(move: Move) -> None:
    """Copy what is left and let the copy take the partition's place."""
    while copy_some(move, 1 << 20):
        pass
    job, write = move.prepare()
    job.run()
    write()
    job.finish()
    assert move.catch_up()
    assert move.ready()
    move.finish()()
