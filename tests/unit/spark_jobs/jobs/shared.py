"""The options that all jobs have in common; their own pages need not tell of them."""

from __future__ import annotations

import click

from spark_jobs.options import kafka_options, launch_options, source_options, stream_options


@click.command()
@kafka_options
@source_options
@stream_options
@launch_options
def everything_shared(**_: object) -> None:
    """Never called."""
