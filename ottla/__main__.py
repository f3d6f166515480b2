"""The `ottla` command: `ottla serve` and Kafka's tools under Kafka's flags.

Each subcommand is a module of `ottla.cli` that is imported when it is called, so that `ottla serve` does
not pay for the tools.
"""

from __future__ import annotations

import importlib
import sys

import click

from ottla.paths import use_own_packages
from ottla.version import __version__

INTERRUPTED = 130

# subcommand -> what it does; `console-producer` is the function `command` in ottla/cli/console_producer.py
COMMANDS = {
    "serve": "Run a broker.",
    "topics": "Create, delete, describe, list or change topics (kafka-topics).",
    "configs": "Describe or change configurations (kafka-configs).",
    "get-offsets": "Print partitions' offsets (kafka-get-offsets).",
    "dump-log": "Print the content of log and index files (kafka-dump-log).",
    "verify-log": "Look for damage in a log directory.",
    "consumer-groups": "List, describe or delete groups, reset their offsets (kafka-consumer-groups).",
    "share-groups": "List, describe or delete share groups, change their offsets (kafka-share-groups).",
    "transactions": "Look at transactions, end those that hang (kafka-transactions).",
    "delete-records": "Delete partitions' records up to an offset (kafka-delete-records).",
    "log-dirs": "Show what lies in brokers' log directories (kafka-log-dirs).",
    "features": "Show or change finalized features (kafka-features).",
    "cluster": "Show a cluster's id and brokers (kafka-cluster).",
    "leader-election": "Elect preferred or unclean leaders (kafka-leader-election).",
    "reassign-partitions": "Move partitions to other brokers (kafka-reassign-partitions).",
    "spark": "Run a Spark job over topics (needs the extra `spark`).",
    "console-producer": "Send lines from standard input (kafka-console-producer).",
    "console-consumer": "Print a topic's records (kafka-console-consumer).",
}


class Commands(click.Group):
    """Finds subcommands by name and imports only the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in the order in which a newcomer meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """The command, or None for a name that is none."""
        if name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"ottla.cli.{name.replace('-', '_')}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the subcommands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=Commands)
@click.version_option(__version__, prog_name="ottla", message="%(prog)s %(version)s")
def commands() -> None:
    """A broker that speaks Apache Kafka's protocol, and Kafka's tools."""


def main() -> None:
    """Entry point of the installed command and of `python -m ottla`; every failure ends with exit code 1."""
    use_own_packages()
    try:
        code = commands.main(prog_name="ottla", standalone_mode=False)
    except click.ClickException as failure:
        failure.show()
        code = 1
    except (click.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    sys.exit(code)


if __name__ == "__main__":
    main()
