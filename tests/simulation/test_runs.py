"""Brokers and their clients in one process, in virtual time, on bad days. Each seed is a run that repeats.

A failing run is had again with its seed alone: `python -m tests.simulation.run cluster 17`.
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

SEEDS = {
    "one_broker": range(10),
    "cluster": range(20),
    "bad_disks": range(8),
    "transactions": range(10),
}
NONE = range(0)
TWICE = {"one_broker": 2, "cluster": 4, "bad_disks": 2, "transactions": 2}
ROOT = Path(__file__).resolve().parents[2]
MET = {  # what one run in three or so meets
    "one_broker": {
        *("kill", "power", "power in a write", "pause", "stop", "reset"),
        *("full disk", "failing disk", "slow disk", "cut 1"),
    },
    "bad_disks": {"power", "failing disk", "full disk", "session expired"},
    "transactions": {
        *("transaction committed", "transaction aborted", "transaction lost", "transaction forgotten"),
        *("kill", "pause", "long pause", "stop", "session expired"),
    },
    "cluster": {
        *("kill", "pause", "long pause", "stop", "reset", "cut 1", "session expired", "lose metadata"),
        *("moved", "created", "gone", "grown", "records deleted", "configured"),
    },
}


def of(scenario: str, *values: object) -> object:
    """Runs of one kind stay in one process, so that one serves several tests."""
    return pytest.param(scenario, *values, marks=pytest.mark.xdist_group(f"simulation: {scenario}"))


ALL = [of(scenario, seed) for scenario, seeds in SEEDS.items() for seed in seeds]
ALL += [of(scenario, seed) for scenario, seed in regressions() if seed not in SEEDS.get(scenario, NONE)]


@functools.cache
def ran(scenario: str, seed: int) -> Trace:
    return run_seed(scenario, seed)


@pytest.mark.parametrize(("scenario", "seed"), ALL)
def test_nothing_that_was_promised_is_lost(scenario: str, seed: int) -> None:
    ran(scenario, seed)


@pytest.mark.parametrize("scenario", [of(scenario) for scenario in SEEDS])
def test_a_seed_repeats_itself_in_a_process_that_hashes_otherwise(scenario: str) -> None:
    """What depends on the order of a set, or on an address, shows as another trace."""
    wanted = [f"{seed} {ran(scenario, seed).digest}" for seed in range(TWICE[scenario])]
    done = subprocess.run(
        [sys.executable, "-m", "tests.simulation.run", scenario, f"0-{TWICE[scenario] - 1}", "--digests"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "12345"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout.splitlines() == wanted, done.stderr


@pytest.mark.parametrize("scenario", [of(scenario) for scenario in SEEDS])
def test_the_faults_are_met(scenario: str) -> None:
    """Rare things must happen in some of the runs, or these prove nothing about them."""
    met = {name for seed in SEEDS[scenario] for name in ran(scenario, seed).marks}
    assert met >= MET[scenario]
