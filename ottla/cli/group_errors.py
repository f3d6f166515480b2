"""How the tools for groups fail: what is wrong with the options, and what went wrong after that.

Kafka's tools treat the two differently: the first is a usage error with exit code 1, the second a line on
standard output with exit code 0.
"""

from __future__ import annotations

import click


class Refused(Exception):
    """Options that make no sense; the message is for standard error."""


class Failed(Exception):
    """An operation that could not be done; the message follows "Error: Executing ... failed due to"."""


def print_error(message: str) -> None:
    """One complaint on standard output, below an empty line."""
    click.echo(f"\nError: {message}")
