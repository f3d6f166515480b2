"""`ottla leader-election`: have preferred or unclean leaders elected, as Kafka's LeaderElectionCommand does.

What was elected and what failed is printed on standard output; the exit code is 1 when anything failed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ottla.cli import java_errors
from ottla.cli.controller_calls import ask_controller
from ottla.cli.options import ToolFailed, bootstrap_option, connect, read_properties
from ottla.client import ClientError, KafkaClient, check
from ottla.version import __version__
from protocol import messages as m
from protocol.errors import ErrorCode

TYPES = {"preferred": 0, "unclean": 1}
TIMEOUT_MS = 15_000

Partition = tuple[str, int]


@click.command(name="leader-election", short_help="Elect preferred or unclean leaders.")
@bootstrap_option
@click.option("--admin.config", "config", type=click.Path(path_type=Path), metavar="FILE", hidden=True)
@click.option("--election-type", metavar="preferred|unclean", help="The kind of election.")
@click.option("--topic", metavar="TOPIC", help="The topic of one partition.")
@click.option("--partition", type=int, metavar="N", help="The partition of --topic.")
@click.option("--all-topic-partitions", is_flag=True, help="All partitions that need it.")
@click.option(
    "--path-to-json-file",
    "path",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help='{"partitions": [{"topic": "foo", "partition": 1}]}',
)
@click.version_option(__version__, message="%(version)s")
def command(
    bootstrap_server: str,
    config: Path | None,
    election_type: str | None,
    topic: str | None,
    partition: int | None,
    all_topic_partitions: bool,
    path: Path | None,
) -> None:
    """Elect leaders for partitions."""
    if election_type is None:
        raise ToolFailed("Missing required option(s): election-type")
    if [topic is not None, all_topic_partitions, path is not None].count(True) != 1:
        raise ToolFailed(
            "One and only one of the following options is required: "
            "topic, all-topic-partitions, path-to-json-file"
        )
    if topic is not None and partition is None:
        raise ToolFailed("Missing required option(s): partition")
    if topic is None and partition is not None:
        raise ToolFailed("Option partition is only allowed if topic is used")
    kind = election_type.lower()
    if kind not in TYPES:
        raise ToolFailed(f"Cannot parse argument '{election_type}' of option election-type")
    wanted: list[Partition] | None = None
    if path is not None:
        wanted = read_partitions(path)
    elif topic is not None and partition is not None:
        wanted = [(topic, partition)]
    try:
        with connect(bootstrap_server, read_properties(config)) as client:
            outcomes = elect(client, TYPES[kind], wanted)
    except ClientError as error:
        raise ToolFailed(str(error)) from error
    report(kind.upper(), outcomes)


def read_partitions(path: Path) -> list[Partition]:
    """The partitions of a file. Raises ToolFailed with the words of Kafka's tool."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ToolFailed(f"java.io.IOException: Unable to read file {path}") from error
    except ValueError as error:
        raise ToolFailed("Replica election data is empty") from error
    if not isinstance(document, dict) or not isinstance(document.get("partitions"), list):
        raise ToolFailed('Replica election data is missing "partitions" field')
    found = [partition_of(row) for row in document["partitions"]]
    repeated = [key for key in dict.fromkeys(found) if found.count(key) > 1]
    if repeated:
        names = ", ".join(f"{topic}-{partition}" for topic, partition in repeated)
        raise ToolFailed(f"Replica election data contains duplicate partitions: [{names}]")
    return found


def partition_of(row: Any) -> Partition:
    topic, partition = (row.get("topic"), row.get("partition")) if isinstance(row, dict) else (None, None)
    if not isinstance(topic, str) or not isinstance(partition, int):
        raise ToolFailed(f"Replica election data has a row without topic and partition: {json.dumps(row)}")
    return topic, partition


def elect(
    client: KafkaClient, kind: int, wanted: list[Partition] | None
) -> dict[Partition, ClientError | None]:
    """The outcome of each partition; of all that needed an election where none is named."""
    topics: dict[str, list[int]] = {}
    for topic, partition in wanted or ():
        topics.setdefault(topic, []).append(partition)
    rows = [m.ElectLeadersRequest.TopicPartitions(topic=t, partitions=p) for t, p in topics.items()]
    answer: m.ElectLeadersResponse = ask_controller(
        client,
        m.ElectLeadersRequest(
            election_type=kind, topic_partitions=None if wanted is None else rows, timeout_ms=TIMEOUT_MS
        ),
    )
    check(answer.error_code)
    outcomes: dict[Partition, ClientError | None] = {}
    for result in answer.replica_election_results:
        for row in result.partition_result:
            key = result.topic, row.partition_id
            outcomes[key] = None
            if row.error_code != ErrorCode.NONE:
                error = ErrorCode(row.error_code)
                outcomes[key] = ClientError(row.error_message or error.message, error)
    return outcomes


def report(kind: str, outcomes: dict[Partition, ClientError | None]) -> None:
    """Print what became of the partitions; raises ToolFailed where some failed."""
    done = [key for key, error in outcomes.items() if error is None]
    unneeded = [
        key for key, error in outcomes.items() if error and error.error is ErrorCode.ELECTION_NOT_NEEDED
    ]
    failed = {key: error for key, error in outcomes.items() if error and key not in unneeded}
    if done:
        click.echo(f"Successfully completed leader election ({kind}) for partitions {named(done)}")
    if unneeded:
        click.echo(f"Valid replica already elected for partitions {named(unneeded)}")
    for (topic, partition), error in failed.items():
        click.echo(
            f"Error completing leader election ({kind}) for partition: {topic}-{partition}: "
            f"{java_errors.named(error)}"
        )
    if failed:
        raise ToolFailed(f"{len(failed)} replica(s) could not be elected")


def named(partitions: list[Partition]) -> str:
    return ", ".join(f"{topic}-{partition}" for topic, partition in partitions)
