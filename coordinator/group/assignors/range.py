"""The range assignor: each member gets a run of every topic it subscribes to.

Members stand in a fixed order, those with an instance id first, so where all subscribe to the same topics
with equally many partitions, a member has the same numbers of each (co-partitioning), and static members
keep theirs over restarts. The first members get one more where it does not come out even.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from coordinator.group.modern.assignment import Assignment
from coordinator.group.modern.steps import Pace, Steps
from coordinator.group.modern.target import MemberSpec


class RangeAssignor:
    """See the module."""

    name = "range"

    def assign(
        self, members: Mapping[str, MemberSpec], partitions: Mapping[bytes, Sequence[int]]
    ) -> Steps[dict[str, Assignment]]:
        """Targets of all members."""
        pace = Pace()
        assigned: dict[str, Assignment] = {member_id: {} for member_id in members}
        order = sorted(members, key=lambda member_id: _rank(member_id, members[member_id]))
        alike = len({member.topics for member in members.values()}) <= 1
        for topic_id, numbers in partitions.items():
            if pace.over(1 if alike else len(order)):
                yield
            if alike:
                readers = order if order and topic_id in members[order[0]].topics else []
            else:
                readers = [member_id for member_id in order if topic_id in members[member_id].topics]
            if not readers:
                continue
            each, more = divmod(len(numbers), len(readers))
            start = 0
            for place, member_id in enumerate(readers):
                end = start + each + (place < more)
                if end == start:
                    break
                assigned[member_id][topic_id] = frozenset(numbers[start:end])
                if pace.over(end - start):
                    yield
                start = end
        return assigned


def _rank(member_id: str, member: MemberSpec) -> tuple[bool, str]:
    if member.instance_id is not None:
        return (False, member.instance_id)
    return (True, member_id)
