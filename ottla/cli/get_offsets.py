"""`ottla get-offsets`: first, last or timed offsets of partitions, as Kafka's GetOffsetShell prints them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import click

from ottla.cli.options import (
    ToolFailed,
    bootstrap_option,
    command_config_option,
    connect,
    read_properties,
    topic_pattern,
)
from ottla.cli.topics import INTERNAL_TOPICS
from ottla.client import ClientError, KafkaClient
from ottla.version import __version__
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode

NAMED_TIMES = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
    "earliest-pending-upload": -6,
}
# The ListOffsets version in which a named time appeared.
VERSION_OF_TIME = {-3: 7, -4: 8, -5: 9, -6: 11}

RULE = re.compile(r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?")


@click.command(name="get-offsets", short_help="Print partitions' offsets.")
@bootstrap_option
@command_config_option
@click.option("--topic", metavar="REGEX", help="Topics by name.")
@click.option("--partitions", metavar="N,N", help="Partition ids; all without it.")
@click.option("--topic-partitions", metavar="T:N,T:N-M", help="Topics with partitions or ranges of them.")
@click.option(
    "--time",
    "time_text",
    default="latest",
    metavar="MS|NAME",
    help=f"A timestamp, or {', '.join(NAMED_TIMES)}.",
)
@click.option("--exclude-internal-topics", is_flag=True, help="Leave internal topics out.")
@click.version_option(__version__, message="%(version)s")
def command(
    bootstrap_server: str,
    command_config: Path | None,
    topic: str | None,
    partitions: str | None,
    topic_partitions: str | None,
    time_text: str,
    exclude_internal_topics: bool,
) -> None:
    """Print `topic:partition:offset` lines."""
    if topic_partitions is not None and (topic is not None or partitions is not None):
        refuse("--topic-partitions cannot be used with --topic or --partitions")
    timestamp = parse_time(time_text)
    filters = parse_rules(topic_partitions) if topic_partitions is not None else [one_rule(topic, partitions)]
    try:
        with connect(bootstrap_server, read_properties(command_config)) as client:
            wanted = [
                (described.name or "", partition.partition_index)
                for described in client.metadata(None)
                if not (exclude_internal_topics and described.name in INTERNAL_TOPICS)
                for partition in described.partitions
                if any(rule.lets_pass(described.name or "", partition.partition_index) for rule in filters)
            ]
            if not wanted:
                refuse("Could not match any topic-partitions with the specified filters")
            found = dict(offsets(client, sorted(wanted), timestamp))
    except ClientError as error:
        refuse(str(error))
    for name, index in sorted(found, key=lambda key: f"{key[0]}-{key[1]}"):
        click.echo(f"{name}:{index}:{found[name, index]}")


class Rule:
    """One filter: a topic pattern, and a half-open range or a list of partitions."""

    __slots__ = ("end", "first", "only", "pattern")

    def __init__(
        self, topic: str | None, first: int = 0, end: int | None = None, only: tuple[int, ...] | None = None
    ) -> None:
        self.pattern = topic_pattern(topic) if topic else None
        self.first = first
        self.end = end
        self.only = only

    def lets_pass(self, topic: str, partition: int) -> bool:
        """Whether a partition is meant."""
        if self.pattern is not None and not self.pattern.fullmatch(topic):
            return False
        if self.only is not None:
            return partition in self.only
        return self.first <= partition and (self.end is None or partition < self.end)


def one_rule(topic: str | None, partitions: str | None) -> Rule:
    """The filter of --topic and --partitions."""
    if partitions is None:
        return Rule(topic)
    try:
        return Rule(topic, only=tuple(int(each) for each in partitions.split(",")))
    except ValueError:
        refuse(
            "--partitions expects a comma separated list of numeric partition ids, "
            f"but received: {partitions}"
        )


def parse_rules(text: str) -> list[Rule]:
    """The filters of --topic-partitions: `topic`, `topic:3`, `topic:1-4`, `topic:2-`, `:-2`."""
    rules = []
    for part in text.split(","):
        found = RULE.fullmatch(part)
        if found is None:
            refuse(f"Invalid rule specification: {part}")
        topic, single, first, end = found.groups()
        if single:
            rules.append(Rule(topic, int(single), int(single) + 1))
        else:
            rules.append(Rule(topic, int(first or 0), int(end) if end else None))
    return rules


def parse_time(text: str) -> int:
    """A timestamp in ms, or one of the names and their negative numbers."""
    if text in NAMED_TIMES:
        return NAMED_TIMES[text]
    try:
        return int(text)
    except ValueError:
        named = " / ".join(f"{number} or {name}" for name, number in NAMED_TIMES.items())
        refuse(f"Malformed time argument {text}. Please use {named}, or a specified long format timestamp")


def offsets(
    client: KafkaClient, wanted: list[tuple[str, int]], timestamp: int
) -> Iterator[tuple[tuple[str, int], int]]:
    """The offset of each partition that has one; what can't be asked is named on standard error."""
    reachable = []
    for topic, partition in wanted:
        try:
            client.leader(topic, partition)
        except ClientError as error:
            skip(topic, partition, str(error))
        else:
            reachable.append((topic, partition))
    for node, topics in client.by_leader(reachable).items():
        version = client.connection(node).version_for(ApiKey.LIST_OFFSETS)
        if version < VERSION_OF_TIME.get(timestamp, 1):
            raise ClientError(f"the broker does not know the time {timestamp}")
        request = m.ListOffsetsRequest(
            replica_id=-1,
            timeout_ms=int(client.timeout_s * 1000),
            topics=[
                m.ListOffsetsRequest.ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        m.ListOffsetsRequest.ListOffsetsPartition(
                            partition_index=index, current_leader_epoch=-1, timestamp=timestamp
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in topics.items()
            ],
        )
        response: m.ListOffsetsResponse = client.call(request, node)
        for answered in response.topics:
            for each in answered.partitions:
                if each.error_code != ErrorCode.NONE:
                    skip(answered.name, each.partition_index, ErrorCode(each.error_code).message)
                elif each.offset >= 0:
                    yield (answered.name, each.partition_index), each.offset


def skip(topic: str, partition: int, why: str) -> None:
    """Names a partition that is left out."""
    click.echo(f"Skip getting offsets for topic-partition {topic}-{partition} due to error: {why}", err=True)


def refuse(message: str) -> NoReturn:
    """Ends the tool."""
    raise ToolFailed(f"Error occurred: {message}")
