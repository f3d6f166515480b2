"""The throttles of `ottla reassign-partitions`: whom they bind, and that they go again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import click

from ottla.cli.reassignment_cluster import BROKER, TOPIC, Moving, ReassignmentCluster
from ottla.cli.reassignment_file import Partition, Targets

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
LOG_DIR_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"

Moves = dict[Partition, tuple[tuple[int, ...], tuple[int, ...]]]


def moves_of(under_way: Mapping[Partition, Moving], targets: Targets, current: Targets) -> Moves:
    """From where to where each partition moves: what is under way, and what is asked for now. Pure."""
    moves: Moves = {
        partition: (tuple(b for b in moving.replicas if b not in moving.adding), moving.adding)
        for partition, moving in under_way.items()
    }
    for partition, replicas in targets.items():
        sources = moves[partition][0] if partition in moves else current[partition]
        moves[partition] = sources, tuple(broker for broker in replicas if broker not in sources)
    return moves


def put(
    cluster: ReassignmentCluster,
    under_way: Mapping[Partition, Moving],
    targets: Targets,
    current: Targets,
    bytes_per_second: int,
) -> None:
    """Bind the leaders and followers that the moves have to do with."""
    moves = moves_of(under_way, targets, current)
    for topic in dict.fromkeys(topic for topic, _ in moves):
        own = {partition: move for (name, partition), move in moves.items() if name == topic}
        leaders = sorted(
            f"{partition}:{broker}" for partition, (sources, _) in own.items() for broker in sources
        )
        followers = sorted(f"{partition}:{broker}" for partition, (_, new) in own.items() for broker in new)
        cluster.configure(
            TOPIC, topic, {LEADER_REPLICAS: ",".join(leaders), FOLLOWER_REPLICAS: ",".join(followers)}
        )
    for broker in sorted({broker for sources, new in moves.values() for broker in (*sources, *new)}):
        rate = str(bytes_per_second)
        cluster.configure(BROKER, str(broker), {LEADER_RATE: rate, FOLLOWER_RATE: rate})
    click.echo(f"The inter-broker throttle limit was set to {bytes_per_second} B/s")


def put_log_dirs(cluster: ReassignmentCluster, brokers: Iterable[int], bytes_per_second: int) -> None:
    """Bind moves between the directories of these brokers."""
    for broker in sorted(dict.fromkeys(brokers)):
        cluster.configure(BROKER, str(broker), {LOG_DIR_RATE: str(bytes_per_second)})
    click.echo(f"The replica-alter-dir throttle limit was set to {bytes_per_second} B/s")


def clear(cluster: ReassignmentCluster, targets: Sequence[tuple[Partition, tuple[int, ...]]]) -> None:
    """Unbind all brokers and the topics."""
    brokers = sorted({*cluster.racks(), *(broker for _, replicas in targets for broker in replicas)})
    click.echo(
        f"Clearing broker-level throttles on broker{'' if len(brokers) == 1 else 's'} "
        f"{','.join(map(str, brokers))}"
    )
    for broker in brokers:
        if broker in cluster.racks():
            cluster.configure(
                BROKER, str(broker), {LEADER_RATE: None, FOLLOWER_RATE: None, LOG_DIR_RATE: None}
            )
    topics = list(dict.fromkeys(topic for (topic, _), _ in targets))
    click.echo(f"Clearing topic-level throttles on topic{'' if len(topics) == 1 else 's'} {','.join(topics)}")
    for topic in topics:
        cluster.configure(TOPIC, topic, {LEADER_REPLICAS: None, FOLLOWER_REPLICAS: None})
