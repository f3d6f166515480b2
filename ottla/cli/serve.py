"""`ottla serve`: a broker in the foreground, configured as Apache Kafka's broker is, or several of them.

Without a file the single-node profile applies; `KAFKA_*` variables and `--override` come on top, in that
order. The exit code is the broker's: 0 after a stop in good order, 1 where it could not start. With
`--brokers` it is the supervisor's (`ottla.brokers.supervisor`).
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from broker.config.load import LoadedConfig

Address = tuple[str, str, int]


@click.command(name="serve", short_help="Run a broker.")
@click.argument("server_properties", required=False, type=click.Path(path_type=Path))
@click.option(
    "--override", "overrides", multiple=True, metavar="KEY=VALUE", help="A setting that wins over the file's."
)
@click.option(
    "--brokers",
    "count",
    type=click.IntRange(1),
    default=1,
    metavar="N",
    help="Run N broker processes as one cluster, on consecutive ports; one that ends is started again.",
)
def command(server_properties: Path | None, overrides: tuple[str, ...], count: int) -> None:
    """Run a broker until SIGTERM or Ctrl-C.

    SERVER_PROPERTIES is a file as Apache Kafka takes it. Without one the broker serves this machine only, on
    localhost:9092, and keeps its data where it finds them again.
    """
    from broker.config.load import load_config
    from broker.config.values import ConfigError

    try:
        content = None if server_properties is None else server_properties.read_bytes()
        config = load_config(content, overrides, os.environ, count)
        serve = prepared(config, count)
    except (ConfigError, OSError) as refusal:
        print(refusal, file=sys.stderr)
        sys.exit(1)
    sys.exit(serve())


def prepared(loaded: LoadedConfig, count: int) -> Callable[[], int]:
    """What runs the brokers and returns the exit code. Raises ConfigError and OSError for what can be seen
    before.
    """
    if count == 1:
        from broker.lifecycle import main

        return partial(main, loaded, greet)
    from ottla.brokers.folders import prepare
    from ottla.brokers.plan import plan_cluster
    from ottla.brokers.supervisor import supervise

    plan = plan_cluster(loaded, count)
    told = (*plan.notices, *prepare(plan))
    return partial(supervise, loaded, plan.brokers, told, greet_several)


def greet(addresses: Sequence[Address]) -> None:
    """Tells a newcomer what to type next, with the command as it can be typed here."""
    click.echo(f"Try it: {command_here()} topics --bootstrap-server {text_of(addresses[0])} {HELLO}")


def greet_several(brokers: Sequence[Sequence[Address]]) -> None:
    """The same, with the first address of each broker and a topic that all have a part of."""
    servers = ",".join(text_of(addresses[0]) for addresses in brokers)
    spread = f"--partitions {len(brokers)} --replication-factor {min(3, len(brokers))}"
    click.echo(f"Try it: {command_here()} topics --bootstrap-server {servers} {HELLO} {spread}")


HELLO = "--create --topic hello"


def text_of(address: Address) -> str:
    """As clients take it."""
    _, host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def command_here() -> str:
    """How `ottla` was started, if it is not on the path."""
    if shutil.which("ottla"):
        return "ottla"
    started_as = os.path.relpath(sys.argv[0]) if os.path.exists(sys.argv[0]) else "ottla"
    return started_as if started_as.endswith("ottla") else "python -m ottla"
