"""What the command line tools share: connecting, option files, refusals, exit codes.

Kafka's tools end with 1 for any failure; so do ours. A message that Kafka prints on standard output goes
there, because scripts read it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from ottla.client import ClientError, KafkaClient

DEFAULT_BOOTSTRAP = "localhost:9092"

Command = TypeVar("Command", bound=Callable[..., Any])


class ToolFailed(click.ClickException):
    """Ends a tool with exit code 1 and one message on standard error."""

    def show(self, file: Any = None) -> None:
        """Prints the message as it is: Kafka's tools put no word before it."""
        click.echo(self.message, err=True)


def bootstrap_option(command: Command) -> Command:
    """--bootstrap-server, which Kafka demands and we default to this machine's broker."""
    return click.option(
        "--bootstrap-server",
        default=DEFAULT_BOOTSTRAP,
        show_default=True,
        metavar="HOST:PORT,...",
        help="The brokers to connect to.",
    )(command)


def command_config_option(command: Command) -> Command:
    """--command-config: a client's property file."""
    return click.option(
        "--command-config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Client properties (client.id, request.timeout.ms).",
    )(command)


def connect(bootstrap: str, properties: Mapping[str, str] | None = None) -> KafkaClient:
    """A client with the properties that mean something to it; a demand for protection is refused."""
    given = dict(properties or {})
    protocol = given.get("security.protocol", "PLAINTEXT").upper()
    if protocol != "PLAINTEXT":
        raise ToolFailed(f"security.protocol={protocol}: this tool speaks PLAINTEXT only")
    timeout_ms = number(given.get("request.timeout.ms", "30000"), "request.timeout.ms")
    try:
        return KafkaClient(bootstrap, given.get("client.id", "ottla-tool"), timeout_ms / 1000)
    except ClientError as error:
        raise ToolFailed(str(error)) from error


def read_properties(path: Path | None) -> dict[str, str]:
    """A property file as Java reads it; nothing for None."""
    if path is None:
        return {}
    from storage.properties import parse_properties

    try:
        return parse_properties(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ToolFailed(f"{path}: {error}") from error


def properties_of(path: Path | None, pairs: Iterable[str]) -> dict[str, str]:
    """A property file with `key=value` options on top of it."""
    found = read_properties(path)
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise ToolFailed(f"Invalid command line properties: {pair}")
        found[key] = value
    return found


def number(text: str, what: str) -> int:
    """A whole number, or a refusal that names the setting."""
    try:
        return int(text)
    except ValueError as error:
        raise ToolFailed(f"{what} takes a number, not '{text}'") from error


def is_true(properties: Mapping[str, str], key: str, default: bool = False) -> bool:
    """A boolean property, as Java's tools read it: "true" in any case, everything else is false."""
    return properties.get(key, str(default)).strip().lower() == "true"


def topic_pattern(text: str) -> re.Pattern[str]:
    """A topic filter: a regular expression for the whole name, commas standing for "or"."""
    cleaned = re.sub(r"^[\"']+|[\"']+$", "", text.strip().replace(",", "|").replace(" ", ""))
    try:
        return re.compile(cleaned)
    except re.error as error:
        raise ToolFailed(f"{text} is an invalid regex: {error}") from error
