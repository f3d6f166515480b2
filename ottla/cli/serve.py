"""`ottla serve`: one broker in the foreground, configured as Apache Kafka's broker is.

Without a file the single-node profile applies; `KAFKA_*` variables and `--override` come on top, in that
order. The exit code is the broker's: 0 after a stop in good order, 1 where it could not start.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click


@click.command(name="serve", short_help="Run a broker.")
@click.argument("server_properties", required=False, type=click.Path(path_type=Path))
@click.option(
    "--override", "overrides", multiple=True, metavar="KEY=VALUE", help="A setting that wins over the file's."
)
def command(server_properties: Path | None, overrides: tuple[str, ...]) -> None:
    """Run a broker until SIGTERM or Ctrl-C.

    SERVER_PROPERTIES is a file as Apache Kafka takes it. Without one the broker serves this machine only, on
    localhost:9092, and keeps its data where it finds them again.
    """
    from broker.config.load import load_config
    from broker.config.values import ConfigError
    from broker.lifecycle import main as serve

    try:
        content = None if server_properties is None else server_properties.read_bytes()
        config = load_config(content, overrides, os.environ)
    except (ConfigError, OSError) as refusal:
        print(refusal, file=sys.stderr)
        sys.exit(1)
    sys.exit(serve(config, greet))


def greet(addresses: Sequence[tuple[str, str, int]]) -> None:
    """Tells a newcomer what to type next, with the command as it can be typed here."""
    _, host, port = addresses[0]
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    started_as = os.path.relpath(sys.argv[0]) if os.path.exists(sys.argv[0]) else "ottla"
    tool = (
        "ottla"
        if shutil.which("ottla")
        else started_as
        if started_as.endswith("ottla")
        else "python -m ottla"
    )
    click.echo(f"Try it: {tool} topics --bootstrap-server {address} --create --topic hello")
