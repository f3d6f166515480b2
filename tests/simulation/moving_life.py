"""A log's life on a disk with two log directories, between which its partition is moved all the time."""

from __future__ import annotations

from replication.log_dir_moves import Move
from replication.partition import Partition
from tests.simulation.log_life import LogLife
from tests.support.logs import TOPIC_ID, FixedClock, open_manager
from tests.support.moves import begin_move, copy_some, hosted


class MovingLife(LogLife):
    """Each step of a move is a step of its own, so that appends and deaths come between any two."""

    STEPS = (
        *(("append",) * 8),
        "roll",
        "flush",
        "sync",
        "checkpoint",
        "epoch",
        "delete",
        "retention",
        *(("move",) * 9),
    )
    partition: Partition
    move: Move | None = None
    moved = opened = 0

    def open(self) -> None:
        self.clock = FixedClock()
        self.opened += 1
        self.manager = open_manager(
            self.files, ("/a", "/b"), config=self.config, clock=self.clock, seed=b"%d" % self.opened
        )
        self.partition = hosted(self.manager.get_or_create("t", 0, TOPIC_ID))
        self.log = self.partition.log
        self.log.sync_later = False  # here every append waits for the sync that flush.messages wants
        self.log.set_high_watermark(self.log.end_offset)
        self.jobs = []
        self.manager.on_flush_job(self.jobs.append)
        self.move = None

    def _sync(self) -> None:
        """A job may be of a log that was moved away or given up since."""
        while self.jobs:
            job = self.jobs.pop(0)
            try:
                job.run()
            except OSError as error:
                job.finish(error)
            else:
                job.finish()
        assert not any(directory.offline for directory in self.manager.dirs)
        self._note_recovery_point()

    def _move(self) -> None:
        """The next step of a move, most times."""
        dirs, move = self.manager.dirs, self.move
        if move is None or move.is_over():
            target = dirs[1] if self.log.directory is dirs[0] else dirs[0]
            found = self.manager.futures.get("t", 0)
            assert found is None or found.directory is target
            self.move = begin_move(self.manager, self.partition, target, self.clock)
        elif self.chance.random() < 0.1:
            self.manager.futures.drop("t", 0)
        elif not copy_some(move, self.chance.choice([1, 300, 100_000])):
            self._change_over(move)

    def _change_over(self, move: Move) -> None:
        job, write = move.prepare()
        job.run()
        write()
        job.finish()
        if self.chance.random() < 0.3:
            self._append()
        if move.catch_up() and (move.ready() or move.insist()):
            settle = move.finish()
            self.log = self.partition.log
            self.log.sync_later = False
            self.moved += 1
            if self.chance.random() < 0.5:
                self._append()
            settle()
