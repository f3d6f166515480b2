"""`ottla cluster`: the id of a cluster and where its brokers are, as Kafka's ClusterTool tells it.

Kafka's tool also unregisters brokers, which is for KRaft: elsewhere a broker is registered for as long as its
session lives.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ottla.cli.options import ToolFailed, connect, read_properties
from ottla.client import ClientError, KafkaClient, check
from ottla.version import __version__
from protocol import messages as m

NO_HOST_WIDTH, NO_RACK_WIDTH = 100, 10


def connection_options(function: Any) -> Any:
    """The options that each subcommand has."""
    function = click.option(
        "--config", "-c", type=click.Path(path_type=Path), metavar="FILE", help="Client properties."
    )(function)
    text = "The brokers to connect to."
    return click.option("--bootstrap-server", "-b", required=True, metavar="HOST:PORT,...", help=text)(
        function
    )


@click.group(name="cluster", short_help="Show a cluster's id and brokers.")
@click.version_option(__version__, message="%(version)s")
def command() -> None:
    """Show what a cluster is."""


@command.command("cluster-id")
@connection_options
def cluster_id(bootstrap_server: str, config: Path | None) -> None:
    """Show the id of a cluster."""
    with opened(bootstrap_server, config) as client:
        click.echo(f"Cluster ID: {described(client).cluster_id}")


@command.command("list-endpoints")
@connection_options
@click.option("--include-fenced-brokers", is_flag=True, help="Also brokers that are fenced.")
def list_endpoints(bootstrap_server: str, config: Path | None, include_fenced_brokers: bool) -> None:
    """Show where the brokers are."""
    with opened(bootstrap_server, config) as client:
        found = described(client, include_fenced_brokers)
    hosts = max((len(broker.host) for broker in found.brokers), default=NO_HOST_WIDTH)
    racks = max((len(b.rack) for b in found.brokers if b.rack is not None), default=NO_RACK_WIDTH)
    widths = (10, hosts, 10, racks, 10, 15)
    rows = [("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE")]
    rows += [
        (str(b.broker_id), b.host, str(b.port), b.rack or "null", state(b.is_fenced), "broker")
        for b in sorted(found.brokers, key=lambda broker: broker.broker_id)
    ]
    for row in rows:
        click.echo(" ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))


def state(fenced: bool) -> str:
    return "fenced" if fenced else "unfenced"


def opened(bootstrap_server: str, config: Path | None) -> KafkaClient:
    return connect(bootstrap_server, read_properties(config))


def described(client: KafkaClient, fenced: bool = False) -> m.DescribeClusterResponse:
    """What a broker says of its cluster."""
    request = m.DescribeClusterRequest(include_fenced_brokers=fenced)
    try:
        answer: m.DescribeClusterResponse = client.call(request)
        check(answer.error_code, answer.error_message)
    except ClientError as error:
        raise ToolFailed(str(error)) from error
    return answer
