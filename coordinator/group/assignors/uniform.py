"""The uniform assignor: members have equally many partitions, and keep those they had as far as that allows.

Where all subscribe to the same topics their counts differ by one at most, and nobody loses more than is over
its share. Otherwise (`uniform_unequal`) they are balanced as far as subscriptions allow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coordinator.group.assignors.uniform_unequal import assign_unequal
from coordinator.group.modern.assignment import Assignment
from coordinator.group.modern.target import MemberSpec

Cells = list[tuple[bytes, int]]


class UniformAssignor:
    """See the module."""

    name = "uniform"

    def assign(
        self, members: Mapping[str, MemberSpec], partitions: Mapping[bytes, Sequence[int]]
    ) -> dict[str, Assignment]:
        """Targets of all members."""
        if not members:
            return {}
        subscriptions = {member.topics for member in members.values()}
        if len(subscriptions) > 1:
            return assign_unequal(members, partitions)
        topics = next(iter(subscriptions))
        return _assign_equal(members, {each: partitions[each] for each in partitions if each in topics})


def _assign_equal(
    members: Mapping[str, MemberSpec], partitions: Mapping[bytes, Sequence[int]]
) -> dict[str, Assignment]:
    kept, free = keep(members, partitions)
    share, extra = divmod(sum(map(len, partitions.values())), len(members))
    order = sorted(members)
    # One more than the share goes to those who have that many already, so that they need not give it up.
    rich = [member_id for member_id in order if len(kept[member_id]) > share][:extra]
    others = [member_id for member_id in order if member_id not in rich]
    with_extra = frozenset([*rich, *others[: extra - len(rich)]])
    for member_id in order:
        quota = share + (member_id in with_extra)
        free += kept[member_id][quota:]
        del kept[member_id][quota:]
    free.sort(reverse=True)
    for member_id in order:
        missing = share + (member_id in with_extra) - len(kept[member_id])
        kept[member_id] += [free.pop() for _ in range(missing)]
    return {member_id: as_assignment(cells) for member_id, cells in kept.items()}


def keep(
    members: Mapping[str, MemberSpec], partitions: Mapping[bytes, Sequence[int]]
) -> tuple[dict[str, Cells], Cells]:
    """What each member had and may still have, sorted, and what nobody had. A partition that two claim goes
    to the first of them.
    """
    free = {(topic_id, number): None for topic_id, numbers in partitions.items() for number in numbers}
    kept: dict[str, Cells] = {}
    for member_id in sorted(members):
        member = members[member_id]
        cells = kept[member_id] = []
        for topic_id, numbers in sorted(member.target.items()):
            if topic_id not in member.topics:
                continue
            for number in sorted(numbers):
                if (topic_id, number) in free:
                    del free[topic_id, number]
                    cells.append((topic_id, number))
    return {member_id: kept[member_id] for member_id in members}, list(free)


def as_assignment(cells: Cells) -> Assignment:
    """The cells by topic."""
    topics: dict[bytes, list[int]] = {}
    for topic_id, number in cells:
        topics.setdefault(topic_id, []).append(number)
    return {topic_id: frozenset(numbers) for topic_id, numbers in topics.items()}
