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
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from broker.metadata_dir import CannotStart
from broker.process import configure_logging, follow_signals, tell_of_settings
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


def tune_collector() -> None:
    """What was made at start stays for good: the collector need not look at it again, and not so often.

    The hot path makes few cycles, but a full collection of a broker with thousands of logs takes tens of ms,
    and one over a million committed offsets 60 ms. So what the start makes is set aside without one. Those of
    the middle generation look at 50,000 objects, which takes 5 to 12 ms; at 100,000, with the first markers
    of 10,000 partitions in the works, one took 32, at half a million 110.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 4, 1_250)
