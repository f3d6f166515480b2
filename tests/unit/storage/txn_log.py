"""A log with producers and their transactions, for tests."""

import contextlib

import pytest

from protocol.records.rules import trusted_batch
from storage.errors import AppendRefused
from storage.log_config import LogConfig
from tests.simulation.files import SimFileSystem
from tests.support.logs import START_MS, TOPIC_ID, FixedClock, batch, marker, open_manager


class Log:
    """A log of one partition, and producers whose sequences run on."""

    def __init__(self, config=None, files=None):
        self.files = files or SimFileSystem()
        self.config = config or LogConfig()
        self.clock = FixedClock()
        self.sequences = {}
        self.open()

    def open(self):
        self.manager = open_manager(self.files, config=self.config, clock=self.clock)
        self.log = self.manager.get_or_create("t", 0, TOPIC_ID)

    def restart(self, *, clean=True):
        mark = self.log.high_watermark
        if clean:
            self.manager.close()
        else:
            self.manager.abandon()
        self.open()
        self.log.set_high_watermark(mark)

    def stage(self, data, **how):
        return self.log.append_as_leader(trusted_batch(data), 0, START_MS, **how)

    def write(self, data, **how):
        appended = self.stage(data, **how)
        self.log.write_pending()
        return appended.base_offset

    def data(self, producer, count=1, epoch=0, **how):
        """A transactional batch; its base offset."""
        first = self.sequences.get((producer, epoch), 0)
        base = self.write(
            batch(count, producer=producer, epoch=epoch, sequence=first, transactional=True), **how
        )
        self.sequences[producer, epoch] = first + count
        return base

    def plain(self, count=1):
        return self.write(batch(count))

    def abort(self, producer, epoch=0, coordinator_epoch=0):
        return self.end(producer, epoch, coordinator_epoch, commit=False)

    def commit(self, producer, epoch=0, coordinator_epoch=0):
        return self.end(producer, epoch, coordinator_epoch, commit=True)

    def end(self, producer, epoch, coordinator_epoch, *, commit):
        return self.write(marker(producer, epoch, commit=commit, coordinator_epoch=coordinator_epoch))

    def replicate(self, offset=None):
        self.log.set_high_watermark(self.log.end_offset if offset is None else offset)

    def fetched_aborted(self, offset, max_bytes=1 << 20):
        found = self.log.read(offset, max_bytes, self.log.last_stable_offset)
        return [(txn.producer_id, txn.first_offset) for txn in self.log.aborted_within(offset, found)]


@contextlib.contextmanager
def refused(error):
    with pytest.raises(AppendRefused) as caught:
        yield
    assert caught.value.error is error
