"""`ottla console-consumer`: prints a topic's records, with Kafka's ConsoleConsumer's flags and output.

It reads as a member of a group, of its own unless --group names one, or one partition with --partition.
Records go to standard output, the count and complaints to standard error.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

import click

from ottla.cli.consumer_properties import (
    DEFAULT_CLIENT_ID,
    GroupChoice,
    choose_group,
    consumer_settings,
    lines_about_old_options,
    member_maker,
    reset_policy,
)
from ottla.cli.formatters import formatter
from ottla.cli.options import (
    ToolFailed,
    bootstrap_option,
    connect,
    properties_of,
    read_properties,
)
from ottla.cli.record_printer import Printer, Source
from ottla.cli.topics import INTERNAL_TOPICS
from ottla.client import ClientError, KafkaClient
from ottla.groups.consumer import GroupConsumer
from ottla.reader import EARLIEST, LATEST, Reader, Received
from ottla.version import __version__

DEFAULT_FORMATTER = "org.apache.kafka.tools.consumer.DefaultMessageFormatter"
NAMED_OFFSETS = {"earliest": EARLIEST, "latest": LATEST}


@click.command(name="console-consumer", short_help="Print a topic's records.")
@bootstrap_option
@click.option("--topic", metavar="NAME", help="The topic to read.")
@click.option("--include", metavar="REGEX", help="The topics to read, by a regular expression.")
@click.option("--partition", type=int, metavar="N", help="The only partition to read.")
@click.option(
    "--offset", metavar="N|earliest|latest", help="Where to begin in --partition.  [default: latest]"
)
@click.option("--from-beginning", is_flag=True, help="Begin with the oldest record.")
@click.option("--max-messages", type=int, default=-1, metavar="N", help="End after so many records.")
@click.option("--timeout-ms", type=int, metavar="MS", help="End when no record comes for so long.")
@click.option("--group", metavar="ID", help="The consumer group to join.  [default: one for this run]")
@click.option("--isolation-level", default="read_uncommitted", metavar="LEVEL", help="Or read_committed.")
@click.option(
    "--formatter", "formatter_name", default=DEFAULT_FORMATTER, metavar="CLASS", help="Writes records."
)
@click.option(
    "--formatter-property", multiple=True, metavar="K=V", help="print.key=true, key.separator=| ..."
)
@click.option(
    "--formatter-config", type=click.Path(path_type=Path), metavar="FILE", help="The same in a file."
)
@click.option(
    "--property", "old_property", multiple=True, metavar="K=V", help="Old name of --formatter-property."
)
@click.option("--key-deserializer", metavar="CLASS", help="Reads keys.")
@click.option("--value-deserializer", metavar="CLASS", help="Reads values.")
@click.option("--skip-message-on-error", is_flag=True, help="Go on after a record that can't be written.")
@click.option("--enable-systest-events", is_flag=True, help="Accepted; Kafka's own system tests use it.")
@click.option("--command-property", multiple=True, metavar="K=V", help="A client property.")
@click.option("--command-config", type=click.Path(path_type=Path), metavar="FILE", help="Client properties.")
@click.option("--consumer-property", multiple=True, metavar="K=V", help="Old name of --command-property.")
@click.option(
    "--consumer.config",
    "consumer_config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Old name of --command-config.",
)
@click.version_option(__version__, message="%(version)s")
def command(
    bootstrap_server: str,
    topic: str | None,
    include: str | None,
    partition: int | None,
    offset: str | None,
    from_beginning: bool,
    max_messages: int,
    timeout_ms: int | None,
    group: str | None,
    isolation_level: str,
    formatter_name: str,
    formatter_property: tuple[str, ...],
    formatter_config: Path | None,
    old_property: tuple[str, ...],
    key_deserializer: str | None,
    value_deserializer: str | None,
    skip_message_on_error: bool,
    enable_systest_events: bool,
    command_property: tuple[str, ...],
    command_config: Path | None,
    consumer_property: tuple[str, ...],
    consumer_config: Path | None,
) -> None:
    """Print the records of a topic."""
    for line in lines_about_old_options(
        (
            ("property", "formatter-property", old_property),
            ("consumer-property", "command-property", consumer_property),
            ("consumer.config", "command-config", consumer_config),
        )
    ):
        click.echo(line)
    if (topic is None) == (include is None):
        raise ToolFailed("Exactly one of the following arguments is required: [topic], [include]")
    if partition is not None and topic is None:
        raise ToolFailed("The topic is required when partition is specified.")
    start = first_offset(partition, offset, from_beginning)
    if isolation_level not in ("read_committed", "read_uncommitted"):
        raise ToolFailed("--isolation-level is read_committed or read_uncommitted")
    properties = properties_of(formatter_config, (*old_property, *formatter_property))
    if key_deserializer:
        properties["key.deserializer"] = key_deserializer
    if value_deserializer:
        properties["value.deserializer"] = value_deserializer
    form = formatter(formatter_name, properties)
    config = command_config or consumer_config
    pairs = (*consumer_property, *command_property)
    wish = Wish(
        bootstrap_server,
        {"client.id": DEFAULT_CLIENT_ID, **properties_of(config, pairs)},
        topic,
        include,
        from_beginning,
        read_committed=isolation_level == "read_committed",
    )
    choice = choose_group(group, read_properties(config), properties_of(None, pairs))
    if partition is not None and not choice.generated:
        raise ToolFailed("Options group and partition cannot be specified together.")
    reset = reset_policy(wish.properties, from_beginning)
    printer = Printer(form, max_messages, timeout_ms, skip_message_on_error)
    source = one_partition(wish, partition, start) if partition is not None else in_group(wish, choice, reset)
    print_records(source, printer)


def print_records(source: AbstractContextManager[Source], printer: Printer) -> None:
    """Prints what a source has; the count comes last, whatever the end."""
    try:
        with source as read:
            printer.print_all(read)
    except ClientError as error:
        printer.say_count()
        raise ToolFailed(str(error)) from error
    except (ToolFailed, KeyboardInterrupt) as error:
        printer.say_count()
        if isinstance(error, ToolFailed):
            raise
    else:
        printer.say_count()


class Wish(NamedTuple):
    """What is to be read, from where, and how."""

    bootstrap: str
    properties: Mapping[str, str]
    topic: str | None
    include: str | None
    from_beginning: bool
    read_committed: bool


@contextmanager
def one_partition(wish: Wish, partition: int, start: int) -> Iterator[Source]:
    """Reads one partition of the topic, in no group."""
    topic = wish.topic or ""
    with connect(wish.bootstrap, wish.properties) as client:
        there = partition in client.partitions_of(topic, create_missing=True)
        starts = {(topic, partition): start} if there else {}
        reader = Reader(client, starts, EARLIEST if wish.from_beginning else LATEST, wish.read_committed)

        def read(max_wait_ms: int, left_s: float | None) -> Iterator[Received]:
            if not there:
                time.sleep(max_wait_ms / 1000)
            return reader.read(max_wait_ms)

        yield read


@contextmanager
def in_group(wish: Wish, choice: GroupChoice, reset: int) -> Iterator[Source]:
    """Reads what the group gives to this member; leaves it at the end."""
    settings = consumer_settings(wish.properties, choice, reset, wish.read_committed)
    make_member = member_maker(choice.group_id, wish.properties)
    with (
        connect(wish.bootstrap, wish.properties) as client,
        connect(wish.bootstrap, wish.properties) as other,
    ):
        consumer = GroupConsumer(client, make_member(other), lambda: topics_of(client, wish), settings)
        try:
            yield consumer.read
        finally:
            consumer.close()


def topics_of(client: KafkaClient, wish: Wish) -> list[str]:
    """The topics to read; one that is missing is created where the broker does that."""
    if wish.include is None:
        client.partitions_of(wish.topic or "", create_missing=True)
        return [wish.topic or ""]
    try:
        pattern = re.compile(wish.include)
    except re.error as error:
        raise ToolFailed(f"{wish.include} is an invalid regex: {error}") from error
    names = sorted(found.name or "" for found in client.metadata(None))
    return [name for name in names if name not in INTERNAL_TOPICS and pattern.fullmatch(name)]


def first_offset(partition: int | None, offset: str | None, from_beginning: bool) -> int:
    """Where to begin: an offset, EARLIEST or LATEST."""
    if offset is None:
        return EARLIEST if from_beginning else LATEST
    if partition is None:
        raise ToolFailed("The partition is required when offset is specified.")
    if from_beginning:
        raise ToolFailed("Options from-beginning and offset cannot be specified together.")
    if offset.lower() in NAMED_OFFSETS:
        return NAMED_OFFSETS[offset.lower()]
    if not offset.isdigit():
        raise ToolFailed(
            f"The provided offset value '{offset}' is incorrect. Valid values are 'earliest', 'latest', "
            "or a non-negative long."
        )
    return int(offset)
