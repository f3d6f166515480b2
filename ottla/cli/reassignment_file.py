"""The files of `ottla reassign-partitions`: which partitions shall move where, and which topics to plan for.

Failures have the words of Kafka's tool, which prints them on standard output behind `Error: `.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ottla.cli.options import ToolFailed

VERSION = 1
ANY_LOG_DIR = "any"

Partition = tuple[str, int]
Replica = tuple[Partition, int]
Targets = dict[Partition, tuple[int, ...]]


class Refused(ToolFailed):
    """A failure that goes to standard output, where this tool of Kafka's puts it."""

    def show(self, file: Any = None) -> None:
        click.echo(self.message)


def failed(message: str) -> Refused:
    """What Kafka's tool prints with a stack trace behind it."""
    return Refused(f"Error: {message}")


def read_document(path: Path) -> dict[str, Any]:
    """The JSON object of a file, of the version that is known."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise failed(f"Unable to read file {path}") from error
    except ValueError as error:
        raise failed(f"The input string is not a valid JSON: {error}") from error
    if not isinstance(document, dict):
        raise failed(f"Expected JSON object, received {json.dumps(document)}")
    version = document.get("version", VERSION)
    if version != VERSION:
        raise failed(f"Not supported version field value {version}")
    return document


def read_targets(path: Path) -> list[tuple[Partition, tuple[int, ...]]]:
    """The partitions of a file in its order, with the replicas that each shall have; repeated ones too."""
    found: list[tuple[Partition, tuple[int, ...]]] = []
    for row in read_document(path).get("partitions", []):
        topic, partition = value(row, "topic", str), value(row, "partition", int)
        replicas = tuple(value(row, "replicas", list))
        log_dirs = row.get("log_dirs", [ANY_LOG_DIR] * len(replicas))
        if len(log_dirs) != len(replicas):
            raise failed(
                f"Size of replicas list {listed(replicas)} is different from size of log dirs list "
                f"{listed(log_dirs)} for partition {topic}-{partition}"
            )
        found.append(((topic, partition), replicas))
    return found


def checked(targets: Sequence[tuple[Partition, tuple[int, ...]]]) -> Targets:
    """The targets of a file that can be asked for: there are some, none twice, none empty."""
    if not targets:
        raise failed("Partition reassignment list cannot be empty")
    if any(not replicas for _, replicas in targets):
        raise failed("Partition replica list cannot be empty")
    partitions = [partition for partition, _ in targets]
    repeated = repeats(partitions)
    if repeated:
        raise failed(f"Partition reassignment contains duplicate topic partitions: {names(repeated)}")
    doubled = {partition: repeats(replicas) for partition, replicas in targets if repeats(replicas)}
    if doubled:
        texts = [
            f"{names([partition])} contains multiple entries for {','.join(map(str, again))}"
            for partition, again in doubled.items()
        ]
        raise failed(f"Partition replica lists may not contain duplicate entries: {'. '.join(texts)}")
    return dict(targets)


def read_log_dirs(path: Path) -> dict[Replica, str]:
    """The directories that the file names for replicas; `any` names none. `read_targets` has checked it."""
    found: dict[Replica, str] = {}
    for row in read_document(path).get("partitions", []):
        for broker, log_dir in zip(row["replicas"], row.get("log_dirs", ()), strict=False):
            if log_dir != ANY_LOG_DIR:
                found[(row["topic"], row["partition"]), broker] = log_dir
    return found


def read_topics(path: Path) -> list[str]:
    """The topics to plan for, each once."""
    topics = [value(row, "topic", str) for row in read_document(path).get("topics", [])]
    repeated = repeats(topics)
    if repeated:
        raise failed(f"List of topics to reassign contains duplicate entries: {listed(repeated)}")
    return topics


def read_brokers(text: str) -> list[int]:
    """The ids of --broker-list, each once."""
    brokers: list[int] = []
    for each in text.split(","):
        try:
            brokers.append(int(each))
        except ValueError as error:
            raise failed(f'For input string: "{each}"') from error
    repeated = repeats(brokers)
    if repeated:
        raise failed(f"Broker list contains duplicate entries: {listed(repeated)}")
    return brokers


def written(targets: Mapping[Partition, Sequence[int]], log_dirs: Mapping[tuple[Partition, int], str]) -> str:
    """The targets as a file that this tool reads."""
    rows = [
        {
            "topic": topic,
            "partition": partition,
            "replicas": list(targets[topic, partition]),
            "log_dirs": [
                log_dirs.get(((topic, partition), broker), ANY_LOG_DIR)
                for broker in targets[topic, partition]
            ],
        }
        for topic, partition in sorted(targets)
    ]
    document = {"version": VERSION, "partitions": rows}
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def names(partitions: Iterable[Partition]) -> str:
    return ",".join(f"{topic}-{partition}" for topic, partition in partitions)


def value(row: Any, name: str, kind: type) -> Any:
    """One field of a row, of the type that it has to have."""
    if not isinstance(row, dict):
        raise failed(f"Expected JSON object, received {json.dumps(row)}")
    if name not in row:
        raise failed(f"No such field exists: `{name}`")
    if not isinstance(row[name], kind):
        raise failed(f"Expected `{kind.__name__}` value, received {json.dumps(row[name])}")
    return row[name]


def repeats(things: Sequence[Any]) -> list[Any]:
    return [thing for thing in dict.fromkeys(things) if things.count(thing) > 1]


def listed(things: Iterable[Any]) -> str:
    """As Java prints a collection."""
    return f"[{', '.join(map(str, things))}]"
