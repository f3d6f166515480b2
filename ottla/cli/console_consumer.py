"""`ottla console-consumer`: prints a topic's records, with Kafka's ConsoleConsumer's flags and output.

Without --group it reads all partitions of the topic itself, as there is nothing to share. Records go to
standard output, the count and complaints to standard error.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from pathlib import Path

import click

from ottla.cli.formatters import Formatter, formatter
from ottla.cli.options import (
    ToolFailed,
    bootstrap_option,
    connect,
    properties_of,
    topic_pattern,
)
from ottla.cli.topics import INTERNAL_TOPICS
from ottla.client import ClientError, KafkaClient
from ottla.reader import EARLIEST, LATEST, MAX_WAIT_MS, Reader
from ottla.version import __version__

DEFAULT_FORMATTER = "org.apache.kafka.tools.consumer.DefaultMessageFormatter"
NAMED_OFFSETS = {"earliest": EARLIEST, "latest": LATEST}
OLD_OPTIONS = {
    "property": "formatter-property",
    "consumer-property": "command-property",
    "consumer.config": "command-config",
}


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
@click.option("--group", metavar="ID", help="The consumer group to join.")
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
    for old, given in (
        ("property", old_property),
        ("consumer-property", consumer_property),
        ("consumer.config", consumer_config),
    ):
        if given:
            click.echo(
                f"Option --{old} is deprecated and will be removed in a future version. "
                f"Use --{OLD_OPTIONS[old]} instead."
            )
    if (topic is None) == (include is None):
        raise ToolFailed("Exactly one of the following arguments is required: [topic], [include]")
    start = first_offset(partition, offset, from_beginning)
    if group is not None:
        if partition is not None:
            raise ToolFailed("Options group and partition cannot be specified together.")
        raise ToolFailed("--group: consumer groups are not served yet; without it every record is read")
    if isolation_level not in ("read_committed", "read_uncommitted"):
        raise ToolFailed("--isolation-level is read_committed or read_uncommitted")
    properties = properties_of(formatter_config, (*old_property, *formatter_property))
    if key_deserializer:
        properties["key.deserializer"] = key_deserializer
    if value_deserializer:
        properties["value.deserializer"] = value_deserializer
    form = formatter(formatter_name, properties)
    client_properties = properties_of(
        command_config or consumer_config, (*consumer_property, *command_property)
    )
    printer = Printer(form, max_messages, timeout_ms, skip_message_on_error)
    try:
        with connect(bootstrap_server, client_properties) as client:
            starts = dict.fromkeys(partitions(client, topic, include, partition), start)
            printer.print_all(client, starts, from_beginning, isolation_level == "read_committed")
    except (ClientError, KeyboardInterrupt) as error:
        printer.say_count()
        if isinstance(error, ClientError):
            raise ToolFailed(str(error)) from error
    else:
        printer.say_count()


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


def partitions(
    client: KafkaClient, topic: str | None, include: str | None, partition: int | None
) -> list[tuple[str, int]]:
    """The partitions to read; a topic that is missing is created where the broker does that."""
    if include is not None:
        pattern = topic_pattern(include)
        names = sorted(found.name or "" for found in client.metadata(None))
        topics = [name for name in names if name not in INTERNAL_TOPICS and pattern.fullmatch(name)]
    else:
        topics = [topic or ""]
    found = [(name, each) for name in topics for each in client.partitions_of(name, create_missing=True)]
    return [each for each in found if partition is None or each[1] == partition]


class Printer:
    """Writes records until enough are written or none comes for too long."""

    def __init__(self, form: Formatter, max_messages: int, timeout_ms: int | None, skip_errors: bool) -> None:
        self.count = 0
        self._form = form
        self._max_messages = max_messages
        self._timeout_s = None if timeout_ms is None else timeout_ms / 1000
        self._skip_errors = skip_errors

    def print_all(
        self,
        client: KafkaClient,
        starts: Mapping[tuple[str, int], int],
        from_beginning: bool,
        read_committed: bool,
    ) -> None:
        """Reads and writes; returns when done."""
        reader = Reader(client, starts, EARLIEST if from_beginning else LATEST, read_committed)
        output = sys.stdout.buffer
        last = time.monotonic()
        while self.count != self._max_messages:
            left_s = MAX_WAIT_MS / 1000
            if self._timeout_s is not None:
                left_s = min(left_s, last + self._timeout_s - time.monotonic())
                if left_s <= 0:
                    return
            if not starts:
                time.sleep(left_s)
            for received in reader.read(max(1, int(left_s * 1000))):
                last = time.monotonic()
                self.count += 1
                try:
                    output.write(self._form(received))
                except ToolFailed:
                    if not self._skip_errors:
                        output.flush()
                        self.say_count()
                        raise
                if self.count == self._max_messages:
                    break
            output.flush()

    def say_count(self) -> None:
        """The last line of Kafka's tool."""
        click.echo(f"Processed a total of {self.count} messages", err=True)
