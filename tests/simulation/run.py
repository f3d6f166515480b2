"""Runs seeds: `python -m tests.simulation.run one_broker 0-999`, one line for each, with its digest.

    --twice N   every Nth seed a second time; the digests must be equal
    --digests   nothing but seed and digest, for a comparison with another process

A seed that fails is reported with the last lines of its trace. Put it into `regressions.txt`, where
`make test` runs it for ever.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from tests.simulation.administered import Cluster, ClusterOnBadDisks
from tests.simulation.cluster import QuietCluster, QuietClusterOnBadDisks
from tests.simulation.one_broker import OneBroker
from tests.simulation.trace import Trace
from tests.simulation.txn_cluster import TransactionalCluster
from tests.simulation.world import World

REGRESSIONS = Path(__file__).with_name("regressions.txt")
TRACE_LINES = 60


class Scenario(Protocol):
    """One run of one seed."""

    world: World

    def run(self) -> str:
        """The digest of its trace. Raises SimulationFailed."""


SCENARIOS: dict[str, Callable[[int], Scenario]] = {
    "one_broker": OneBroker,
    "cluster": Cluster,
    "bad_disks": ClusterOnBadDisks,
    "transactions": TransactionalCluster,
    "quiet_cluster": QuietCluster,
    "quiet_bad_disks": QuietClusterOnBadDisks,
}


def regressions() -> list[tuple[str, int]]:
    """(scenario, seed) of runs that failed once."""
    lines = REGRESSIONS.read_text(encoding="utf-8").splitlines()
    found = [line.split("#")[0].split() for line in lines]
    return [(words[0], int(words[1])) for words in found if words]


def run_seed(scenario: str, seed: int) -> Trace:
    """The trace of a run that held what it should; else the error tells where it stood."""
    run = SCENARIOS[scenario](seed)
    try:
        run.run()
    except BaseException as error:
        error.add_note(
            f"{scenario}, seed {seed}; again: python -m tests.simulation.run {scenario} {seed}\n"
            f"{run.world.trace.marks}\nlast lines:\n{run.world.trace.tail(TRACE_LINES)}"
        )
        raise
    return run.world.trace


def seeds_of(text: str) -> range:
    """`7` or `0-29`."""
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.run")
    parser.add_argument("scenario", choices=sorted(SCENARIOS))
    parser.add_argument("seeds", type=seeds_of)
    parser.add_argument("--twice", type=int, default=0)
    parser.add_argument("--digests", action="store_true")
    given = parser.parse_args()
    failed = 0
    for seed in given.seeds:
        try:
            trace = run_seed(given.scenario, seed)
            if given.twice and seed % given.twice == 0:
                again = run_seed(given.scenario, seed)
                assert again.digest == trace.digest, f"seed {seed} does not repeat itself"
        except AssertionError as error:
            failed += 1
            print(f"{seed} FAILED: {error}", *getattr(error, "__notes__", ()), sep="\n", flush=True)
            continue
        more = "" if given.digests else f" {trace.lines} lines, {trace.marks}"
        print(f"{seed} {trace.digest}{more}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
