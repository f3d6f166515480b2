"""20 seconds of mutated frames (`python -m tests.hostile.fuzz` for more), repeatable by their seed."""

from __future__ import annotations

from tests.hostile.fuzz import fuzz

SEED = 20
SECONDS = 20
ROUNDS = 60


def test_a_running_broker_survives_mutated_frames() -> None:
    print(fuzz(SEED, SECONDS, ROUNDS))
