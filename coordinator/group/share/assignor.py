"""The assignor of share groups, `simple`: every partition has at least one member and every member at least
one partition; with more members than partitions, partitions are shared by about equally many.

Where all members subscribe to the same topics, all partitions are dealt out together; otherwise each topic
among its own subscribers. What members have stays where it is as far as the balance allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from coordinator.group.modern.assignment import Assignment
from coordinator.group.modern.steps import Pace, Steps
from coordinator.group.modern.target import MemberSpec

Cell: TypeAlias = tuple[bytes, int]


class SimpleAssignor:
    """Kafka's only assignor for share groups; racks play no part."""

    name = "simple"

    def assign(
        self, members: Mapping[str, MemberSpec], partitions: Mapping[bytes, Sequence[int]]
    ) -> Steps[dict[str, Assignment]]:
        """Targets of all members; members keep the order they are given in."""
        pace = Pace()
        assigned: dict[str, dict[bytes, list[int]]] = {member_id: {} for member_id in members}
        subscriptions = {spec.topics for spec in members.values()}
        if len(subscriptions) == 1:
            [topics] = subscriptions
            yield from _deal_pool([t for t in partitions if t in topics], list(members), members, partitions,
                                  assigned, pace)  # fmt: skip
        else:
            for topic_id in partitions:
                readers = [member_id for member_id, spec in members.items() if topic_id in spec.topics]
                if pace.over(len(members)):
                    yield
                yield from _deal_pool([topic_id], readers, members, partitions, assigned, pace)
        return {
            member_id: {topic_id: frozenset(numbers) for topic_id, numbers in topics.items()}
            for member_id, topics in assigned.items()
        }


def _deal_pool(
    topics: list[bytes],
    readers: list[str],
    members: Mapping[str, MemberSpec],
    partitions: Mapping[bytes, Sequence[int]],
    assigned: dict[str, dict[bytes, list[int]]],
    pace: Pace,
) -> Steps[None]:
    """Deal out topics that are read by the same members."""
    cells = [(topic_id, index) for topic_id in topics for index in partitions[topic_id]]
    if not cells or not readers:
        return
    for member_id, dealt in (yield from _deal(cells, readers, members, pace)).items():
        target = assigned[member_id]
        for topic_id, index in dealt:
            target.setdefault(topic_id, []).append(index)
        if pace.over(1 + len(dealt)):
            yield


def _deal(
    cells: list[Cell], readers: list[str], members: Mapping[str, MemberSpec], pace: Pace
) -> Steps[dict[str, list[Cell]]]:
    """Spread cells over readers: each cell goes to `sharing` of them, each reader gets its fair count."""
    sharing = -(-len(readers) // len(cells))
    slots = sharing * len(cells)
    bounds = [-(-slots * place // len(readers)) for place in range(len(readers) + 1)]
    wanted = {each: bounds[place + 1] - bounds[place] for place, each in enumerate(readers)}
    holders: dict[Cell, set[str]] = {cell: set() for cell in cells}
    if pace.over(len(cells)):
        yield
    dealt: dict[str, list[Cell]] = {}
    for member_id in readers:
        kept = dealt[member_id] = []
        target = members[member_id].target
        for cell in ((topic_id, index) for topic_id, has in target.items() for index in sorted(has)):
            if len(kept) == wanted[member_id]:
                break
            if cell in holders and len(holders[cell]) < sharing:
                kept.append(cell)
                holders[cell].add(member_id)
            if pace.over(1):
                yield
    yield from _fill(cells, sharing, wanted, holders, dealt, pace)
    return dealt


def _fill(
    cells: list[Cell],
    sharing: int,
    wanted: dict[str, int],
    holders: dict[Cell, set[str]],
    dealt: dict[str, list[Cell]],
    pace: Pace,
) -> Steps[None]:
    """Give cells with too few holders to readers with too few cells, in turns.

    A reader without any cell and a cell without any holder are always served: as many places are free as
    cells are short of holders, and such a reader holds none of them.
    """
    open_readers = [each for each in dealt if len(dealt[each]) < wanted[each]]
    turn = 0
    for cell in cells:
        passed = 0
        while len(holders[cell]) < sharing and passed < len(open_readers):
            if pace.over(1):
                yield
            turn %= len(open_readers)
            member_id = open_readers[turn]
            if member_id in holders[cell]:
                passed += 1
                turn += 1
                continue
            passed = 0
            holders[cell].add(member_id)
            dealt[member_id].append(cell)
            if len(dealt[member_id]) == wanted[member_id]:
                del open_readers[turn]
            else:
                turn += 1
