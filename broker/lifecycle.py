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
    for warning in loaded.warnings:
        log.warning("%s", warning)
    for notice in loaded.notices:
        log.info("%s", notice)
    return run(lambda env: serve(loaded, env, ready))


async def serve(loaded: LoadedConfig, env: Env, ready: Ready | None = None) -> int:
    """As `main`, within a running loop."""
    stopping = asyncio.Event()
    started = failed = False

    def give_up() -> None:
        nonlocal failed
        failed = True
        stopping.set()

    _follow_signals(env.loop, stopping, lambda: started)
    broker = Broker(loaded, env, give_up)
    tune_collector()
    try:
        await broker.start()
    except EXPECTED as error:
        log.error("The broker cannot start: %s", error)
        await broker.stop()
        return 1
    started = True
    gc.freeze()
    for name, host, port in broker.addresses:
        log.info("Listener %s is reached at %s:%d", name, f"[{host}]" if ":" in host else host, port)
    log.info("[KafkaServer id=%d] started", broker.config.node_id)
    if ready is not None:
        ready(broker.addresses)
    await stopping.wait()
    log.info("[KafkaServer id=%d] shutting down", broker.config.node_id)
    await broker.stop()
    log.info("[KafkaServer id=%d] shut down completed", broker.config.node_id)
    return 1 if failed else 0


def _follow_signals(
    loop: asyncio.AbstractEventLoop, stopping: asyncio.Event, started: Callable[[], bool]
) -> None:
    def told(number: int) -> None:
        if not started() or stopping.is_set():
            os._exit(128 + number)
        stopping.set()

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

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line, with control characters as Python writes them; a trace comes behind it."""
        record.message = self._CONTROLS.sub(
            lambda found: found[0].encode("unicode_escape").decode(), record.message
        )
        return super().formatMessage(record)


def configure_logging() -> None:
    """Readable lines on stderr, as Kafka writes them, unless the process has set up logging itself."""
    root = logging.getLogger()
    if root.handlers:
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter("[%(asctime)s] %(levelname)s %(message)s (%(name)s)"))
    root.addHandler(handler)
    root.setLevel(logging.INFO)
