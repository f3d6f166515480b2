"""Fetches Spark's Kafka connector into a folder, which `--jars` then names.

For images, and for machines that have no way to Maven Central when a job starts. Spark's launcher fetches it,
as it does for a job; no session is made.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
from pyspark import SparkConf, java_gateway
from pyspark.errors import PySparkRuntimeError

from spark_jobs.failures import JobFailed
from spark_jobs.session import Launch, find_java, settings, start_failed


def fetch(launch: Launch) -> list[str]:
    """Archives in Ivy's folder, as paths or file: URLs; raises JobFailed where they can't be had."""
    find_java()
    conf = SparkConf(loadDefaults=False)
    for key, value in settings(launch, kafka=True).items():
        conf.set(key, value)
    launcher: Any = java_gateway
    try:
        gateway = launcher.launch_gateway(conf)
    except PySparkRuntimeError as error:
        raise JobFailed(start_failed(launch, error)) from error
    try:
        jars: str = gateway.jvm.System.getProperty("spark.jars") or ""
    finally:
        gateway.shutdown()
        gateway.proc.stdin.close()  # the launcher ends with it
        gateway.proc.wait()
    return [jar for jar in jars.split(",") if jar]


def copy_to(folder: Path, jars: Iterable[str]) -> list[Path]:
    """Copies the archives and returns where they are now."""
    folder.mkdir(parents=True, exist_ok=True)
    return [Path(shutil.copy(urlsplit(jar).path, folder)) for jar in jars]


@click.command("connector")
@click.option("--to", "folder", required=True, type=click.Path(path_type=Path), help="Made if missing.")
@click.option("--packages", multiple=True, metavar="GROUP:NAME:VERSION", help="Fetch these as well.")
def command(folder: Path, packages: tuple[str, ...]) -> None:
    """Fetch the Kafka connector that belongs to the installed Spark into a folder.

    \b
    Example:
      python -m spark_jobs connector --to connector
      python -m spark_jobs archive --jars connector --bootstrap localhost:9092 --topic orders --to out --batch
    """
    for jar in copy_to(folder, fetch(Launch(packages=packages))):
        click.echo(jar)
