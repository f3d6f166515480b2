"""`ottla reassign-partitions`: move partitions to other brokers, as Kafka's ReassignPartitionsCommand does.

Replicas go to the directories that a file names, once they are on their brokers: what it prints for a way
back names those that they are in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import click

from ottla.cli import reassignment_log_dirs, reassignment_throttles
from ottla.cli.options import bootstrap_option, command_config_option, connect, read_properties
from ottla.cli.reassignment_cluster import ReassignmentCluster
from ottla.cli.reassignment_file import (
    Partition,
    Refused,
    Targets,
    checked,
    failed,
    names,
    read_brokers,
    read_log_dirs,
    read_targets,
    read_topics,
    written,
)
from ottla.client import ClientError
from ottla.version import __version__
from replication.controller.placement import PlacementImpossible, place_replicas

DEFAULT_TIMEOUT_MS = 10_000
ACTIONS = ("generate", "execute", "verify", "cancel", "list")
REQUIRED = {
    "generate": ("topics-to-move-json-file", "broker-list"),
    "execute": ("reassignment-json-file",),
    "verify": ("reassignment-json-file",),
    "cancel": ("reassignment-json-file",),
    "list": (),
}
PERMITTED = {
    "generate": ("disable-rack-aware",),
    "execute": ("additional", "throttle", "replica-alter-log-dirs-throttle", "timeout"),
    "verify": ("preserve-throttles",),
    "cancel": ("preserve-throttles", "timeout"),
    "list": (),
}
EXISTING = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to override this "
    "and create a new partition assignment in addition to the existing one. The --additional flag can also "
    "be used to change the throttle by resubmitting the current reassignment."
)
VERIFY_LATER = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle "
    "is removed."
)


def actions(function: Callable[..., None]) -> Callable[..., None]:
    """A flag for each action."""
    for action in reversed(ACTIONS):
        function = click.option(f"--{action}", is_flag=True)(function)
    return function


@click.command(name="reassign-partitions", short_help="Move partitions to other brokers.")
@bootstrap_option
@command_config_option
@actions
@click.option("--reassignment-json-file", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--topics-to-move-json-file", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--broker-list", metavar="ID,ID", help="The brokers to plan for.")
@click.option("--disable-rack-aware", is_flag=True, help="Plan without a look at racks.")
@click.option("--throttle", type=int, metavar="BYTES/S", help="Between brokers.")
@click.option("--replica-alter-log-dirs-throttle", type=int, metavar="BYTES/S", help="Within a broker.")
@click.option("--timeout", type=int, metavar="MS", help="For moves between directories.")
@click.option("--additional", is_flag=True, help="In addition to what is under way.")
@click.option("--preserve-throttles", is_flag=True, help="Leave throttles as they are.")
@click.version_option(__version__, message="%(version)s")
def command(bootstrap_server: str, command_config: Path | None, **given: object) -> None:
    """Plan, begin, look at, cancel or list the reassignment of partitions."""
    options = {name.replace("_", "-"): value for name, value in given.items() if value not in (None, False)}
    action = action_of(options)
    try:
        with connect(bootstrap_server, read_properties(command_config)) as client:
            cluster = ReassignmentCluster(client)
            RUN[action](cluster, options)
    except ClientError as error:
        raise failed(str(error)) from error


def action_of(options: dict[str, object]) -> str:
    """The one action that is asked for, with what it needs and nothing else."""
    asked = [action for action in ACTIONS if action in options]
    if len(asked) != 1:
        wanted = ", ".join(f"--{action}" for action in ACTIONS)
        raise click.UsageError(f"Command must include exactly one action: {wanted}")
    (action,) = asked
    for name in REQUIRED[action]:
        if name not in options:
            raise click.UsageError(f'Missing required argument "[{name}]"')
    for name in options:
        if name not in (action, *REQUIRED[action], *PERMITTED[action]):
            raise click.UsageError(f'Option "[{name}]" can\'t be used with action "[{action}]"')
    return action


def file_of(options: dict[str, object], name: str = "reassignment-json-file") -> Path:
    path = options[name]
    assert isinstance(path, Path)
    return path


def timeout_of(options: dict[str, object]) -> int:
    timeout_ms = options.get("timeout", DEFAULT_TIMEOUT_MS)
    assert isinstance(timeout_ms, int)
    return timeout_ms


def generate(cluster: ReassignmentCluster, options: dict[str, object]) -> None:
    """Print where the topics' partitions are and where they could be."""
    brokers = read_brokers(str(options["broker-list"]))
    current = cluster.replicas_of_topics(read_topics(file_of(options, "topics-to-move-json-file")))
    racks = {broker: rack for broker, rack in cluster.racks().items() if broker in brokers}
    if "disable-rack-aware" in options:
        racks = dict.fromkeys(racks)
    proposed: Targets = {}
    for topic in dict.fromkeys(topic for topic, _ in current):
        own = sorted(partition for partition in current if partition[0] == topic)
        try:
            placed = place_replicas(racks, len(own), len(current[own[0]]), start=0, shift=0)
        except PlacementImpossible as impossible:
            raise failed(str(impossible)) from impossible
        proposed.update(zip(own, placed, strict=True))
    click.echo(f"Current partition replica assignment\n{written(current, cluster.log_dirs(current))}\n")
    click.echo(f"Proposed partition reassignment configuration\n{written(proposed, {})}")


def execute(cluster: ReassignmentCluster, options: dict[str, object]) -> None:
    """Begin to move partitions."""
    targets = checked(read_targets(file_of(options)))
    directories = read_log_dirs(file_of(options))
    under_way = cluster.under_way(None)
    if under_way and "additional" not in options:
        raise Refused(EXISTING)
    for broker in dict.fromkeys(broker for replicas in targets.values() for broker in replicas):
        if broker not in cluster.racks():
            raise failed(f"Unknown broker id {broker}")
    current = cluster.replicas_of(targets)
    click.echo(f"Current partition replica assignment\n\n{written(current, cluster.log_dirs(current))}\n")
    click.echo("Save this to use as the --reassignment-json-file option during rollback")
    throttle = options.get("throttle")
    if throttle is not None or "replica-alter-log-dirs-throttle" in options:
        click.echo(VERIFY_LATER)
    if isinstance(throttle, int):
        reassignment_throttles.put(cluster, under_way, targets, current, throttle)
    within = options.get("replica-alter-log-dirs-throttle")
    if isinstance(within, int):
        reassignment_throttles.put_log_dirs(cluster, [broker for _, broker in directories], within)
    errors = cluster.alter(dict(targets))
    if errors:
        raise Refused(f"Error reassigning partition(s):\n{told(errors)}")
    click.echo(f"Successfully started partition reassignment{plural(targets)} for {names(sorted(targets))}")
    if directories:
        reassignment_log_dirs.begin(cluster, directories, timeout_of(options))


def verify(cluster: ReassignmentCluster, options: dict[str, object]) -> None:
    """Print how far partitions have come; take throttles away when nothing moves any more."""
    targets = read_targets(file_of(options))
    under_way = cluster.under_way(None)
    click.echo("Status of partition reassignment:")
    for (topic, partition), wanted in sorted(targets):
        name = f"{topic}-{partition}"
        if (topic, partition) in under_way:
            click.echo(f"Reassignment of partition {name} is still in progress.")
            continue
        replicas = cluster.replicas_if_known((topic, partition))
        if replicas == wanted:
            click.echo(f"Reassignment of partition {name} is completed.")
        else:
            click.echo(
                f"There is no active reassignment of partition {name}, but replica set is "
                f"{','.join(map(str, replicas))} rather than {','.join(map(str, wanted))}."
            )
    lines, moving = reassignment_log_dirs.states(cluster, read_log_dirs(file_of(options)))
    click.echo("\n".join(lines))
    if not under_way and not moving and "preserve-throttles" not in options:
        reassignment_throttles.clear(cluster, targets)


def cancel(cluster: ReassignmentCluster, options: dict[str, object]) -> None:
    """Have partitions go back to where they were."""
    targets = read_targets(file_of(options))
    moving = sorted(cluster.under_way([partition for partition, _ in targets]) if targets else ())
    if moving:
        errors = cluster.alter(dict.fromkeys(moving))
        if errors:
            raise Refused(f"Error cancelling partition reassignment{plural(errors)} for:\n{told(errors)}")
        click.echo(f"Successfully cancelled partition reassignment{plural(moving)} for: {names(moving)}")
    else:
        click.echo("None of the specified partition reassignments are active.")
    back = reassignment_log_dirs.active(cluster, read_log_dirs(file_of(options)))
    if back:
        reassignment_log_dirs.begin(cluster, back, timeout_of(options))
    else:
        click.echo("None of the specified partition moves are active.", nl=False)
    if "preserve-throttles" not in options:
        reassignment_throttles.clear(cluster, targets)


def list_(cluster: ReassignmentCluster, options: dict[str, object]) -> None:
    """Print what is under way."""
    under_way = cluster.under_way(None)
    if not under_way:
        click.echo("No partition reassignments found.")
        return
    click.echo("Current partition reassignments:")
    for (topic, partition), moving in sorted(under_way.items()):
        line = f"{topic}-{partition}: replicas: {joined(moving.replicas)}."
        if moving.adding:
            line += f" adding: {joined(moving.adding)}."
        if moving.removing:
            line += f" removing: {joined(moving.removing)}."
        click.echo(line)


RUN = {"generate": generate, "execute": execute, "verify": verify, "cancel": cancel, "list": list_}


def told(errors: dict[Partition, str]) -> str:
    return "\n".join(f"{names([partition])}: {errors[partition]}" for partition in sorted(errors))


def plural(things: Sequence[object] | dict[Partition, object] | Targets | dict[Partition, str]) -> str:
    return "" if len(things) == 1 else "s"


def joined(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))
