"""Several brokers under one command: started together, started again when they end, stopped together.

A stop has two steps. First no broker elects leaders any more; then all stop at once. So the last one does not
look for others to take over, and the cluster is found again with the leaders and ISRs that it had.

Exit codes: 0 after a stop in good order, 1 where a broker could not start or did not end well, 128 + the
number of a signal that came before all knew of each other. A second signal kills all brokers.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from broker.process import configure_logging, follow_signals, tell_of_settings
from ottla.brokers.plan import Addresses, BrokerPlan
from ottla.brokers.process import BrokerProcess
from ottla.brokers.restarts import REFUSED, Restarts, how_it_ended
from runtime.system import Env, run

if TYPE_CHECKING:
    from broker.config.load import LoadedConfig

WIND_DOWN_S: Final = 10.0
"""A broker that is held up longer is stopped without having wound down. A busy machine holds it up for some
seconds; one that hangs costs this time once, unless a second signal comes.
"""

log = logging.getLogger("ottla.brokers")


Greet = Callable[[Sequence[Addresses]], None]
"""Is called with the addresses of each broker, once each knows of all: a topic may have replicas on all."""


def supervise(loaded: LoadedConfig, plans: Sequence[BrokerPlan], told: Sequence[str], greet: Greet) -> int:
    """Run the brokers until a signal; the exit code. `told` are more warnings for the log."""
    configure_logging()
    tell_of_settings(replace(loaded, warnings=(*loaded.warnings, *told)))
    return run(lambda env: Supervisor(env, plans, greet).run(), "supervisor")


class Kept:
    """One broker, which is started again when it ends."""

    def __init__(self, env: Env, plan: BrokerPlan, node_ids: Sequence[int], news: Callable[[], None]) -> None:
        self.plan = plan
        self.addresses: Addresses = ()
        self.knows_all = False
        self._env = env
        self._node_ids = node_ids
        self._news = news
        self._restarts = Restarts()
        self._process: BrokerProcess | None = None
        self._serves = False
        self._stopping, self._wound_down = asyncio.Event(), asyncio.Event()

    async def keep(self) -> int:
        """Until it is told to stop, or cannot start: the exit code of the last process. One that was stopped
        before it served counts as 0: it is as if it had not been started again.
        """
        while True:
            code, served_s = await self._once()
            if self._stopping.is_set():
                return 0 if served_s is None else code
            pause_s = self._restarts.pause_after(code, served_s)
            if pause_s is None:
                log.error("Broker %d cannot start: it %s", self.plan.node_id, how_it_ended(code))
                return code
            log.warning(
                "Broker %d %s; it is started again in %g s", self.plan.node_id, how_it_ended(code), pause_s
            )
            if await self._stopped_within(pause_s):
                return 0

    async def _once(self) -> tuple[int, float | None]:
        """One process: its exit code, and how long it served, as `_serve` says."""
        try:
            process = self._process = await BrokerProcess.start(self.plan, self._node_ids)
        except OSError as error:
            log.error("No process for broker %d: %s", self.plan.node_id, error)
            return REFUSED, None
        log.info("Broker %d is process %d", self.plan.node_id, process.pid)
        if self._stopping.is_set():  # which nobody could tell it
            process.stop()
        served_s = await self._serve(process)
        code = await process.ended()
        self._process, self._serves = None, False
        return code, served_s

    async def _serve(self, process: BrokerProcess) -> float | None:
        """Seconds that it served until it ended, None where it did not come to that."""
        since: float | None = None
        self._wound_down.clear()
        async for said in process.said():
            if "ready" in said:
                since = self._env.clock.monotonic()
                self._is_ready([(name, host, port) for name, host, port in said["ready"]])
            elif "knows_all" in said:
                self.knows_all = True
            else:
                self._wound_down.set()
            self._news()
        self._wound_down.set()
        await process.ended()
        return None if since is None else self._env.clock.monotonic() - since

    def _is_ready(self, addresses: Addresses) -> None:
        self.addresses = addresses
        self.plan = self.plan.with_ports(addresses)
        self._serves = True

    async def _stopped_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
        except TimeoutError:
            return False
        return True

    async def wind_down(self) -> None:
        """From now on it is not started again; nor does it elect leaders."""
        self._stopping.set()
        if self._process is not None and self._serves:
            self._process.wind_down()
            try:
                async with asyncio.timeout(WIND_DOWN_S):
                    await self._wound_down.wait()
            except TimeoutError:
                log.warning("Broker %d does not answer; it is stopped all the same", self.plan.node_id)

    def stop(self) -> None:
        """After `wind_down`."""
        if self._process is not None:
            self._process.stop()

    def kill(self) -> None:
        """At once, as a crash would end it."""
        if self._process is not None:
            self._process.kill()


class Supervisor:
    """See the module."""

    def __init__(self, env: Env, plans: Sequence[BrokerPlan], greet: Greet) -> None:
        self._env = env
        self._greet = greet
        self._greeted = False
        self._stop = asyncio.Event()
        self._signal = 0
        node_ids = [plan.node_id for plan in plans]
        self._brokers = [Kept(env, plan, node_ids, self._look) for plan in plans]

    async def run(self) -> int:
        """Until a signal, or until a broker cannot start; the exit code of the command."""
        follow_signals(self._env.loop, self._signalled)
        kept = [self._env.tasks.spawn(f"broker {each.plan.node_id}", each.keep()) for each in self._brokers]
        stop = self._env.tasks.spawn("stop", self._stop.wait())
        await asyncio.wait([stop, *kept], return_when=asyncio.FIRST_COMPLETED)
        gave_up = not self._stop.is_set()
        await asyncio.gather(*(each.wind_down() for each in self._brokers))
        for each in self._brokers:
            each.stop()
        codes = await asyncio.gather(*kept)
        log.info("All brokers have stopped")
        if gave_up:
            return 1
        if not self._greeted:
            return 128 + self._signal
        return 1 if any(codes) else 0

    def _signalled(self, number: int) -> None:
        if self._stop.is_set():
            for each in self._brokers:
                each.kill()
            os._exit(128 + number)
        self._signal = number
        self._stop.set()

    def _look(self) -> None:
        if not self._greeted and all(each.addresses and each.knows_all for each in self._brokers):
            self._greeted = True
            self._greet([each.addresses for each in self._brokers])
