"""The life of a broker process: start, the line that says so, signals, stop, exit code.

Exit codes: 0 after a stop in good order (SIGTERM, SIGINT), 1 where the broker could not start or lost its
last log directory. A signal while it starts, or a second one while it stops, ends the process at once, as a
crash would.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from broker.metadata_dir import CannotStart
from broker.server import Address, Broker
from replication.metadata.payloads import BadPayload
from replication.metadata.registration import RegistrationRefused
from replication.metadata.store import StoreError
from runtime.system import Env, run
from storage.errors import CorruptCheckpoint, DirectoryLocked, InconsistentDirectory, StorageError

if TYPE_CHECKING:
    from broker.config.load import LoadedConfig

log = logging.getLogger("ottla.server")

Ready = Callable[[Sequence[Address]], None]

EXPECTED = (
    CannotStart,
    StorageError,
    StoreError,
    BadPayload,
    DirectoryLocked,
    InconsistentDirectory,
    CorruptCheckpoint,
    RegistrationRefused,
    OSError,
)


def main(loaded: LoadedConfig, ready: Ready | None = None) -> int:
    """Run one broker until it is told to stop; the exit code of the process."""
    configure_logging()
    tell_of_settings(loaded)
    return run(lambda env: serve(loaded, env, ready))


def tell_of_settings(loaded: LoadedConfig) -> None:
    """What the user is told of the configuration."""
    for warning in loaded.warnings:
        log.warning("%s", warning)
    for notice in loaded.notices:
        log.info("%s", notice)


class Life:
    """What ends one run of a broker. The signals do, and whoever holds this may, on the broker's loop."""

    def __init__(self, loaded: LoadedConfig, env: Env) -> None:
        self.broker = Broker(loaded, env, self._fail)
        self.stopping = asyncio.Event()
        self.started = self.failed = False

    def _fail(self) -> None:
        self.failed = True
        self.stopping.set()

    def stop(self, code: int = 1) -> None:
        """As the first signal does, however often it is called: a stop in good order; while the broker starts
        the end of the process, with `code`.
        """
        if not self.started:
            os._exit(code)
        self.stopping.set()

    def signalled(self, number: int) -> None:
        """SIGTERM or SIGINT."""
        if self.stopping.is_set():
            os._exit(128 + number)
        self.stop(128 + number)


async def serve(
    loaded: LoadedConfig, env: Env, ready: Ready | None = None, begun: Callable[[Life], None] | None = None
) -> int:
    """As `main`, within a running loop. `begun` is called before the start."""
    life = Life(loaded, env)
    broker = life.broker
    follow_signals(env.loop, life.signalled)
    if begun is not None:
        begun(life)
    tune_collector()
    try:
        await broker.start()
    except EXPECTED as error:
        log.error("The broker cannot start: %s", error)
        await broker.stop()
        return 1
    life.started = True
    gc.freeze()
    for name, host, port in broker.addresses:
        log.info("Listener %s is reached at %s:%d", name, f"[{host}]" if ":" in host else host, port)
    log.info("[KafkaServer id=%d] started", broker.config.node_id)
    if ready is not None:
        ready(broker.addresses)
    await life.stopping.wait()
    log.info("[KafkaServer id=%d] shutting down", broker.config.node_id)
    await broker.stop()
    log.info("[KafkaServer id=%d] shut down completed", broker.config.node_id)
    return 1 if life.failed else 0


def follow_signals(loop: asyncio.AbstractEventLoop, told: Callable[[int], None]) -> None:
    """Call `told` on the loop with the number of each SIGTERM and SIGINT."""
    for number in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(number, told, number)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda taken, _: loop.call_soon_threadsafe(told, taken))


def tune_collector() -> None:
    """What was made at start stays for good: the collector need not look at it again, and not so often.

    The hot path makes few cycles, but a full collection of a broker with thousands of logs takes tens of ms,
    and one over a million committed offsets 60 ms. So what the start makes is set aside without one. Those of
    the middle generation, one for each half a million objects while offsets are loaded, take 20 ms.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 10, 100)


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
