"""`ottla topics`: create, delete, describe, list and change topics, as Kafka's TopicCommand does.

A refusal is one line on standard output and exit code 1, as there. Topics are described in the order of their
names, where Kafka's order is that of a hash table.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from ottla.cli.describe_topics import Filters, describe
from ottla.cli.options import (
    ToolFailed,
    bootstrap_option,
    command_config_option,
    connect,
    read_properties,
    topic_pattern,
)
from ottla.client import ClientError, KafkaClient, check
from ottla.version import __version__
from protocol import messages as m

INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state")
ACTIONS = ("list", "describe", "create", "alter", "delete")

# Which actions an option belongs to; anywhere else it is refused.
BELONGS_TO = {
    "config": ("create",),
    "partitions": ("create", "alter"),
    "replication-factor": ("create",),
    "replica-assignment": ("create", "alter"),
    "if-not-exists": ("create",),
    "if-exists": ("alter", "delete", "describe"),
    "exclude-internal": ("list", "describe"),
    "topic-id": ("describe",),
    "topics-with-overrides": ("describe",),
    "under-replicated-partitions": ("describe",),
    "unavailable-partitions": ("describe",),
    "under-min-isr-partitions": ("describe",),
    "at-min-isr-partitions": ("describe",),
    "partition-size-limit-per-response": ("describe",),
}


@dataclass(slots=True)
class Arguments:
    """The options of one call, under their names with underscores."""

    action: str
    topic: str | None
    topic_id: str | None
    config: tuple[str, ...]
    partitions: int | None
    replication_factor: int | None
    replica_assignment: str | None
    if_exists: bool
    if_not_exists: bool
    exclude_internal: bool
    filters: Filters
    page_size: int


@click.command(name="topics", short_help="Create, delete, describe, list or change topics.")
@bootstrap_option
@command_config_option
@click.option("--list", "list_topics", is_flag=True, help="List topics.")
@click.option("--describe", is_flag=True, help="Show topics with their partitions.")
@click.option("--create", is_flag=True, help="Create a topic.")
@click.option("--alter", is_flag=True, help="Add partitions to topics.")
@click.option("--delete", is_flag=True, help="Delete topics.")
@click.option("--topic", metavar="NAME", help="The topic; a regular expression, except with --create.")
@click.option("--topic-id", metavar="ID", help="The topic to describe, by its id.")
@click.option("--config", multiple=True, metavar="NAME=VALUE", help="A setting of the new topic.")
@click.option("--partitions", type=int, metavar="N", help="How many partitions the topic gets.")
@click.option("--replication-factor", type=int, metavar="N", help="How many replicas each partition gets.")
@click.option(
    "--replica-assignment", metavar="B:B,B:B", help="Broker ids, replicas by ':', partitions by ','."
)
@click.option("--if-exists", is_flag=True, help="No failure where the topic does not exist.")
@click.option("--if-not-exists", is_flag=True, help="No failure where the topic exists.")
@click.option("--exclude-internal", is_flag=True, help="Leave internal topics out.")
@click.option("--topics-with-overrides", is_flag=True, help="Only topics with settings of their own.")
@click.option("--under-replicated-partitions", is_flag=True, help="Only partitions that miss replicas.")
@click.option("--unavailable-partitions", is_flag=True, help="Only partitions without a leader.")
@click.option("--under-min-isr-partitions", is_flag=True, help="Only those below min.insync.replicas.")
@click.option("--at-min-isr-partitions", is_flag=True, help="Only those at min.insync.replicas.")
@click.option("--partition-size-limit-per-response", type=int, default=2000, help="Partitions a response.")
@click.version_option(__version__, message="%(version)s")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    bootstrap_server: str,
    command_config: Path | None,
    topics_with_overrides: bool,
    under_replicated_partitions: bool,
    unavailable_partitions: bool,
    under_min_isr_partitions: bool,
    at_min_isr_partitions: bool,
    partition_size_limit_per_response: int,
    list_topics: bool,
    **options: object,
) -> None:
    """Create, delete, describe, list or change topics."""
    chosen = [action for action in ACTIONS if (list_topics if action == "list" else options.pop(action))]
    if len(chosen) != 1:
        raise ToolFailed(
            "Command must include exactly one action: --list, --describe, --create, --alter or --delete"
        )
    refuse_foreign_options(ctx, chosen[0])
    filters = Filters(
        topics_with_overrides,
        under_replicated_partitions,
        unavailable_partitions,
        under_min_isr_partitions,
        at_min_isr_partitions,
    )
    arguments = Arguments(
        action=chosen[0],
        filters=filters,
        page_size=partition_size_limit_per_response,
        **options,  # type: ignore[arg-type]
    )
    check_arguments(arguments)
    try:
        with connect(bootstrap_server, read_properties(command_config)) as client:
            {"list": list_names, "describe": show, "create": create, "alter": alter, "delete": delete}[
                arguments.action
            ](client, arguments)
    except ClientError as error:
        click.echo(f"Error while executing topic command : {error}")
        sys.exit(1)


def refuse_foreign_options(ctx: click.Context, action: str) -> None:
    """Refuses options that belong to other actions."""
    for option, actions in BELONGS_TO.items():
        source = ctx.get_parameter_source(option.replace("-", "_"))
        if source is click.core.ParameterSource.COMMANDLINE and action not in actions:
            raise ToolFailed(f'Option "[{option}]" can\'t be used with option "[{action}]"')


def check_arguments(arguments: Arguments) -> None:
    """What can be refused without asking a broker."""
    if arguments.topic is None and arguments.action in ("create", "alter", "delete"):
        raise ToolFailed('Missing required argument "[topic]"')
    if arguments.action == "alter" and arguments.partitions is None:
        raise ToolFailed('Missing required argument "[partitions]"')
    if arguments.action == "create" and arguments.replica_assignment is not None:
        for option, given in (
            ("partitions", arguments.partitions),
            ("replication-factor", arguments.replication_factor),
        ):
            if given is not None:
                raise ToolFailed(f'Option "[replica-assignment]" can\'t be used with option "[{option}]"')


def create(client: KafkaClient, arguments: Arguments) -> None:
    """--create."""
    name = arguments.topic or ""
    if "." in name or "_" in name:
        click.echo(
            "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') "
            "could collide. To avoid issues it is best to use either, but not both."
        )
    if arguments.partitions is not None and arguments.partitions < 1:
        raise ClientError("The partitions must be greater than 0")
    factor = arguments.replication_factor
    if factor is not None and not 1 <= factor <= 32767:
        raise ClientError("The replication factor must be between 1 and 32767 inclusive")
    config = {}
    for pair in arguments.config:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ClientError(
                'requirement failed: Invalid topic config: all configs must be in the format "key=val".'
            )
        config[key.strip()] = value.strip()
    assignments = parse_assignment(arguments.replica_assignment) if arguments.replica_assignment else []
    try:
        client.create_topic(name, arguments.partitions or -1, factor or -1, config, assignments)
    except ClientError as error:
        if arguments.if_not_exists and error.error is not None and error.error.name == "TOPIC_ALREADY_EXISTS":
            return
        raise
    click.echo(f"Created topic {name}.")


def list_names(client: KafkaClient, arguments: Arguments) -> None:
    """--list; an empty line for no topics, as Kafka prints it."""
    click.echo("\n".join(matching(client, arguments)))


def show(client: KafkaClient, arguments: Arguments) -> None:
    """--describe."""
    if arguments.topic_id is not None:
        from protocol.uuids import uuid_from_text, uuid_to_text

        known = {uuid_to_text(topic.topic_id): topic.name or "" for topic in client.metadata(None)}
        wanted = uuid_to_text(uuid_from_text(arguments.topic_id))
        names = [known[wanted]] if wanted in known else []
        expect_topics(names, arguments, f"TopicId '{arguments.topic_id}'")
    else:
        names = matching(client, arguments)
        expect_topics(names, arguments)
    if names:
        describe(client, names, arguments.filters, arguments.page_size)


def alter(client: KafkaClient, arguments: Arguments) -> None:
    """--alter: more partitions."""
    names = matching(client, arguments)
    expect_topics(names, arguments)
    counts = {topic.name: len(topic.partitions) for topic in client.metadata(names)} if names else {}
    given = parse_assignment(arguments.replica_assignment) if arguments.replica_assignment else None
    for name in names:
        assignments = None
        if given is not None:
            assignments = [
                m.CreatePartitionsRequest.CreatePartitionsAssignment(broker_ids=ids)
                for ids in given[counts[name] :]
            ]
        topic = m.CreatePartitionsRequest.CreatePartitionsTopic(
            name=name, count=arguments.partitions or 0, assignments=assignments
        )
        request = m.CreatePartitionsRequest(topics=[topic], timeout_ms=int(client.timeout_s * 1000))
        grown = client.call_controller(request, lambda answer: [each.error_code for each in answer.results])
        for result in grown.results:
            check(result.error_code, result.error_message)


def delete(client: KafkaClient, arguments: Arguments) -> None:
    """--delete."""
    names = matching(client, arguments)
    expect_topics(names, arguments)
    for name in names:
        client.delete_topic(name)


def matching(client: KafkaClient, arguments: Arguments) -> list[str]:
    """Names of the topics meant, in order."""
    names = sorted(topic.name or "" for topic in client.metadata(None))
    if arguments.topic is not None:
        pattern = topic_pattern(arguments.topic)
        names = [name for name in names if pattern.fullmatch(name)]
    if arguments.exclude_internal:
        names = [name for name in names if name not in INTERNAL_TOPICS]
    return names


def expect_topics(names: Sequence[str], arguments: Arguments, what: str | None = None) -> None:
    """Fails where a topic was named and none is there."""
    named = what or (arguments.topic and f"Topic '{arguments.topic}'")
    if named and not names and not arguments.if_exists:
        raise ClientError(f"{named} does not exist as expected")


def parse_assignment(text: str) -> list[list[int]]:
    """Parses "0:1,1:2": broker ids of each partition's replicas."""
    try:
        parsed = [[int(broker) for broker in partition.split(":")] for partition in text.split(",")]
    except ValueError as error:
        raise ClientError(f"'{text}' is no replica assignment: write 0:1,1:2") from error
    for index, brokers in enumerate(parsed):
        if len(dict.fromkeys(brokers)) != len(brokers):
            raise ClientError(f"Partition replica lists may not contain duplicate entries: {index}")
        if len(brokers) != len(parsed[0]):
            raise ClientError(f"Partition {index} has different replication factor: {brokers}")
    return parsed
