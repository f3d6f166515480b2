"""One partition that a fetcher copies: where it stands, and what one row of a fetch does to it.

A row either continues the log, tells that the log went another way than the leader's, or is an error.
Everything here is synchronous. What a row leads to is an `Outcome`; the fetcher acts on it.
"""

from __future__ import annotations

import logging
from enum import Enum

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.cluster.truncation import truncation_offset
from replication.partition import Partition
from storage.append import UnexpectedAppendOffset
from storage.errors import AppendRefused, StorageError, StorageFailed
from storage.leader_epochs import EpochEnd

Row = m.FetchResponse.PartitionData
NO_EPOCH = -1

_log = logging.getLogger(__name__)

_AGAIN = {
    ErrorCode.UNKNOWN_LEADER_EPOCH,  # the leader hears of its role later than we
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
}


class Outcome(Enum):
    """What the fetcher does with the partition next."""

    GO_ON = "go on"  # fetch from where the log ends now
    BACK_OFF = "back off"
    OUT_OF_RANGE = "out of range"  # ask the leader where its log begins and ends
    FAILED = "failed"  # not to be fetched until a new LeaderAndIsr


class Followed:
    """State of one partition. `lag` is how far the leader's high watermark is ahead, -1 before the first row.

    `delayed_until_ms` is 0 while it is not held back; `asked_from` is the offset that the leader was told
    last, -1 if it was told none.
    """

    __slots__ = ("asked_from", "delayed_until_ms", "lag", "leader_epoch", "offset", "partition", "pause_ms")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.offset = partition.log.end_offset
        self.asked_from = -1
        self.lag = -1
        self.delayed_until_ms = 0
        self.pause_ms = 0  # after the last refusal; 0 where the last answer was none

    def __repr__(self) -> str:
        return f"{self.partition}@{self.offset}"

    @property
    def key(self) -> tuple[str, int]:
        """What fetchers know it by."""
        return self.partition.topic, self.partition.index

    @property
    def awaits_answer(self) -> bool:
        """Whether a row that comes now is an answer to where the partition stands."""
        return self.asked_from == self.offset and not self.delayed_until_ms

    @property
    def in_sync(self) -> bool:
        """Whether it had all that was committed when the leader last told."""
        return self.lag == 0

    def prepare(self, now_ms: int) -> None:
        """Before the first fetch: a log that knows no epochs can't be compared, and begins anew from what is
        committed. Raises StorageFailed.
        """
        log = self.partition.log
        try:
            if log.leader_epochs.latest_epoch == NO_EPOCH and log.end_offset > log.high_watermark:
                self._cut(log.high_watermark, now_ms)
        except OSError as error:
            log.failed(error, "replication")
        self.offset = log.end_offset

    def take(self, row: Row, now_ms: int) -> Outcome:
        """Apply the leader's answer to a fetch from `offset`."""
        if self.offset != self.partition.log.end_offset:
            _log.error("%s was fetched, but its log ends elsewhere", self)
            return Outcome.FAILED
        if not row.error_code:
            try:
                self._apply(row, now_ms)
            except AppendRefused as refused:
                return self._refused(refused)
            except StorageFailed as failed:
                return self._not_stored(failed)
            except StorageError as failed:
                _log.error("%s is not fetched any more: %s", self, failed)
                return Outcome.FAILED
            return Outcome.GO_ON
        error = ErrorCode(row.error_code)
        if error == ErrorCode.OFFSET_OUT_OF_RANGE:
            return Outcome.OUT_OF_RANGE
        if error == ErrorCode.FENCED_LEADER_EPOCH:
            _log.info("%s: the leader has a newer epoch than %d", self, self.leader_epoch)
            return Outcome.FAILED
        if error not in _AGAIN:
            _log.error("Fetching %s: %s", self, error.name)
        return Outcome.BACK_OFF

    def _apply(self, row: Row, now_ms: int) -> None:
        try:
            if row.diverging_epoch.epoch >= 0:
                self._truncate(row, now_ms)
            else:
                self._append(row, now_ms)
        except OSError as error:
            self.partition.log.failed(error, "replication")

    def _not_stored(self, failed: StorageFailed) -> Outcome:
        """A disk without room may have some later; a log directory that failed is out of service."""
        self.offset = self.partition.log.end_offset
        if failed.offline:
            _log.error("%s is not fetched any more: %s", self, failed)
            return Outcome.FAILED
        _log.warning("%s waits for room: %s", self, failed)
        return Outcome.BACK_OFF

    def _refused(self, refused: AppendRefused) -> Outcome:
        _log.error("What the leader sent for %s cannot be appended: %s", self, refused)
        return Outcome.BACK_OFF if refused.error == ErrorCode.CORRUPT_MESSAGE else Outcome.FAILED

    def _truncate(self, row: Row, now_ms: int) -> None:
        """High watermark and log start of such a row do not count: they are of another history."""
        log = self.partition.log
        diverging = EpochEnd(row.diverging_epoch.epoch, row.diverging_epoch.end_offset)
        own = log.leader_epochs.end_offset_for(diverging.epoch, log.end_offset)
        cut = truncation_offset(diverging, own, log.end_offset)
        if cut < log.high_watermark:
            _log.warning("%s is cut to %d, below its high watermark %d", self, cut, log.high_watermark)
        self._cut(cut, now_ms)
        self.partition.committed_more()

    def _cut(self, offset: int, now_ms: int) -> None:
        """Cut the log at `offset`, or where the batch begins that holds it.

        A batch goes as a whole. If the log ended within it all the same, the next fetch would pass over the
        records from its begin to there, and the leader may have others in their place.
        """
        log = self.partition.log
        if log.start_offset <= offset < log.end_offset:
            batch = log.read(offset, 1, log.end_offset).to_bytes()
            offset = min(offset, int.from_bytes(batch[:8], "big"))
        log.truncate_to(offset, now_ms)
        self.offset = log.end_offset

    def _append(self, row: Row, now_ms: int) -> None:
        partition = self.partition
        log = partition.log
        mark, start = log.high_watermark, log.start_offset
        records = row.records
        if records:
            try:
                log.append_as_follower(records, now_ms)
            except UnexpectedAppendOffset as straddling:
                if straddling.last_offset < log.end_offset:
                    raise
                self._make_way(straddling.first_offset, now_ms)
                log.append_as_follower(records, now_ms)
            partition.begin_sync()
        self.offset = log.end_offset
        log.set_high_watermark(row.high_watermark)
        if row.log_start_offset > log.start_offset:
            log.move_start(min(row.log_start_offset, log.high_watermark))
        self.lag = max(row.high_watermark - self.offset, 0)
        if log.high_watermark != mark or log.start_offset != start:
            partition.committed_more()

    def _make_way(self, first_offset: int, now_ms: int) -> None:
        """The leader's batch begins before our end and goes beyond it, because its log begins within.

        An empty log may begin with the whole batch. Any other has other batches there, whose epochs the
        leader does not know any more: they are of another history, and go. Kafka gives such a one up.
        """
        log = self.partition.log
        if log.start_offset == log.end_offset:
            log.truncate_fully(first_offset, now_ms)
        else:
            _log.warning("%s is cut to %d, where the leader has another batch", self, first_offset)
            log.truncate_to(first_offset, now_ms)

    # The leader's log does not hold the offset

    def behind_the_end(self, leader_end: int, now_ms: int) -> bool:
        """Whether the leader's end was enough to know: it is below ours, so that ours is cut to it.

        Raises StorageFailed.
        """
        log = self.partition.log
        if leader_end >= log.end_offset:
            return False
        _log.warning("%s is cut to the leader's end %d", self, leader_end)
        self._cut(leader_end, now_ms)
        self._moved(leader_end)
        return True

    def begin_at(self, leader_start: int, leader_end: int, now_ms: int) -> None:
        """Go on from the leader's start, dropping the log where that lies beyond its end. Raises
        StorageFailed.
        """
        log = self.partition.log
        if leader_start > log.end_offset:
            _log.warning("%s begins anew at the leader's start %d", self, leader_start)
            log.truncate_fully(leader_start, now_ms)
        self._moved(leader_end)

    def _moved(self, leader_end: int) -> None:
        self.offset = self.partition.log.end_offset
        self.lag = max(leader_end - self.offset, 0)
        self.partition.committed_more()
