"""`ottla delete-records`: move partitions' first offsets forward, as Kafka's DeleteRecordsCommand does.

The file says how far: `{"version": 1, "partitions": [{"topic": T, "partition": N, "offset": N}]}`, where -1
stands for the high watermark. What a partition refuses is printed beside the others' new low watermarks, and
the tool ends with 0 all the same, as Kafka's does.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ottla.cli import java_errors
from ottla.cli.options import ToolFailed, bootstrap_option, command_config_option, connect, read_properties
from ottla.client import ClientError, KafkaClient, check
from ottla.version import __version__
from protocol import messages as m

VERSION = 1
TIMEOUT_MS = 30_000
INTEGERS = {"partition": (-(1 << 31), (1 << 31) - 1), "offset": (-(1 << 63), (1 << 63) - 1)}
JAVA_TYPES = {"partition": "Integer", "offset": "Long"}


@click.command(name="delete-records", short_help="Delete partitions' records up to an offset.")
@bootstrap_option
@click.option(
    "--offset-json-file",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help='{"partitions": [{"topic": "foo", "partition": 1, "offset": 1}], "version": 1}',
)
@command_config_option
@click.version_option(__version__, message="%(version)s")
def command(bootstrap_server: str, offset_json_file: Path, command_config: Path | None) -> None:
    """Delete the records before the given offsets."""
    wanted = read_offsets(offset_json_file)
    try:
        with connect(bootstrap_server, read_properties(command_config)) as client:
            click.echo("Executing records delete operation")
            found = delete(client, wanted)
    except ClientError as error:
        raise ToolFailed(str(error)) from error
    click.echo("Records delete operation completed:")
    for (topic, partition), outcome in found.items():
        click.echo(f"partition: {topic}-{partition}\t{outcome}")


def read_offsets(path: Path) -> dict[tuple[str, int], int]:
    """The offsets of a file. Raises ToolFailed with the words of Kafka's tool."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ToolFailed(f"Unable to read file {path}") from error
    try:
        document = json.loads(text)
    except ValueError as error:
        raise ToolFailed("The input string is not a valid JSON") from error
    if not isinstance(document, dict):
        raise ToolFailed(f"Expected JSON object, received {java_text(document)}")
    version = document.get("version", VERSION)
    if version != VERSION:
        raise ToolFailed(f"Not supported version field value {java_text(version)}")
    if "partitions" not in document:
        raise ToolFailed("Missing partitions field")
    offsets: dict[tuple[str, int], int] = {}
    repeated: dict[str, None] = {}
    if not isinstance(document["partitions"], list):
        raise ToolFailed(f"Expected JSON array, received {java_text(document['partitions'])}")
    for row in document["partitions"]:
        topic, partition, offset = field(row, "topic"), field(row, "partition"), field(row, "offset")
        if (topic, partition) in offsets:
            repeated[f"{topic}-{partition}"] = None
        offsets[topic, partition] = offset
    if repeated:
        raise ToolFailed(f"Offset json file contains duplicate topic partitions: {','.join(repeated)}")
    return offsets


def field(row: Any, name: str) -> Any:
    """One value of a partition's row, of the type that it has to have."""
    if not isinstance(row, dict):
        raise ToolFailed(f"Expected JSON object, received {java_text(row)}")
    if name not in row:
        raise ToolFailed(f"No such field exists: `{name}`")
    value = row[name]
    if name == "topic":
        if isinstance(value, str):
            return value
        raise ToolFailed(f"Expected `String` value, received {java_text(value)}")
    low, high = INTEGERS[name]
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
        return value
    raise ToolFailed(f"Expected `{JAVA_TYPES[name]}` value, received {java_text(value)}")


def java_text(value: Any) -> str:
    """A JSON value as Java's parser shows it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def delete(client: KafkaClient, wanted: dict[tuple[str, int], int]) -> dict[tuple[str, int], str]:
    """What became of each partition, in the order of the file."""
    outcomes: dict[tuple[str, int], str] = {}
    led: dict[int, list[tuple[str, int]]] = {}
    for topic, partition in wanted:
        try:
            led.setdefault(client.leader(topic, partition), []).append((topic, partition))
        except ClientError as error:
            outcomes[topic, partition] = refusal(error)
    for node, keys in led.items():
        outcomes |= delete_at(client, node, {key: wanted[key] for key in keys})
    return {key: outcomes[key] for key in wanted}


def delete_at(
    client: KafkaClient, node: int, wanted: dict[tuple[str, int], int]
) -> dict[tuple[str, int], str]:
    """Ask one leader."""
    request = m.DeleteRecordsRequest
    topics: dict[str, list[m.DeleteRecordsRequest.DeleteRecordsPartition]] = {}
    for (topic, partition), offset in wanted.items():
        row = request.DeleteRecordsPartition(partition_index=partition, offset=offset)
        topics.setdefault(topic, []).append(row)
    asked = [request.DeleteRecordsTopic(name=name, partitions=rows) for name, rows in topics.items()]
    outcomes = {}
    for answered in client.call(request(topics=asked, timeout_ms=TIMEOUT_MS), node).topics:
        for row in answered.partitions:
            try:
                check(row.error_code)
                outcome = f"low_watermark: {row.low_watermark}"
            except ClientError as error:
                outcome = refusal(error)
            outcomes[answered.name, row.partition_index] = outcome
    return outcomes


def refusal(error: ClientError) -> str:
    """How a partition's failure is printed."""
    return f"error: {java_errors.of_code(error.error) if error.error is not None else error}"
