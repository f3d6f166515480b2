"""The table of legal steps."""

from __future__ import annotations

import itertools

import pytest

from coordinator.group.classic.states import PREDECESSORS, GroupState, IllegalTransition

LEGAL = {
    "Empty": {"PreparingRebalance", "Dead"},
    "PreparingRebalance": {"Empty", "CompletingRebalance", "Dead"},
    "CompletingRebalance": {"PreparingRebalance", "Stable", "Dead"},
    "Stable": {"PreparingRebalance", "Dead"},
    "Dead": set(),
}


@pytest.mark.parametrize(("previous", "state"), list(itertools.product(GroupState, GroupState)))
def test_a_step_is_legal_exactly_if_the_reference_has_it(previous: GroupState, state: GroupState) -> None:
    if state.value in LEGAL[previous.value]:
        assert state.after(previous, "g", "a test") is state
    else:
        with pytest.raises(IllegalTransition, match=f"'g': {previous.value} -> {state.value} at a test"):
            state.after(previous, "g", "a test")


def test_every_state_has_an_entry() -> None:
    assert set(PREDECESSORS) == set(GroupState)
