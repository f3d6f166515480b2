"""Moves between the directories of a broker, as `ottla reassign-partitions` begins and shows them.

A replica that is not on its broker yet is asked for again until it is, for as long as the tool may wait.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import click

from ottla.cli.reassignment_cluster import ReassignmentCluster
from ottla.cli.reassignment_file import Refused, Replica, failed
from protocol.errors import ErrorCode

RETRY_PAUSE_S = 0.1


def begin(cluster: ReassignmentCluster, wanted: Mapping[Replica, str], timeout_ms: int) -> None:
    """Have all replicas on their way to their directories."""
    waiting = dict(wanted)
    deadline = time.monotonic() + timeout_ms / 1000
    while True:
        for replica, error in sorted(cluster.move(waiting).items(), key=lambda each: order(each[0])):
            if error is ErrorCode.NONE:
                (topic, partition), broker = replica
                click.echo(
                    f"Successfully started moving log directory to {waiting.pop(replica)} for replica "
                    f"{topic}-{partition} with broker {broker} "
                )
            elif error is not ErrorCode.REPLICA_NOT_AVAILABLE:
                raise failed(f"Failed to alter dir for {named(replica)}")
        if not waiting:
            return
        if time.monotonic() >= deadline:
            late = ",".join(named(replica) for replica in sorted(waiting, key=order))
            plural = "" if len(waiting) == 1 else "s"
            raise Refused(f"Timed out before log directory move{plural} could be started for: {late}")
        time.sleep(RETRY_PAUSE_S)


def states(cluster: ReassignmentCluster, wanted: Mapping[Replica, str]) -> tuple[list[str], bool]:
    """A line for each replica, and whether one of them moves."""
    found = cluster.directories(wanted)
    moving = False
    lines: list[str] = []
    for replica in sorted(wanted, key=order):
        (topic, partition), broker = replica
        target, where = wanted[replica], found.get(replica)
        if where is None:
            lines.append(
                f"Partition {topic}-{partition} is not found in any live log dir on broker {broker}. "
                "There is likely an offline log directory on the broker."
            )
            continue
        now, to = where
        if to is not None:
            moving = True
            lines.append(
                f"Reassignment of replica {named(replica)} is still in progress."
                if to == target
                else f"Partition {topic}-{partition} on broker {broker} is being moved to log dir {to} "
                f"instead of {target}."
            )
        elif now == target:
            lines.append(f"Reassignment of replica {named(replica)} completed successfully.")
        else:
            lines.append(
                f"Partition {topic}-{partition} on broker {broker} is not being moved from log dir {now} "
                f"to {target}."
            )
    return lines, moving


def active(cluster: ReassignmentCluster, wanted: Mapping[Replica, str]) -> dict[Replica, str]:
    """Those of the replicas that are moving, with the directories that they are in."""
    found = cluster.directories(wanted)
    return {replica: now for replica, (now, to) in found.items() if to is not None and now is not None}


def named(replica: Replica) -> str:
    (topic, partition), broker = replica
    return f"{topic}-{partition}-{broker}"


def order(replica: Replica) -> tuple[int, str, int]:
    (topic, partition), broker = replica
    return broker, topic, partition
