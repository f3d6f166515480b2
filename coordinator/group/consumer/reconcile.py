"""One step of a member towards its target assignment.

A member first gives up what it should not have any more (UNREVOKED_PARTITIONS, its epoch stays), then moves
to the target's epoch and gets what is free; what another member still holds it waits for
(UNRELEASED_PARTITIONS). Only its own word that it no longer owns a partition ends a revocation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from coordinator.group.consumer.member import Current, Epochs, MemberState
from coordinator.group.modern.assignment import Assignment

Holder = Callable[[bytes, int], str | None]


class MustRejoin(Exception):
    """The member is in a state that this broker does not know: it has to give up everything and join."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a step depends on. `owned` is what the member says it has, None where it does not say.

    `topic_ids` is a call, as most heartbeats do not need it: what the member subscribes to, by id.
    """

    member_id: str
    target_epoch: int
    target: Assignment
    owned: Assignment | None
    topic_ids: Callable[[], frozenset[bytes]]
    holder: Holder
    subscription_changed: bool = False


def reconcile(current: Current, step: Step) -> Current:
    """Where the member stands after this step; the same object where nothing changes. Raises MustRejoin."""
    if current.state is MemberState.STABLE:
        if current.epoch != step.target_epoch:
            return _advance(current, step)
        return _drop_unsubscribed(current, step) if step.subscription_changed else current
    if current.state is MemberState.UNREVOKED_PARTITIONS:
        if not _owns_any(current.revoking, step.owned):
            return _advance(current, step)
        return _drop_unsubscribed(current, step) if step.subscription_changed else current
    if current.state is MemberState.UNKNOWN and (step.owned is None or step.owned):
        raise MustRejoin
    return _advance(current, step)


def _owns_any(partitions: Epochs, owned: Assignment | None) -> bool:
    if owned is None:
        return True
    return any(not partitions.get(topic_id, {}).keys().isdisjoint(own) for topic_id, own in owned.items())


def _drop_unsubscribed(current: Current, step: Step) -> Current:
    """Topics that the member has just unsubscribed from are taken back at once, before any new target."""
    topic_ids = step.topic_ids()
    gone = {topic_id: epochs for topic_id, epochs in current.assigned.items() if topic_id not in topic_ids}
    if not gone:
        return current
    assigned = {topic_id: epochs for topic_id, epochs in current.assigned.items() if topic_id in topic_ids}
    revoking = dict(current.revoking)
    for topic_id, epochs in gone.items():
        revoking[topic_id] = {**revoking.get(topic_id, {}), **epochs}
    if _owns_any(revoking, step.owned):
        return replace(
            current,
            previous_epoch=current.epoch,
            state=MemberState.UNREVOKED_PARTITIONS,
            assigned=assigned,
            revoking=revoking,
        )
    return replace(current, previous_epoch=current.epoch, assigned=assigned)


def _advance(current: Current, step: Step) -> Current:
    topic_ids = step.topic_ids()
    assigned: Epochs = {}
    revoking: Epochs = {}
    gained: Epochs = {}
    unreleased = False
    for topic_id in sorted(step.target.keys() | current.assigned.keys()):
        target = step.target.get(topic_id, frozenset()) if topic_id in topic_ids else frozenset()
        has = current.assigned.get(topic_id, {})
        kept = {partition: epoch for partition, epoch in has.items() if partition in target}
        lost = {partition: epoch for partition, epoch in has.items() if partition not in target}
        missing = [partition for partition in sorted(target) if partition not in has]
        free = [each for each in missing if step.holder(topic_id, each) in (None, step.member_id)]
        unreleased = unreleased or len(free) < len(missing)
        if kept:
            assigned[topic_id] = kept
        if lost:
            revoking[topic_id] = lost
        if free:
            gained[topic_id] = dict.fromkeys(free, step.target_epoch)
    if revoking and _owns_any(revoking, step.owned):
        return Current(current.epoch, current.epoch, MemberState.UNREVOKED_PARTITIONS, assigned, revoking)
    for topic_id, epochs in gained.items():
        assigned[topic_id] = {**assigned.get(topic_id, {}), **epochs}
    state = MemberState.UNRELEASED_PARTITIONS if unreleased else MemberState.STABLE
    return Current(step.target_epoch, current.epoch, state, assigned, {})
