"""`ottla log-dirs`: what lies in brokers' log directories, as Kafka's LogDirsCommand prints it.

One line of JSON, made for scripts, behind two lines for people.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ottla.cli import java_errors
from ottla.cli.options import ToolFailed, bootstrap_option, command_config_option, connect, read_properties
from ottla.client import ClientError, KafkaClient, check
from ottla.version import __version__
from protocol import messages as m
from protocol.errors import ErrorCode


@click.command(name="log-dirs", short_help="Show what lies in brokers' log directories.")
@bootstrap_option
@click.option("--describe", is_flag=True, required=True, help="Describe the log directories.")
@click.option("--topic-list", default="", metavar="TOPIC,TOPIC", help="These topics only.")
@click.option("--broker-list", default="", metavar="ID,ID", help="These brokers only.")
@command_config_option
@click.version_option(__version__, message="%(version)s")
def command(
    bootstrap_server: str, describe: bool, topic_list: str, broker_list: str, command_config: Path | None
) -> None:
    """Describe log directories and the replicas in them."""
    topics = [name for name in topic_list.split(",") if name]
    wanted = broker_ids(broker_list)
    try:
        with connect(bootstrap_server, read_properties(command_config)) as client:
            client.metadata([])
            existing = list(client.nodes)
            absent = [each for each in wanted if each not in existing]
            if absent:
                raise ToolFailed(
                    f"ERROR: The given brokers do not exist from --broker-list: {joined(absent)}. "
                    f"Current existent brokers: {joined(existing)}"
                )
            asked = wanted or existing
            click.echo("Querying brokers for log directories information")
            found = [described(client, node, topics) for node in asked]
    except ClientError as error:
        raise ToolFailed(str(error)) from error
    click.echo(f"Received log directory information from brokers {joined(asked)}")
    click.echo(json.dumps({"brokers": found, "version": 1}, separators=(",", ":"), ensure_ascii=False))


def broker_ids(text: str) -> list[int]:
    """The ids of --broker-list, each once."""
    try:
        return list(dict.fromkeys(int(each) for each in text.split(",") if each))
    except ValueError as error:
        raise ToolFailed(f"{text} is no list of broker ids: write 0,1,2") from error


def joined(ids: Sequence[int]) -> str:
    return ",".join(map(str, ids))


def described(client: KafkaClient, node: int, topics: Sequence[str]) -> dict[str, Any]:
    """One broker's directories; of all topics where none is named."""
    answer = client.call(m.DescribeLogDirsRequest(topics=None), node)
    check(answer.error_code)
    return {"broker": node, "logDirs": [directory(each, topics) for each in answer.results]}


def directory(
    found: m.DescribeLogDirsResponse.DescribeLogDirsResult, topics: Sequence[str]
) -> dict[str, Any]:
    """One directory, with those replicas in it that were asked for."""
    partitions = [
        {
            "partition": f"{topic.name}-{row.partition_index}",
            "size": row.partition_size,
            "offsetLag": row.offset_lag,
            "isFuture": row.is_future_key,
        }
        for topic in found.topics
        if not topics or topic.name in topics
        for row in topic.partitions
    ]
    error = (
        None if found.error_code == ErrorCode.NONE else java_errors.class_name(ErrorCode(found.error_code))
    )
    return {"partitions": partitions, "error": error, "logDir": found.log_dir}
