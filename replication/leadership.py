"""What a leader does for a partition that has other replicas: followers, ISR, high watermark.

Made when this broker becomes leader of a partition with more than one replica, dropped when it leads no more.
A partition that is alone has none, and pays nothing.

- High watermark: the least log end over this replica, the members of the maximal ISR, and every live follower
  that is caught up (it will join next, and must then have all that is committed). It stands still while the
  committed ISR is smaller than min(min.insync.replicas, replicas), and never goes back. It stands still, too,
  while a member of the ISR has no replica any more: until the controller has taken it out of the ISR, or this
  leader has for its lag, a controller that takes over may have it lead. (Kafka does not wait for it.)
- One change of the ISR is in flight at most. Its answer counts only while it is the one that is pending: a
  newer leadership makes it void.

Synchronous; times are monotonic ms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from protocol.errors import ErrorCode
from replication import isr as rules
from replication.follower import Follower, Pulse
from replication.isr import IsrChange

if TYPE_CHECKING:
    from replication.metadata.image import PartitionImage
    from replication.partition import Partition

NOT_APPLIED = (ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA)
"""The controller says for certain that a change was not and will not be applied."""

UNCERTAIN = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.NEW_LEADER_ELECTED,
)
"""Somebody else has changed the partition: only a new LeaderAndIsr tells what holds. No use to ask again."""


@dataclass(slots=True, frozen=True)
class LeaderContext:
    """What leaders need of their broker. `now_ms` is monotonic; `alive` asks the metadata cache."""

    node_id: int
    lag_max_ms: int
    now_ms: Callable[[], int]
    alive: Callable[[int], bool]
    propose: Callable[[Partition, IsrChange], None]


@dataclass(slots=True, frozen=True)
class IsrVerdict:
    """The controller's answer to a change: an error, or what is stored now."""

    error: ErrorCode
    leader_epoch: int = -1
    partition_epoch: int = -1
    isr: tuple[int, ...] = ()


class Leadership:
    """See the module. `epoch_start` is where the log ended when the current leader epoch began."""

    __slots__ = (
        "_context",
        "_partition",
        "_waits",
        "deleting",
        "epoch_start",
        "followers",
        "maximal",
        "pending",
    )

    def __init__(self, partition: Partition, context: LeaderContext) -> None:
        self._partition = partition
        self._context = context
        self.followers: dict[int, Follower] = {}
        self.epoch_start = 0
        self.maximal: frozenset[int] = frozenset()
        self._waits = False  # for one of `maximal` that has no replica any more
        self.pending: IsrChange | None = None
        self.deleting = 0  # DeleteRecords requests that wait for followers

    def begin(self, state: PartitionImage, newer: bool, new_leader: bool) -> None:
        """A LeaderAndIsr names this broker as leader; `newer` epoch, `new_leader` if it did not lead before.

        Whatever change was in flight is void: its answer says nothing about this state.
        """
        node_id, now_ms = self._context.node_id, self._context.now_ms()
        known = self.followers
        self.followers = {
            broker_id: known.get(broker_id) or Follower(broker_id)
            for broker_id in state.replicas
            if broker_id != node_id
        }
        self._count(None, frozenset(state.isr))
        if newer:
            end_offset = self._partition.log.end_offset
            self.epoch_start = end_offset
            for broker_id, follower in self.followers.items():
                follower.reset(now_ms, end_offset, new_leader, broker_id in self.maximal)

    # Followers

    def fetched(
        self,
        broker_id: int,
        offset: int,
        log_start_offset: int,
        leader_end: int,
        pulse: Pulse | None = None,
        broker_epoch: int = -1,
    ) -> bool:
        """A follower read from `offset`; whether the high watermark moved, or a deletion may be complete.

        A fetch from before the follower's latest registration tells nothing about the log that it has now.
        """
        follower = self.followers.get(broker_id)
        if follower is None or 0 <= broker_epoch < follower.broker_epoch:
            return False
        follower.broker_epoch = max(follower.broker_epoch, broker_epoch)
        before, started = follower.end_offset, follower.log_start_offset
        follower.fetched(offset, log_start_offset, leader_end, self._context.now_ms(), pulse)
        if self.pending is None and broker_id not in self.maximal:
            self._consider(follower)
        moved = before != offset and self.advance()
        return moved or (self.deleting > 0 and started != log_start_offset)

    def _consider(self, follower: Follower) -> None:
        if follower.refused:
            self._partition.look_again()  # with its next fetch
            return
        mark = self._partition.log.high_watermark
        if rules.is_in_sync(follower, mark, self.epoch_start) and self._context.alive(follower.broker_id):
            change = rules.expanded(self._partition.isr, follower, self.followers)
            self._propose(change, change.maximal)

    def left(self, broker_id: int) -> None:
        """The follower's session does not ask for this partition any more."""
        follower = self.followers.get(broker_id)
        if follower is not None:
            follower.left()

    # The high watermark

    def appended(self) -> bool:
        """The log has grown: where nobody else is in sync the high watermark may follow at once."""
        return len(self.maximal) == 1 and self.advance()

    def advance(self) -> bool:
        """Move the high watermark as far as the rule allows; whether it moved."""
        partition = self._partition
        if self._waits or len(partition.isr) < partition.min_isr:
            return False
        log, maximal = partition.log, self.maximal
        end = log.end_offset
        waited_for = [
            follower
            for broker_id, follower in self.followers.items()
            if follower.end_offset < end and (broker_id in maximal or self._will_join(follower, end))
        ]
        mark = rules.high_watermark(min(end, log.hold_from), waited_for)
        if mark <= log.high_watermark:
            return False
        log.set_high_watermark(mark)
        return True

    def look(self) -> None:
        """Fewer may be waited for: move the high watermark if it may move, and tell who waits for that."""
        if self.advance():
            self._partition.committed_more()

    def _will_join(self, follower: Follower, end_offset: int) -> bool:
        """Kafka waits for one that was refused, too: for a broker that stops, until it is gone."""
        context = self._context
        if follower.refused:
            return False
        caught_up = follower.is_caught_up(end_offset, context.now_ms(), context.lag_max_ms)
        return caught_up and context.alive(follower.broker_id)

    def low_watermark(self) -> int:
        """The least log start over this replica and the live followers; -1 while one has not told it."""
        low = self._partition.log.start_offset
        for broker_id, follower in self.followers.items():
            if follower.log_start_offset < low and self._context.alive(broker_id):
                low = follower.log_start_offset
        return low

    # The ISR

    def lagging(self) -> list[int]:
        """Members of the ISR that are not caught up; empty while a change is in flight."""
        if self.pending is not None:
            return []
        context, end_offset = self._context, self._partition.log.end_offset
        now_ms = context.now_ms()
        gone = []
        for broker_id in self._partition.isr:
            follower = self.followers.get(broker_id)
            if follower is None:
                if broker_id != context.node_id:
                    gone.append(broker_id)
            elif not follower.is_caught_up(end_offset, now_ms, context.lag_max_ms):
                gone.append(broker_id)
        return gone

    def shrink(self) -> bool:
        """Propose the ISR without those that lag; whether there were any."""
        gone = self.lagging()
        if gone:
            change = rules.shrunk(self._partition.isr, gone, self.followers)
            self._propose(change, change.maximal)
        return bool(gone)

    def _propose(self, change: IsrChange, maximal: frozenset[int]) -> None:
        self._count(change, maximal)
        self._context.propose(self._partition, change)

    def _count(self, pending: IsrChange | None, maximal: frozenset[int]) -> None:
        """Count with these from now on, while that change is in flight."""
        self.pending, self.maximal = pending, maximal
        known = self.followers
        self._waits = len(maximal) > 1 and any(
            each not in known and each != self._context.node_id for each in maximal
        )

    def decided(self, change: IsrChange, verdict: IsrVerdict) -> bool:
        """The controller answered; True if the change has to be sent again.

        After an answer that leaves open what is stored the change stays pending until the next LeaderAndIsr.
        """
        if self.pending is not change or verdict.error in UNCERTAIN:
            return False
        partition = self._partition
        if verdict.error in NOT_APPLIED:
            now_ms = self._context.now_ms()
            for broker_id in change.isr:
                if broker_id not in partition.isr and broker_id in self.followers:
                    self.followers[broker_id].refuse(now_ms)
            self._settled()
            self.look()
            return False
        if verdict.error != ErrorCode.NONE:
            return True
        if (
            verdict.leader_epoch == partition.leader_epoch
            and verdict.partition_epoch >= partition.partition_epoch
        ):
            partition.isr, partition.partition_epoch = verdict.isr, verdict.partition_epoch
            self._settled()
            self.look()
        return False

    def _settled(self) -> None:
        """Nothing is in flight. Whoever waits to join is looked at with its next fetch, also where that does
        not name this partition, since nothing happens to it.
        """
        self._count(None, frozenset(self._partition.isr))
        self._partition.look_again()
