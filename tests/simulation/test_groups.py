"""Random schedules against the coordinators of groups, in virtual time. Each seed is a run that repeats.

A failing run is had again with its seed alone: `OTTLA_SEED=17 pytest tests/simulation/test_groups.py`.
"""

from __future__ import annotations

import os

import pytest

from coordinator.group.modern import steps
from tests.simulation.groups.schedule import Schedule
from tests.simulation.virtual_time import START_MS

SEEDS = range(30)
SEEDS_OF_LARGE = range(100, 108)
CHOSEN = os.environ.get("OTTLA_SEED")


def run(seed: int) -> None:
    schedule = Schedule(seed)
    try:
        schedule.run()
    except AssertionError as error:
        after_ms = schedule.world.now_ms - START_MS
        error.add_note(f"after {after_ms} ms; again: OTTLA_SEED={seed} pytest {__file__}")
        raise


@pytest.mark.parametrize("seed", SEEDS if CHOSEN is None else [int(CHOSEN)])
def test_groups_hold_what_they_promise(seed: int) -> None:
    run(seed)


@pytest.mark.parametrize("seed", SEEDS_OF_LARGE if CHOSEN is None else [int(CHOSEN)])
def test_groups_whose_assignment_takes_long_hold_it_too(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "PIECE", 1)
    monkeypatch.setattr(steps, "PIECES_AT_ONCE", 1)
    run(seed)
