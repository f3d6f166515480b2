"""Assignors that run in the broker: who of a group's members gets which partitions.

They are pure functions of members, their last targets and the partitions there are; the same input gives the
same answer, whatever the order of dicts and sets.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from coordinator.group.assignors.range import RangeAssignor
from coordinator.group.assignors.uniform import UniformAssignor
from coordinator.group.modern.target import Assignor


def builtin() -> dict[str, Assignor]:
    """The assignors of consumer groups by name, in the order of group.consumer.assignors' default."""
    assignors: tuple[Assignor, ...] = (UniformAssignor(), RangeAssignor())
    return {assignor.name: assignor for assignor in assignors}


_CLASS_NAMES = {
    "org.apache.kafka.coordinator.group.assignor.UniformAssignor": "uniform",
    "org.apache.kafka.coordinator.group.assignor.RangeAssignor": "range",
}
_log = logging.getLogger(__name__)


def chosen_assignors(names: Iterable[str]) -> dict[str, Assignor]:
    """group.consumer.assignors: built-in names or their classes' names, the default first. Others, which
    would be classes of somebody else's, are left out with a warning.
    """
    known = builtin()
    chosen: dict[str, Assignor] = {}
    for name in names:
        assignor = known.get(_CLASS_NAMES.get(name, name))
        if assignor is None:
            _log.warning("group.consumer.assignors: there is no assignor %s here", name)
        else:
            chosen[assignor.name] = assignor
    return chosen or known
