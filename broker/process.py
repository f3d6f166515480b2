"""What a process of ours has around its work, a broker or the supervisor of several: log lines and signals.

It imports nothing of a broker, so that a supervisor stays small.
"""

from __future__ import annotations

import asyncio
import logging
import re
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.config.load import LoadedConfig

log = logging.getLogger("ottla.server")


def tell_of_settings(loaded: LoadedConfig) -> None:
    """What the user is told of the configuration."""
    for warning in loaded.warnings:
        log.warning("%s", warning)
    for notice in loaded.notices:
        log.info("%s", notice)


def follow_signals(loop: asyncio.AbstractEventLoop, told: Callable[[int], None]) -> None:
    """Call `told` on the loop with the number of each SIGTERM and SIGINT."""
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, told, number)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda taken, _: loop.call_soon_threadsafe(told, taken))


class LineFormatter(logging.Formatter):
    """One line for each message: what clients put into their names cannot begin another one."""

    _CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")

    def __init__(self, form: str, name: str = "") -> None:
        super().__init__(form)
        self._prefix = f"[{name}] " if name else ""

    def format(self, record: logging.LogRecord) -> str:
        """With the name, if there is one, before the line and each line of a trace."""
        return self._prefix + super().format(record).replace("\n", "\n" + self._prefix)

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line, with control characters as Python writes them; a trace comes behind it."""
        record.message = self._CONTROLS.sub(
            lambda found: found[0].encode("unicode_escape").decode(), record.message
        )
        return super().formatMessage(record)


def configure_logging(name: str = "") -> None:
    """Readable lines on stderr, as Kafka writes them, unless the process has set up logging itself. `name`
    tells the lines of several processes apart.
    """
    root = logging.getLogger()
    if root.handlers:
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter("[%(asctime)s] %(levelname)s %(message)s (%(name)s)", name))
    root.addHandler(handler)
    root.setLevel(logging.INFO)
