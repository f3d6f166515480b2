"""The states of a classic group and the only steps between them.

A group is Empty until somebody joins. PreparingRebalance collects JoinGroup requests, CompletingRebalance
waits for the leader's assignment, Stable serves it. Dead is final: the group was deleted or its partition
has moved to another broker. Names are those that DescribeGroups and ListGroups show.

Invariant: a state changes through `GroupState.after` alone, so a step that is not in the table cannot happen
unnoticed: it is a defect of ours, never of a client.
"""

from __future__ import annotations

from enum import Enum


class IllegalTransition(AssertionError):
    """A step that the table does not have: a broken invariant."""


class GroupState(Enum):
    """State of a classic group; the value is Kafka's name of it."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"

    def after(self, previous: GroupState, group_id: str, cause: str) -> GroupState:
        """This state, entered from `previous`; raises IllegalTransition where the table has no such step."""
        if previous not in PREDECESSORS[self]:
            raise IllegalTransition(f"group {group_id!r}: {previous.value} -> {self.value} at {cause}")
        return self


PREDECESSORS: dict[GroupState, tuple[GroupState, ...]] = {
    GroupState.EMPTY: (GroupState.PREPARING_REBALANCE,),
    GroupState.PREPARING_REBALANCE: (GroupState.EMPTY, GroupState.COMPLETING_REBALANCE, GroupState.STABLE),
    GroupState.COMPLETING_REBALANCE: (GroupState.PREPARING_REBALANCE,),
    GroupState.STABLE: (GroupState.COMPLETING_REBALANCE,),
    GroupState.DEAD: (
        GroupState.EMPTY,
        GroupState.PREPARING_REBALANCE,
        GroupState.COMPLETING_REBALANCE,
        GroupState.STABLE,
    ),
}
