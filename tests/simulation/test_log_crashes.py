"""After a power cut between any two operations on the disk a log opens and holds what was promised."""

from __future__ import annotations

import contextlib
import random

import pytest

from tests.simulation.log_life import CompactedLife, LogLife
from tests.simulation.power import Fate, Kept, Lost, PowerCut, PowerFileSystem, Torn

STEPS = 25


def cut_short(kind: type[LogLife], seed: int, cut_at: int) -> LogLife | None:
    """The life of this seed up to that change of the disk; None if it made fewer."""
    files = PowerFileSystem()
    life = kind(files, seed)
    files.cut_at = cut_at
    try:
        life.live(STEPS)
    except PowerCut:
        return life
    return None


def fate_of(seed: int, cut_at: int) -> Fate:
    return (Lost(), Kept(), Torn(seed * 1000 + cut_at))[cut_at % 3]


@pytest.mark.parametrize("seed", range(9))
@pytest.mark.parametrize("kind", [LogLife, CompactedLife])
def test_power_cut_anywhere(kind: type[LogLife], seed: int) -> None:
    """Some cuts are followed by one or two more while the log is being opened again."""
    cut_at, stride = seed % 3, 3
    while (life := cut_short(kind, seed, cut_at)) is not None:
        fate = fate_of(seed, cut_at)
        chance = random.Random(seed * 7 + cut_at)
        try:
            files = life.files.cut_power(fate)
            for _ in range(chance.choice([0, 0, 1, 2])):
                files.cut_at = chance.randint(0, 12)
                life.files = files
                with contextlib.suppress(PowerCut):
                    life.open()
                    life.manager.abandon()
                files = files.cut_power(fate_of(chance.randint(0, 999), chance.randint(0, 2)))
            life.find(files)
        except BaseException as error:
            error.add_note(f"{kind.__name__}, seed {seed}, cut at {cut_at}, {type(fate).__name__}")
            raise
        cut_at += stride
