"""Consumer groups: heartbeats, commits and rebalances, in turns with another broker.

`group.initial.rebalance.delay.ms` is 0 on both sides. CPU of the steady loads is the broker's share of one
core while the load ran, without the forming of the groups.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from bench import job
from bench.brokers import Broker
from bench.rounds import Plan, Row, Sample, cpu_of, measure
from ottla.client import KafkaClient
from protocol import messages as m

TOPIC = "bench-groups"
REBALANCES = ((10, 100), (100, 1_000))
AT_ONCE = ((64, 1), (64, 16))
GROUPS, MEMBERS, INTERVAL_SECONDS = 1_000, 10, 3
COMMITS = 1_000  # a second, from as many groups of one member as below
COMMITTERS = 50
COORDINATOR_SECONDS = 60.0
_run = itertools.count()


def rows(brokers: Sequence[Broker], plan: Plan) -> Iterator[Row]:
    """All rows; each round uses groups of its own."""
    for broker in brokers:
        broker.create_topic(TOPIC, MEMBERS)
        _wait_for_coordinator(broker)
        _full_speed(broker, "commit", 64, 16, plan.warm_up_seconds)
    for kind in ("heartbeat", "commit"):
        for connections, depth in AT_ONCE:
            runners = _each(brokers, _full_speed, kind, connections, depth, plan.seconds)
            row = Row("Groups at full speed", f"{kind}s, {connections} x {depth}", "requests/s", "us/request")
            yield measure(row, runners, plan.rounds)
    for members, partitions in REBALANCES:
        label = f"{members} members, {partitions:,} partitions"
        row = Row("Rebalance, from the last join to the last assignment", label, "ms", digits=1)
        row.lower_is_better = True
        yield measure(row, _each(brokers, _rebalance, members, partitions), plan.rounds)
    groups = int(GROUPS * plan.scale)
    rate = groups * MEMBERS // INTERVAL_SECONDS
    beats = f"{groups:,} groups x {MEMBERS} members, a heartbeat every {INTERVAL_SECONDS} s each"
    yield from _steady(brokers, plan, beats, "heartbeat", groups, MEMBERS, rate)
    yield from _steady(brokers, plan, f"{COMMITS:,} commits/s", "commit", COMMITTERS, 1, COMMITS)
    for broker in brokers:
        broker.delete_topic(TOPIC)


def _each(
    brokers: Sequence[Broker], run: Callable[..., Sample], *arguments: object
) -> dict[str, Callable[[], Sample]]:
    return {broker.name: partial(run, broker, *arguments) for broker in brokers}


def _wait_for_coordinator(broker: Broker) -> None:
    """The first question has the topic of groups made."""
    deadline = time.monotonic() + COORDINATOR_SECONDS
    with KafkaClient(broker.bootstrap, "bench") as client:
        request = m.FindCoordinatorRequest(coordinator_keys=["bench"])
        while client.call(request, version=4).coordinators[0].error_code:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{broker.name} has no coordinator for groups")
            time.sleep(0.05)


def _full_speed(broker: Broker, kind: str, connections: int, depth: int, seconds: float) -> Sample:
    before = broker.cpu_seconds()
    done = job.run(
        "bench.group_load:full_speed",
        host=broker.host,
        port=broker.port,
        topic=TOPIC,
        kind=kind,
        connections=connections,
        depth=depth,
        seconds=seconds,
        prefix=f"bench-{next(_run)}",
    )
    cpu = cpu_of(before, broker.cpu_seconds(), done["answers"])
    return Sample(done["answers"] / done["seconds"], cpu and cpu * 1e6)


def _rebalance(broker: Broker, members: int, partitions: int) -> Sample:
    done = job.run(
        "bench.group_load:rebalance",
        host=broker.host,
        port=broker.port,
        topic=TOPIC,
        partitions=partitions,
        size=members,
        rounds=5,
        prefix=f"bench-{next(_run)}",
    )
    return Sample(done["seconds"] * 1e3)


def _steady(
    brokers: Sequence[Broker], plan: Plan, section: str, kind: str, groups: int, size: int, rate: int
) -> Iterator[Row]:
    results: dict[str, list[dict[str, float]]] = {broker.name: [] for broker in brokers}

    def run(broker: Broker) -> Sample:
        done = _watched(broker, plan, kind, groups, size, rate)
        results[broker.name].append(done)
        return Sample(done["p50"])

    measured = measure(Row(section, "", "ms"), _each(brokers, run), plan.rounds)
    for key, unit, digits in (("p50", "ms", 3), ("p99", "ms", 3), ("CPU", "% of a core", 1)):
        row = Row(section, key, unit, lower_is_better=True, digits=digits)
        row.notes = measured.notes if key == "p50" else []
        row.samples = {k: [Sample(done[key]) for done in v] for k, v in results.items() if v}
        yield row


def _watched(broker: Broker, plan: Plan, kind: str, groups: int, size: int, rate: int) -> dict[str, float]:
    """One steady load, with the broker's CPU from the line that says that measuring begins."""
    arguments = {
        "host": broker.host,
        "port": broker.port,
        "topic": TOPIC,
        "kind": kind,
        "groups": groups,
        "size": size,
        "rate": rate,
        "seconds": plan.seconds * 2,
        "warm_up_seconds": plan.warm_up_seconds / 2,
        "prefix": f"bench-{next(_run)}",
    }
    before: list[float] = []
    done = job.run("bench.group_load:steady", lambda _: before.append(broker.cpu_seconds()), **arguments)
    done["CPU"] = 100 * (broker.cpu_seconds() - before[0]) / (plan.seconds * 2)
    return done
