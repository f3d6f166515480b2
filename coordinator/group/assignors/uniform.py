"""The uniform assignor: members have equally many partitions, and keep those they had as far as that allows.

Where all subscribe to the same topics their counts differ by one at most, and nobody loses more than is over
its share. Otherwise (`uniform_unequal`) they are balanced as far as subscriptions allow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coordinator.group.assignors.uniform_unequal import assign_unequal
from coordinator.group.modern.assignment import Assignment
from coordinator.group.modern.steps import Pace, Steps
from coordinator.group.modern.target import MemberSpec

Cells = list[tuple[bytes, int]]


class UniformAssignor:
    """See the module."""

    name = "uniform"

    def assign(
        self, members: Mapping[str, MemberSpec], partitions: Mapping[bytes, Sequence[int]]
    ) -> Steps[dict[str, Assignment]]:
        """Targets of all members."""
        if not members:
            return {}
        subscriptions = {member.topics for member in members.values()}
        if len(subscriptions) > 1:
            return (yield from assign_unequal(members, partitions))
        topics = next(iter(subscriptions))
        read = {each: partitions[each] for each in partitions if each in topics}
        return (yield from _assign_equal(members, read))


def _assign_equal(
    members: Mapping[str, MemberSpec], partitions: Mapping[bytes, Sequence[int]]
) -> Steps[dict[str, Assignment]]:
    pace = Pace()
    kept, free = yield from _keep(members, partitions, pace)
    share, extra = divmod(sum(map(len, partitions.values())), len(members))
    order = sorted(members)
    # One more than the share goes to those who have that many already, so that they need not give it up.
    with_extra = set([member_id for member_id in order if len(kept[member_id]) > share][:extra])
    for member_id in order:
        if len(with_extra) == extra:
            break
        with_extra.add(member_id)
    for member_id in order:
        quota = share + (member_id in with_extra)
        free += kept[member_id][quota:]
        del kept[member_id][quota:]
    yield
    free.sort(reverse=True)
    targets: dict[str, Assignment] = {}
    for member_id in order:
        cells = kept[member_id]
        missing = share + (member_id in with_extra) - len(cells)
        cells += [free.pop() for _ in range(missing)]
        targets[member_id] = _as_assignment(cells)
        if pace.over(1 + len(cells)):
            yield
    return {member_id: targets[member_id] for member_id in members}


def _keep(
    members: Mapping[str, MemberSpec], partitions: Mapping[bytes, Sequence[int]], pace: Pace
) -> Steps[tuple[dict[str, Cells], Cells]]:
    """What each member had and may still have, sorted, and what nobody had. A partition that two claim goes
    to the first of them.
    """
    free: dict[tuple[bytes, int], None] = {}
    for topic_id, numbers in partitions.items():
        free.update(dict.fromkeys((topic_id, number) for number in numbers))
        if pace.over(1 + len(numbers)):
            yield
    kept: dict[str, Cells] = {}
    for member_id in sorted(members):
        member = members[member_id]
        cells = kept[member_id] = []
        for topic_id, had in sorted(member.target.items()):
            if topic_id not in member.topics:
                continue
            for number in sorted(had):
                if (topic_id, number) in free:
                    del free[topic_id, number]
                    cells.append((topic_id, number))
            if pace.over(1 + len(had)):
                yield
    return kept, list(free)


def _as_assignment(cells: Cells) -> Assignment:
    """The cells by topic."""
    topics: dict[bytes, list[int]] = {}
    for topic_id, number in cells:
        topics.setdefault(topic_id, []).append(number)
    return {topic_id: frozenset(numbers) for topic_id, numbers in topics.items()}
