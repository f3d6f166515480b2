"""Who is in sync: the decisions of a leader about its in-sync replicas and its high watermark. Pure.

The committed ISR is what the controller has stored. A change that was proposed and is not decided yet may be
in force already, so meanwhile the leader counts with the larger of both sets, the maximal ISR: a new member
holds the high watermark at once, a dropped one until the drop is committed (KIP-497).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from replication.follower import Follower


@dataclass(slots=True, frozen=True, eq=False)
class IsrChange:
    """A proposed ISR that the controller has not decided. Compared by identity.

    `members` are (broker id, registration epoch or -1), in the order to be stored.
    """

    members: tuple[tuple[int, int], ...]
    maximal: frozenset[int]

    @property
    def isr(self) -> tuple[int, ...]:
        """The brokers of the new ISR."""
        return tuple(broker_id for broker_id, _ in self.members)


def expanded(isr: tuple[int, ...], follower: Follower, followers: dict[int, Follower]) -> IsrChange:
    """The ISR with one member more."""
    members = (*isr, follower.broker_id)
    return IsrChange(_with_epochs(members, followers), frozenset(members))


def shrunk(isr: tuple[int, ...], gone: Iterable[int], followers: dict[int, Follower]) -> IsrChange:
    """The ISR without those that lag."""
    without = frozenset(gone)
    members = tuple(broker_id for broker_id in isr if broker_id not in without)
    return IsrChange(_with_epochs(members, followers), frozenset(isr))


def _with_epochs(members: tuple[int, ...], followers: dict[int, Follower]) -> tuple[tuple[int, int], ...]:
    return tuple(
        (broker_id, followers[broker_id].broker_epoch if broker_id in followers else -1)
        for broker_id in members
    )


def is_in_sync(follower: Follower, high_watermark: int, epoch_start: int) -> bool:
    """Whether a follower may join: it has all that is committed, and all from before this leadership.

    The high watermark alone is not enough: a new leader's may lag behind what its predecessor committed.
    """
    return follower.end_offset >= high_watermark and follower.end_offset >= epoch_start


def high_watermark(leader_end: int, waited_for: Iterable[Follower]) -> int:
    """The least log end among the leader and the followers that count."""
    mark = leader_end
    for follower in waited_for:
        if follower.end_offset < mark:
            mark = follower.end_offset
    return mark
