"""The jobs by name. Each is a module with a click command called `command`, imported when it is called.

Exit codes: 0 done (also when a signal ended it in good order), 1 the job failed (one line on stderr says why)
or a check found something, 2 unusable options, 130 interrupted before it began.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys

import click

from spark_jobs.failures import JobFailed, explain

FAILED, INTERRUPTED = 1, 130
TRACEBACK = "SPARK_JOBS_TRACEBACK"  # set to see where a failure came from

# name -> (module, what it does)
JOBS = {
    "ingest": ("spark_jobs.jobs.ingest", "Files (CSV, JSON, Parquet) or lines of log files into a topic."),
    "archive": ("spark_jobs.jobs.archive", "A topic to Parquet by date, each record once."),
    "behaviour": ("spark_jobs.jobs.behaviour", "Browsing events: what is viewed after what, sessions."),
    "cdc_sync": ("spark_jobs.jobs.cdc_sync", "A table's change events to current state elsewhere."),
    "drain": ("spark_jobs.jobs.drain", "A backlog to a topic with more partitions, order per key kept."),
    "audit": ("spark_jobs.jobs.audit", "Compares two topics, or a topic and files; plots a job's progress."),
    "binlog": ("spark_jobs.binlog.command", "A MariaDB or MySQL binlog into topics (without Spark)."),
    "connector": ("spark_jobs.connector", "Fetches Spark's Kafka connector into a folder."),
}


class Jobs(click.Group):
    """Finds jobs by name, with `-` for `_` too, and imports only the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(JOBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        found = JOBS.get(name.replace("-", "_"))
        if found is None:
            return None
        command: click.Command = importlib.import_module(found[0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the jobs without importing them."""
        with formatter.section("Jobs"):
            formatter.write_dl([(name, text) for name, (_, text) in JOBS.items()])


@click.group(cls=Jobs)
def commands() -> None:
    """Jobs on Spark that read and write topics; `NAME --help` tells a job's options and examples."""


def main() -> None:
    """Entry point; nothing but lines on stderr and the exit code come out of a failure."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("py4j").setLevel(logging.WARNING)
    try:
        code = commands.main(prog_name="spark_jobs", standalone_mode=False)
    except click.ClickException as failure:
        failure.show()
        code = failure.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except ModuleNotFoundError as missing:
        click.echo(f"error: {missing}. The jobs need more packages: pip install 'ottla[spark]'", err=True)
        code = FAILED
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        click.echo(f"error: {error if isinstance(error, JobFailed) else explain(error)}", err=True)
        code = FAILED
    sys.exit(code if isinstance(code, int) else 0)
