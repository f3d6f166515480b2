"""The controller of a cluster: stands for election, and while elected does one event after the other.

One task takes events from one queue. What an event decides it writes under the fence of its controller epoch,
then it changes the state, sends, and answers; no other event runs in between. When the epoch is over (another
broker was elected, the session has expired, something broke) the state is thrown away, what waits is refused,
and nothing of it is written or sent any more.

The broker calls `stand` after each registration; the controller does the rest by watching /controller.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from replication.cluster.channel import Channels
from replication.controller import election
from replication.controller.batches import ControlRequest
from replication.controller.cluster_state import ControllerState
from replication.controller.control_channels import ControlChannels
from replication.controller.events import Event, EventQueue, NotController
from replication.controller.ledger import ControllerMoved, Ledger
from replication.controller.office import Office, OfficeSettings, allows_unclean
from replication.controller.reign import Reign
from replication.metadata import paths
from replication.metadata.configs import ConfigType
from replication.metadata.image import ClusterImage, EndpointImage
from replication.metadata.payloads import BadPayload
from replication.metadata.store import (
    Cancel,
    ConnectionLost,
    MetadataStore,
    SessionEvent,
    SessionExpired,
    StoreError,
    WatchEvent,
    parent_of,
)
from runtime.clock import Clock
from runtime.entropy import Random
from runtime.tasks import TaskScope

T = TypeVar("T")

_log = logging.getLogger(__name__)

RETRY_PAUSE_S: Final = 0.1
"""Before an operation is repeated whose connection to the store was lost."""

FAILURE_PAUSE_S: Final = 1.0
"""Before a broker stands again whose last epoch ended by a failure of its own."""

BALANCE_DELAY_S: Final = 5.0
"""From the beginning of an epoch to the first look at the balance of leaders."""


async def pause() -> None:
    await asyncio.sleep(RETRY_PAUSE_S)


class ClusterController:
    """See the module. `tasks` belongs to the controller alone and is closed with it."""

    def __init__(
        self,
        store: MetadataStore,
        channels: Channels,
        settings: OfficeSettings,
        clock: Clock,
        random: Random,
        tasks: TaskScope,
    ) -> None:
        self.store = store
        self._channels = channels
        self._settings = settings
        self._clock = clock
        self._random = random
        self._tasks = tasks
        self._events = EventQueue()
        self._reign: Reign | None = None
        self._won: election.Won | None = None
        self._lines: ControlChannels | None = None
        self._watches: dict[str, Cancel] = {}
        self._balancer: asyncio.Task[None] | None = None
        self._may_stand = False
        self._always: list[Cancel] = []

    # Life

    def start(self) -> None:
        """Watch, and work off events; does not stand for election yet."""
        self._always = [
            self.store.watch(paths.CONTROLLER, self._on_controller_node),
            self.store.on_session(self._on_session),
        ]
        self._tasks.spawn("events", self._work())

    def stand(self) -> None:
        """This broker is registered under the session that the store has now: try to become the controller,
        now and whenever there is none.
        """
        self._may_stand = True
        self._put_life("election", self._elect)

    async def close(self) -> None:
        """Stop at once. The session's end, which takes /controller away, is the owner's to bring about."""
        for cancel in self._always:
            cancel()
        self._may_stand = False
        self._depose()
        await self._tasks.aclose()

    @property
    def is_active(self) -> bool:
        return self._reign is not None

    @property
    def epoch(self) -> int:
        """The controller epoch of this broker's time as the controller; -1 when it is not."""
        return -1 if self._reign is None else self._reign.state.epoch

    def endpoint_of(self, broker_id: int, listener: str) -> EndpointImage | None:
        """Where a registered broker is reached, as the active controller knows it: brokers get its first
        request before any metadata cache names them.
        """
        if self._reign is None:
            return None
        broker = self._reign.state.brokers.get(broker_id)
        return None if broker is None else broker.endpoints.get(listener)

    # Work

    async def ask(self, name: str, step: Callable[[Reign], Awaitable[T]]) -> T:
        """Have `step(reign)` done in its turn and return what it returns. Raises NotController, also where
        another broker may be the controller since nothing was heard of the store.
        """
        if self.store.contact_age_ms() > self.store.session_timeout_ms:
            raise NotController
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        async def run() -> None:
            result = await step(self._active())
            if not future.done():
                future.set_result(result)

        def fail(error: Exception) -> None:
            if not future.done():
                future.set_exception(error)

        self._put(Event(name, run, fail=fail))
        return await future

    def tell(self, name: str, step: Callable[[Reign], Awaitable[None]], *, key: str | None = None) -> None:
        """Have `step(reign)` done in its turn, if this broker is the controller then."""

        async def run() -> None:
            await step(self._active())

        self._put(Event(name, run, key=key))

    def change_settings(self, settings: OfficeSettings) -> None:
        """Settings of the broker have changed. Unclean leaders that are allowed now are elected at once."""
        allowed = settings.unclean and not self._settings.unclean
        self._settings = settings
        if self._reign is not None:
            self._reign.office.settings = settings
        if allowed:
            self._elect_unclean(None)

    def follow(self, old: ClusterImage, new: ClusterImage) -> None:
        """Subscriber of images: whichever broker changed a topic's configuration, the controller acts."""
        if old.configs is new.configs:
            return
        for resource, values in new.configs.items():
            is_allowed = resource.type == ConfigType.TOPIC and allows_unclean(values)
            if is_allowed and not allows_unclean(old.overrides(resource)):
                self._elect_unclean(resource.name)

    def _elect_unclean(self, topic: str | None) -> None:
        """The configuration of a topic (None: of all) has come to allow unclean leaders."""

        async def elect(reign: Reign) -> None:
            await reign.partitions.bring_online(topic)

        self.tell("unclean leaders", elect)

    def _active(self) -> Reign:
        if self._reign is None:
            raise NotController
        return self._reign

    def _put(self, event: Event) -> None:
        if event.needs_controller and self._reign is None:
            event.fail(NotController())
        else:
            self._events.put(event)

    def _put_life(self, name: str, run: Callable[[], Awaitable[None]]) -> None:
        self._events.put(Event(name, run, needs_controller=False, key=name))

    async def _work(self) -> None:
        while True:
            await self._perform(await self._events.next())

    async def _perform(self, event: Event) -> None:
        """Do one event. Whatever goes wrong ends the epoch and not the broker: another controller, or this
        one under another epoch, begins from what is stored.
        """
        try:
            await event.run()
        except NotController as refused:
            event.fail(refused)
        except asyncio.CancelledError:
            event.fail(NotController())
            raise
        except (ControllerMoved, SessionExpired) as moved:
            event.fail(NotController())
            _log.info("The controller steps down: %s", moved)
            self._depose()
            if self._may_stand:
                self._put_life("controller node", self._follow_controller_node)
        except (StoreError, BadPayload) as refusal:
            _log.error("The controller failed at %s and steps down: %s", event.name, refusal)
            event.fail(refusal)
            await self._abdicate()
        except Exception as error:
            _log.exception("The controller failed at %s and steps down", event.name)
            event.fail(error)
            await self._abdicate()

    async def _elect(self) -> None:
        if not self._may_stand or self._reign is not None:
            return
        won = await election.stand(self.store, self._settings.broker_id, self._clock.now_ms(), pause)
        if won is None:
            return
        _log.info("Broker %d is the controller of epoch %d", self._settings.broker_id, won.epoch)
        self._won = won
        reign = self._reign = self._begin(won)
        await reign.begin()
        if self._settings.auto_balance and self._reign is reign:
            self._balancer = self._tasks.spawn("balance", self._balance(reign))

    def _begin(self, won: election.Won) -> Reign:
        state = ControllerState(self._settings.broker_id, won.epoch)
        self._lines = ControlChannels(self._channels, self._tasks, self._answered_under(won))
        ledger = Ledger(self.store, won.epoch, won.epoch_version, pause)
        reign = Reign(Office(state, ledger, self._settings, self._lines, self._follow), self._random)
        for path in (
            paths.BROKER_IDS,
            paths.TOPICS,
            paths.DELETE_TOPICS,
            paths.LOG_DIR_EVENTS,
            paths.ISR_CHANGES,
            paths.REASSIGN_PARTITIONS,
            paths.PREFERRED_ELECTION,
        ):
            self._follow(path)
        return reign

    def _answered_under(self, won: election.Won) -> Callable[[ControlRequest, Any], None]:
        """Answers to requests of an earlier epoch say nothing to a later one."""

        def answered(request: ControlRequest, response: Any) -> None:
            if self._won is won:
                self.tell("answer", lambda reign: reign.on_answer(request, response))

        return answered

    def _depose(self) -> None:
        """The epoch is over for this broker."""
        reign, self._reign = self._reign, None
        self._won = None
        if reign is not None:
            reign.office.ledger.revoke()
        if self._lines is not None:
            self._lines.close()
            self._lines = None
        if self._balancer is not None:
            self._balancer.cancel()
            self._balancer = None
        for cancel in self._watches.values():
            cancel()
        self._watches.clear()
        self._events.refuse_waiting()

    async def _abdicate(self) -> None:
        """Step down and have another one elected."""
        reign = self._reign
        self._depose()
        if reign is not None:
            await self._give_up(reign.office.ledger)
        await asyncio.sleep(FAILURE_PAUSE_S)
        self._put_life("controller node", self._follow_controller_node)

    async def _give_up(self, ledger: Ledger) -> None:
        """However long the store refuses it: /controller names a broker that does nothing until then."""
        while True:
            try:
                await ledger.abdicate()
                return
            except StoreError as error:
                _log.error("The controller's office cannot be given up yet: %s", error)
                await asyncio.sleep(FAILURE_PAUSE_S)

    async def _balance(self, reign: Reign) -> None:
        await asyncio.sleep(BALANCE_DELAY_S)
        while self._reign is reign:
            self.tell("balance", lambda active: active.leaders.balance(), key="balance")
            await asyncio.sleep(self._settings.imbalance_check_interval_ms / 1000)

    # Watching

    def _on_session(self, event: SessionEvent) -> None:
        if event is SessionEvent.EXPIRED:
            self._may_stand = False
            self._depose()
        elif event is SessionEvent.CONNECTED and self._may_stand:
            self._put_life("controller node", self._follow_controller_node)

    def _on_controller_node(self, path: str, event: WatchEvent) -> None:
        if event is not WatchEvent.CHILDREN:
            self._put_life("controller node", self._follow_controller_node)

    async def _follow_controller_node(self) -> None:
        """Step down if /controller is not ours any more, stand if it is nobody's."""
        while True:
            try:
                node = await self.store.get(paths.CONTROLLER)
                break
            except ConnectionLost:
                await pause()
        if self._won is not None and (node is None or node.value != self._won.value):
            _log.info("Another broker is the controller")
            self._depose()
        if node is None:
            await self._elect()

    def _follow(self, path: str) -> None:
        if path not in self._watches:
            self._watches[path] = self.store.watch(path, self._on_watched)

    def _on_watched(self, path: str, event: WatchEvent) -> None:
        """A node that an active controller watches has changed."""
        parent = parent_of(path)
        if parent == paths.BROKER_IDS or path == paths.BROKER_IDS:
            self.tell("brokers", lambda reign: reign.on_registrations(), key="brokers")
        elif parent == paths.TOPICS:
            if event is WatchEvent.DELETED:
                self._watches.pop(path)()
            elif event is WatchEvent.CHANGED:
                topic = path.rpartition("/")[2]
                self.tell("partitions", lambda reign: reign.topics.on_partitions(topic), key=path)
        else:
            self.tell(path, _ON_CHANGE[path], key=path)


async def _on_topics(reign: Reign) -> None:
    await reign.topics.on_topics()


async def _on_legacy_reassignment(reign: Reign) -> None:
    await reign.reassignments.resume_legacy()


_ON_CHANGE: Final[dict[str, Callable[[Reign], Awaitable[None]]]] = {
    paths.TOPICS: _on_topics,
    paths.DELETE_TOPICS: lambda reign: reign.deletions.on_markers(),
    paths.LOG_DIR_EVENTS: lambda reign: reign.notifications.on_log_dir_events(),
    paths.ISR_CHANGES: lambda reign: reign.notifications.on_isr_changes(),
    paths.REASSIGN_PARTITIONS: _on_legacy_reassignment,
    paths.PREFERRED_ELECTION: lambda reign: reign.leaders.on_legacy_node(),
}
