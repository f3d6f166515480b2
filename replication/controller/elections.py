"""Who leads a partition: the four ways in which the controller chooses. Pure.

Each takes the first replica, in the order of its candidates, that is online and in sync; they differ in the
candidates, in who stays in sync and in who is told. Every election raises the leader epoch by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum

from replication.controller.assignment import Assignment
from replication.controller.cluster_state import Leadership


class Strategy(Enum):
    """Why a leader is chosen."""

    OFFLINE = "offline"
    REASSIGN = "reassign"
    PREFERRED = "preferred"
    CONTROLLED_SHUTDOWN = "controlled shutdown"


@dataclass(slots=True, frozen=True)
class Elected:
    """The leadership to be written, and the brokers whose LeaderAndIsr tells of it."""

    leadership: Leadership
    recipients: tuple[int, ...]


Online = Callable[[int], bool]


def _first(candidates: Iterable[int], isr: tuple[int, ...], online: Online) -> int | None:
    return next((broker for broker in candidates if broker in isr and online(broker)), None)


def for_offline(
    assignment: Assignment, known: Leadership, online: Online, *, unclean: bool
) -> Elected | None:
    """A leader for a partition that lost its own. With `unclean` any online replica may lead when none of
    those in sync is online; it is then alone in sync and the partition recovering (KIP-704), for records
    may be lost.
    """
    recipients = tuple(broker for broker in assignment.replicas if online(broker))
    leader = _first(assignment.replicas, known.isr, online)
    if leader is not None:
        isr = tuple(member for member in known.isr if online(member))
        return Elected(known.led_by(leader, isr), recipients)
    if not unclean or not recipients:
        return None
    leader = recipients[0]
    return Elected(replace(known.led_by(leader, (leader,)), recovering=True), recipients)


def for_reassignment(assignment: Assignment, known: Leadership, online: Online) -> Elected | None:
    """A leader among the target replicas; who is in sync stays so until the others are removed."""
    leader = _first(assignment.target, known.isr, online)
    return None if leader is None else Elected(known.led_by(leader), assignment.target)


def for_preferred(assignment: Assignment, known: Leadership, online: Online) -> Elected | None:
    """The first replica, or nobody."""
    leader = _first(assignment.replicas[:1], known.isr, online)
    return None if leader is None else Elected(known.led_by(leader), assignment.replicas)


def for_controlled_shutdown(
    assignment: Assignment, known: Leadership, present: Online, staying: Online
) -> Elected | None:
    """A leader that stays. `present` counts brokers that are shutting down as online: they are told, too."""
    leader = _first(assignment.replicas, known.isr, lambda broker: present(broker) and staying(broker))
    if leader is None:
        return None
    isr = tuple(member for member in known.isr if staying(member))
    return Elected(known.led_by(leader, isr), tuple(b for b in assignment.replicas if present(b)))
