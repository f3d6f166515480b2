"""Writes records to standard output until enough are written or none comes for too long."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator

import click

from ottla.cli.formatters import Formatter
from ottla.cli.options import ToolFailed
from ottla.reader import MAX_WAIT_MS, Received

#: Records of one round: (longest wait for some in ms, seconds until the user's patience ends or None).
Source = Callable[[int, float | None], Iterator[Received]]


class Printer:
    """What is written, and the count of it."""

    def __init__(self, form: Formatter, max_messages: int, timeout_ms: int | None, skip_errors: bool) -> None:
        self.count = 0
        self._form = form
        self._max_messages = max_messages
        self._timeout_s = None if timeout_ms is None or timeout_ms < 0 else timeout_ms / 1000
        self._skip_errors = skip_errors

    def print_all(self, source: Source) -> None:
        """Reads and writes; returns when done."""
        output = sys.stdout.buffer
        last = time.monotonic()
        while self.count != self._max_messages:
            left_s = None
            wait_ms = MAX_WAIT_MS
            if self._timeout_s is not None:
                left_s = last + self._timeout_s - time.monotonic()
                if left_s <= 0:
                    return
                wait_ms = max(1, min(wait_ms, int(left_s * 1000)))
            try:
                for received in source(wait_ms, left_s):
                    last = time.monotonic()
                    self._write(received)
                    if self.count == self._max_messages:
                        break
            except TimeoutError:
                return
            finally:
                output.flush()

    def say_count(self) -> None:
        """The last line of Kafka's tool."""
        click.echo(f"Processed a total of {self.count} messages", err=True)

    def _write(self, received: Received) -> None:
        self.count += 1
        try:
            sys.stdout.buffer.write(self._form(received))
        except ToolFailed:
            if not self._skip_errors:
                raise
