"""Uniform assignment where members subscribe to different topics.

Partitions that nobody has go to the least loaded reader of their topic, topics with few readers first, as
those have the least choice. Then, topic by topic, partitions move from the most to the least loaded reader
while those differ by more than one, until a whole round moves nothing. Each move makes the sum of squared
counts smaller, so the rounds end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heapreplace

from coordinator.group.modern.assignment import Assignment
from coordinator.group.modern.target import MemberSpec


def assign_unequal(
    members: Mapping[str, MemberSpec], partitions: Mapping[bytes, Sequence[int]]
) -> dict[str, Assignment]:
    """Targets of all members."""
    readers: dict[bytes, list[str]] = {topic_id: [] for topic_id in partitions}
    for member_id in sorted(members):
        for topic_id in sorted(members[member_id].topics):
            if topic_id in readers:
                readers[topic_id].append(member_id)
    order = sorted(
        (topic_id for topic_id in partitions if readers[topic_id]),
        key=lambda topic_id: (len(readers[topic_id]), -len(partitions[topic_id]), topic_id),
    )
    given: dict[str, dict[bytes, list[int]]] = {member_id: {} for member_id in members}
    load = dict.fromkeys(members, 0)
    free: dict[bytes, list[int]] = {}
    for topic_id in order:
        left = dict.fromkeys(partitions[topic_id])
        for member_id in readers[topic_id]:
            had = [number for number in sorted(members[member_id].target.get(topic_id, ())) if number in left]
            for number in had:
                del left[number]
            if had:
                given[member_id][topic_id] = had
                load[member_id] += len(had)
        free[topic_id] = list(left)
    for topic_id in order:
        _give(topic_id, free[topic_id], readers[topic_id], given, load)
    moved = True
    while moved:
        moved = False
        for topic_id in order:
            moved = _balance(topic_id, readers[topic_id], given, load) or moved
    return {
        member_id: {topic_id: frozenset(numbers) for topic_id, numbers in topics.items() if numbers}
        for member_id, topics in given.items()
    }


def _give(
    topic_id: bytes,
    numbers: list[int],
    readers: list[str],
    given: dict[str, dict[bytes, list[int]]],
    load: dict[str, int],
) -> None:
    heap = [(load[member_id], member_id) for member_id in readers]
    heapify(heap)
    for number in numbers:
        count, member_id = heap[0]
        given[member_id].setdefault(topic_id, []).append(number)
        load[member_id] = count + 1
        heapreplace(heap, (count + 1, member_id))


def _balance(
    topic_id: bytes, readers: list[str], given: dict[str, dict[bytes, list[int]]], load: dict[str, int]
) -> bool:
    """Move partitions of one topic; false where there was nothing to move."""
    moved = False
    while True:
        givers = [member_id for member_id in readers if given[member_id].get(topic_id)]
        if not givers:
            return moved
        most = max(givers, key=lambda member_id: (load[member_id], member_id))
        least = min(readers, key=lambda member_id: (load[member_id], member_id))
        if load[most] - load[least] <= 1:
            return moved
        given[least].setdefault(topic_id, []).append(given[most][topic_id].pop())
        load[most] -= 1
        load[least] += 1
        moved = True
