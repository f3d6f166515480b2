"""Uniform assignment where members subscribe to different topics.

Partitions that nobody has go to the least loaded reader of their topic, topics with few readers first, as
those have the least choice. Then, topic by topic, partitions move from the most to the least loaded reader
while those differ by more than one, until a whole round moves nothing. Each move makes the sum of squared
counts smaller, so the rounds end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from typing import TypeAlias

from coordinator.group.modern.assignment import Assignment
from coordinator.group.modern.steps import Pace, Steps
from coordinator.group.modern.target import MemberSpec

Given: TypeAlias = dict[str, dict[bytes, list[int]]]


def assign_unequal(
    members: Mapping[str, MemberSpec], partitions: Mapping[bytes, Sequence[int]]
) -> Steps[dict[str, Assignment]]:
    """Targets of all members."""
    pace = Pace()
    readers = yield from _readers(members, partitions, pace)
    order = sorted(
        (topic_id for topic_id in partitions if readers[topic_id]),
        key=lambda topic_id: (len(readers[topic_id]), -len(partitions[topic_id]), topic_id),
    )
    given: Given = {member_id: {} for member_id in members}
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
            if pace.over(1 + len(had)):
                yield
        free[topic_id] = list(left)
    for topic_id in order:
        yield from _give(topic_id, free[topic_id], readers[topic_id], given, load, pace)
    moved = True
    while moved:
        moved = False
        for topic_id in order:
            moved = (yield from _balance(topic_id, readers[topic_id], given, load, pace)) or moved
    return {
        member_id: {topic_id: frozenset(numbers) for topic_id, numbers in topics.items() if numbers}
        for member_id, topics in given.items()
    }


def _readers(
    members: Mapping[str, MemberSpec], partitions: Mapping[bytes, Sequence[int]], pace: Pace
) -> Steps[dict[bytes, list[str]]]:
    """Who subscribes to each topic."""
    readers: dict[bytes, list[str]] = {topic_id: [] for topic_id in partitions}
    for member_id in sorted(members):
        topics = members[member_id].topics
        for topic_id in topics:
            if topic_id in readers:
                readers[topic_id].append(member_id)
        if pace.over(1 + len(topics)):
            yield
    return readers


def _give(
    topic_id: bytes, numbers: list[int], readers: list[str], given: Given, load: dict[str, int], pace: Pace
) -> Steps[None]:
    heap = [(load[member_id], member_id) for member_id in readers]
    heapify(heap)
    for number in numbers:
        count, member_id = heap[0]
        given[member_id].setdefault(topic_id, []).append(number)
        load[member_id] = count + 1
        heapreplace(heap, (count + 1, member_id))
    if pace.over(len(readers) + len(numbers)):
        yield


def _balance(
    topic_id: bytes, readers: list[str], given: Given, load: dict[str, int], pace: Pace
) -> Steps[bool]:
    """Move partitions of one topic; false where there was nothing to move. What stands in a heap is out of
    date where its load is another by now.
    """
    least = [(load[member_id], member_id) for member_id in readers]
    most = [(-load[member_id], member_id) for member_id in readers if given[member_id].get(topic_id)]
    heapify(least)
    heapify(most)
    moved = False
    while True:
        if pace.over(1 if moved else 1 + len(readers)):
            yield
        while most and (-most[0][0] != load[most[0][1]] or not given[most[0][1]][topic_id]):
            heappop(most)
        while least[0][0] != load[least[0][1]]:
            heappop(least)
        if not most or -most[0][0] - least[0][0] <= 1:
            return moved
        giver, taker = most[0][1], least[0][1]
        given[taker].setdefault(topic_id, []).append(given[giver][topic_id].pop())
        for member_id, step in ((giver, -1), (taker, 1)):
            load[member_id] += step
            heappush(least, (load[member_id], member_id))
            heappush(most, (-load[member_id], member_id))
        moved = True
