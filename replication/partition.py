"""One partition on this broker: its role, epochs, in-sync replicas and log, and who waits for news of it.

Everything here is synchronous and runs on the event loop; nothing awaits between a check and the append that
relies on it. An append goes in steps, so that one turn of the loop costs one write for each log:

- `append` checks leadership and in-sync replicas and stages the batch in the log: offsets are assigned.
- `write_pending`, called once for each partition of the turn, writes what is staged. Only then the high
  watermark moves and the fetch sessions that watch the partition have news.
- `wake`, called after the answers of the turn have left, resumes parked fetches. They run again from the
  start.

High watermark: with an ISR of one it is the end of what is written. It stands still while the ISR is smaller
than min(min.insync.replicas, number of replicas), and before records that flush.messages wants synced first.
It never goes back while this broker leads. With other replicas it is the business of `leadership`; how roles
come in a cluster is in `replication.roles`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from protocol.errors import ErrorCode
from replication.epoch_fence import check_leader_epoch
from replication.metadata.image import NO_LEADER, PartitionImage
from replication.sync_gate import SyncGate
from replication.waiting import Commits, Waiter, wake_all
from storage.append import NOT_HELD
from storage.errors import AppendRefused

if TYPE_CHECKING:
    from protocol.records.rules import Checked
    from replication.fetch_session import FetchSession, Watch
    from replication.leadership import Leadership
    from storage.append import Appended
    from storage.log_config import LogConfig
    from storage.partition_log import PartitionLog
    from storage.producers.verification import VerificationGuard

ACKS_ALL = -1


class Partition:
    """A replica of one partition. `high_watermark`, offsets and configuration are those of `log`.

    `waiters` holds parked fetches, `watches` the fetch sessions' entries for this partition; both are dicts
    because their order is the order of service. `commits` holds those with acks=all by their last offset.
    `fenced`: this broker may have been replaced without knowing, so nothing is promised without the others.
    """

    __slots__ = (
        "commits",
        "fenced",
        "gate",
        "index",
        "is_leader",
        "isr",
        "leader_epoch",
        "leader_id",
        "leadership",
        "log",
        "partition_epoch",
        "removed",
        "replicas",
        "topic",
        "topic_id",
        "waiters",
        "watches",
    )

    def __init__(self, topic: str, index: int, topic_id: bytes, log: PartitionLog) -> None:
        self.topic = topic
        self.index = index
        self.topic_id = topic_id
        self.log = log
        log.sync_later = True
        self.gate: SyncGate | None = None
        self.is_leader = False
        self.leader_id = NO_LEADER
        self.leader_epoch = -1
        self.partition_epoch = -1
        self.isr: tuple[int, ...] = ()
        self.replicas: tuple[int, ...] = ()
        self.removed = False
        self.fenced = False
        self.leadership: Leadership | None = None
        self.commits: Commits | None = None
        self.waiters: dict[Waiter, None] = {}
        self.watches: dict[Watch, None] = {}

    def __repr__(self) -> str:
        return f"{self.topic}-{self.index}"

    # Roles

    def apply(self, image: PartitionImage, node_id: int) -> None:
        """Take the role that the image gives this broker. An older image than the known one changes nothing.

        Becoming leader under a newer epoch while running starts that epoch at the end of the log, even if no
        record follows. At the start of the broker, and for an empty log, the first append does it: reading
        and writing one small file for each of thousands of partitions would delay the start, and until then
        `epoch_end` answers as if it had been done. A leader never truncates.
        """
        if image.partition_epoch < self.partition_epoch:
            return
        known = self.leader_epoch >= 0
        newer = image.leader_epoch > self.leader_epoch
        self.partition_epoch = image.partition_epoch
        self.leader_id, self.leader_epoch = image.leader, image.leader_epoch
        self.isr, self.replicas = image.isr, image.replicas
        was_leader, self.is_leader = self.is_leader, image.leader == node_id
        if self.is_leader:
            if newer and known and self.log.end_offset > 0:
                self.log.assign_epoch(image.leader_epoch)
            self.advance_high_watermark()
        if newer or was_leader != self.is_leader:
            self.role_changed()

    def role_changed(self) -> None:
        """Everybody who waits looks again. Who waits for a commit goes on waiting where this broker still
        leads, under another epoch, and hears 6 where it does not.
        """
        commits = self.commits
        if commits:
            wake_all(commits.take(self.log.high_watermark) if self.is_leader else commits.take_all(), self)
        self.tell_watches()
        self.wake()

    def retire(self) -> None:
        """The partition leaves this broker: everybody who waits or watches looks again and finds it gone."""
        self.removed = True
        self.is_leader = False
        self.leadership = None
        if self.commits:
            wake_all(self.commits.take_all(), self)
        watches, self.watches = self.watches, {}
        sessions: dict[FetchSession, None] = {}
        for watch in watches:
            watch.partition = None
            watch.session.news[watch] = None
            sessions[watch.session] = None
        self.wake()
        wake_all((session.waiter for session in sessions if session.waiter is not None), self)

    def adopt_log(self, log: PartitionLog) -> None:
        """The log moved to another directory: this one has the same records and takes its place."""
        self.log = log
        log.sync_later = True
        self.gate = None  # the old one tells those who wait by it when its last sync ends
        self.advance_high_watermark()
        self.tell_watches()
        self.wake()

    @property
    def offline(self) -> bool:
        """Whether the disk of this replica failed (error 56)."""
        return self.log.directory.offline

    def check(self, requested_epoch: int, leader_required: bool = True) -> ErrorCode:
        """Whether a request with this leader epoch (-1: none) may read here: NONE, 56, 74, 75 or 6."""
        if self.log.directory.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        return check_leader_epoch(requested_epoch, self.leader_epoch, self.is_leader, leader_required)

    # Appends

    @property
    def min_isr(self) -> int:
        """How many in-sync replicas acks=all needs; never more than there are replicas."""
        return min(self.log.config.min_insync_replicas, len(self.replicas))

    def append(
        self,
        checked: Checked,
        acks: int,
        now_ms: int,
        check_order: bool = True,
        guard: VerificationGuard | None = None,
        transaction_version: int = 0,
    ) -> Appended:
        """Stage one checked batch; its buffer stays untouched until `write_pending`.

        What is said of sequences and transactions is the log's: see `PartitionLog.append_as_leader`.
        Raises AppendRefused (6 not the leader, 19 too few in-sync replicas for acks=all, what the log
        refuses) and StorageFailed; then nothing has changed.
        """
        if not self.is_leader:
            raise AppendRefused(
                ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{self} is led by broker {self.leader_id}, not by this one"
            )
        if acks == ACKS_ALL:
            if len(self.isr) < len(self.replicas) and len(self.isr) < self.min_isr:
                raise AppendRefused(
                    ErrorCode.NOT_ENOUGH_REPLICAS,
                    f"{len(self.isr)} replica(s) of {self} are in sync, but acks=all needs {self.min_isr}",
                )
        elif self.fenced:
            raise AppendRefused(
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
                f"this broker has lost touch with the cluster and may lead {self} no more",
            )
        return self.log.append_as_leader(
            checked, self.leader_epoch, now_ms, check_order, guard, transaction_version
        )

    def write_pending(self) -> None:
        """Write what is staged, then let it be seen. Raises StorageFailed; then none of it was appended.

        A roll in the middle of a turn writes, too, and may fail: whoever staged before it sees by
        `log.failures`, compared with its value at the time of staging, that his batch is gone.
        """
        self.log.write_pending()
        self.begin_sync()
        self.advance_high_watermark()
        if self.watches:
            self.tell_watches()

    def begin_sync(self) -> None:
        """Have what flush.messages wants on the disk before it is seen synced. Raises StorageFailed."""
        if self.log.hold_from != NOT_HELD:
            self.gate = self.gate or SyncGate(self.log, self._synced)
            self.gate.begin()

    def committed(self, last_offset: int) -> ErrorCode | None:
        """What acks=all is told about a written batch: None while it waits for replicas, NONE when every
        in-sync replica has it, 20 when too few are left, 6 when this broker leads no more.
        """
        if not self.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.log.high_watermark <= last_offset:
            return None
        in_sync = len(self.isr) if self.leadership is None else len(self.leadership.maximal)
        if in_sync < self.min_isr:
            return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        return ErrorCode.NONE

    @property
    def alone(self) -> bool:
        """Whether a written batch is committed at once: no other replica exists, and none is in sync."""
        return self.leadership is None and len(self.isr) == 1

    def advance_high_watermark(self) -> None:
        """The log or the role is new: move the high watermark if it may move."""
        if self.leadership is not None:
            if self.leadership.appended() and self.commits:
                wake_all(self.commits.take(self.log.high_watermark), self)
            return
        log, isr = self.log, self.isr
        alone = self.is_leader and len(isr) == 1 and (len(self.replicas) == 1 or self.min_isr == 1)
        if alone:
            end = min(log.end_offset, log.hold_from)
            if end > log.high_watermark:
                log.set_high_watermark(end)

    def update_config(self, config: LogConfig) -> None:
        """Use new settings. With a lower min.insync.replicas more may be committed; Kafka waits for the next
        append or fetch to see that.
        """
        log, mark = self.log, self.log.high_watermark
        lower = config.min_insync_replicas < log.config.min_insync_replicas
        log.update_config(config)
        if lower and self.is_leader:
            if self.leadership is None:
                self.advance_high_watermark()
            else:
                self.leadership.advance()
            if log.high_watermark != mark:
                self.committed_more()

    def committed_more(self) -> None:
        """The high watermark moved, or a deletion went on, because of followers: tell who waits for that."""
        if self.commits:
            wake_all(self.commits.take(self.log.high_watermark), self)
        self.tell_watches()
        self.wake(followers=False)

    def await_commit(self, waiter: Waiter, last_offset: int) -> None:
        """Have `waiter.wake()` called when that offset is committed, or this broker leads no more."""
        if self.commits is None:
            self.commits = Commits()
        self.commits.add(waiter, last_offset)

    def _synced(self) -> None:
        """What waited for its sync may be seen."""
        if not self.removed:
            if self.leadership is None:
                self.advance_high_watermark()
            else:
                self.leadership.advance()
            self.committed_more()

    # News

    def wake(self, followers: bool = True) -> None:
        """Resume everybody who waits for this partition, in the order in which they came.

        The dict is replaced, not emptied: who is still unsatisfied parks again in the new one. What only
        consumers have to know leaves sessions of `followers` parked: they hear of it with their next fetch.
        """
        if self.watches:
            waiting = [
                watch.session
                for watch in self.watches
                if watch.session.waiter is not None and (followers or not watch.session.follower)
            ]
            wake_all((session.waiter for session in waiting if session.waiter is not None), self)
        if self.waiters:
            waiters, self.waiters = self.waiters, {}
            wake_all(waiters, self)

    def tell_watches(self) -> None:
        """Something that a fetch answer shows has changed: the sessions have to look again."""
        for watch in self.watches:
            watch.session.news[watch] = None

    def look_again(self) -> None:
        """The next request of each follower is to count, even if nothing has happened here until then.

        As news it could be lost: a request that waits is read again, and says nothing new by that.
        """
        for watch in self.watches:
            if watch.session.follower:
                watch.session.again[watch] = None

    # Offsets

    def read_limit(self, isolation: int) -> int:
        """The exclusive offset up to which a consumer of this isolation level may read."""
        return self.log.last_stable_offset if isolation else self.log.high_watermark

    def delete_records(self, offset: int) -> int:
        """Raise the start of the log to `offset` (-1: the high watermark) and return the new start.

        Raises StorageError: 1 out of range, 44 the log is only compacted, 56. The caller has the log manager
        persist the start before it answers.
        """
        start = self.log.delete_records(offset)
        self.tell_watches()
        return start

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """The largest epoch at or below `epoch` and its exclusive end offset; (-1, -1) if unknown.

        The current epoch counts from its first moment, also before the first record of it was written.
        """
        log = self.log
        if self.is_leader and epoch == self.leader_epoch:
            return epoch, log.end_offset
        if self.is_leader and epoch < self.leader_epoch:
            latest = log.leader_epochs.latest_epoch
            if 0 <= latest < epoch:
                return latest, log.end_offset
        found = log.leader_epochs.end_offset_for(epoch, log.end_offset)
        return found.epoch, found.end_offset
