"""A power cut between any two operations on the disk while a partition moves to another log directory."""

from __future__ import annotations

import pytest

from tests.simulation.moving_life import MovingLife
from tests.simulation.power import PowerFileSystem
from tests.simulation.test_log_crashes import test_power_cut_anywhere as power_cut_anywhere


@pytest.mark.parametrize("seed", range(9))
def test_power_cut_while_moving(seed: int) -> None:
    power_cut_anywhere(MovingLife, seed)


def test_lives_are_spent_on_moves() -> None:
    lives = [MovingLife(PowerFileSystem(), seed) for seed in range(9)]
    for life in lives:
        life.live(60)
    assert sum(life.moved for life in lives) > 5
