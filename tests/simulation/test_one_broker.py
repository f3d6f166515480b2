"""A broker and its clients in one process, in virtual time, on bad days. Each seed is a run that repeats.

A failing run is had again with its seed alone: `python -m tests.simulation.run one_broker 17`.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.run import regressions, run_seed
from tests.simulation.trace import Trace

pytestmark = pytest.mark.xdist_group("simulation of one broker")  # so that a run serves several tests

SEEDS = range(30)
TWICE = range(5)
ROOT = Path(__file__).resolve().parents[2]
ONCE_FAILED = [seed for scenario, seed in regressions() if scenario == "one_broker" and seed not in SEEDS]


@functools.cache
def ran(seed: int) -> Trace:
    return run_seed("one_broker", seed)


@pytest.mark.parametrize("seed", [*SEEDS, *ONCE_FAILED])
def test_nothing_that_was_promised_is_lost(seed: int) -> None:
    ran(seed)


def test_a_seed_repeats_itself_in_a_process_that_hashes_otherwise() -> None:
    """What depends on the order of a set, or on an address, shows as another trace."""
    wanted = [f"{seed} {ran(seed).digest}" for seed in TWICE]
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation.run", "one_broker", "0-4", "--digests"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "12345"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout.splitlines() == wanted, done.stderr


def test_the_faults_are_met() -> None:
    """Rare things must happen in some of the runs, or these prove nothing about them."""
    met: dict[str, int] = {}
    for seed in SEEDS:
        for name, times in ran(seed).marks.items():
            met[name] = met.get(name, 0) + times
    assert set(met) >= {
        "kill",
        "power",
        "power in a write",
        "pause",
        "stop",
        "reset",
        "full disk",
        "failing disk",
        "slow disk",
        "cut 1",
    }
