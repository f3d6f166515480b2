"""What simulated members of both protocols have in common: a process that may freeze or crash, what it owns,
and the way to its coordinator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.group.manager import Committer
from protocol.errors import ErrorCode as E
from tests.simulation.groups.assignor import Place
from tests.simulation.groups.cluster import NO_VIEW, Ask, Broker, Ended, Reply
from tests.simulation.virtual_time import Pause

if TYPE_CHECKING:
    from tests.simulation.groups.world import World

SESSION_MS, REBALANCE_MS, HEARTBEAT_MS = 10_000, 30_000, 3000
FIND_AGAIN = (
    E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR, E.COORDINATOR_LOAD_IN_PROGRESS, E.NETWORK_EXCEPTION,
)  # fmt: skip
REMOVED = (E.UNKNOWN_MEMBER_ID, E.GROUP_ID_NOT_FOUND)


class Member:
    """One process. `run` is its life; it ends by `crash`, by `leaving`, or because it was fenced.

    `healthy` means that it answers in time: it was not frozen since a coordinator last confirmed its place,
    and nobody has taken its instance id or removed it.
    """

    is_classic = False

    def __init__(
        self, world: World, group: str, name: str, topics: tuple[str, ...], instance_id: str | None
    ) -> None:
        self.world, self.group, self.name, self.topics = world, group, name, topics
        self.instance_id = instance_id
        self.alive, self.leaving = True, False
        self.suspect, self.suspect_since_ms = False, 0  # may have been removed or replaced with good reason
        self.rejoins = False  # somebody wants it to join again
        self.frozen_until_ms = 0
        self.member_id, self.generation = "", -1
        self.recorded = False  # a coordinator has said that a record with this id is committed
        self.view, self.known_since_ms = NO_VIEW, 0  # the view that last knew this id, and since when
        self.owned: frozenset[Place] = frozenset()
        self.stable = False
        self._broker: Broker | None = None

    @property
    def healthy(self) -> bool:
        return self.alive and not self.suspect

    def doubt(self) -> None:
        """From now on it may be gone from the group, until a coordinator confirms its place."""
        self.suspect, self.suspect_since_ms = True, self.world.now_ms

    def freeze(self, duration_ms: int) -> None:
        """Neither send nor read anything for a while, as in a long garbage collection."""
        self.frozen_until_ms = self.world.now_ms + duration_ms
        self.doubt()

    def crash(self) -> None:
        self.alive, self.stable, self.owned = False, False, frozenset()

    async def run(self) -> None:
        try:
            await self.live()
        except Ended:
            self.crash()

    async def live(self) -> None:
        """Everything a member does; over when it leaves."""
        raise AssertionError("each protocol has its own")

    def error_of(self, reply: Reply) -> E:
        if isinstance(reply.told, E):
            return reply.told
        return E.NONE if isinstance(reply.told, list) else E(reply.told.error_code)

    def confirmed(self, reply: Reply) -> None:
        """It was a member when this was handled."""
        self.view = reply.view
        if reply.handled_ms > max(self.suspect_since_ms, self.frozen_until_ms):
            self.suspect = False
            if self.recorded:
                self.world.active_ms[self.group] = self.world.now_ms
            self.world.check_owners(self)

    def check_removed(self, reply: Reply) -> None:
        """A coordinator does not know it: right where it was silent, or was never recorded."""
        excused = not self.recorded and (
            self.view != reply.view
            or self.world.deleted_ms[self.group] >= self.known_since_ms
            or self.group.startswith("mixed")  # a change of protocol may be taken back
        )
        assert self.suspect or excused, f"{self} was removed though it sent heartbeats in time"

    def own(self, places: frozenset[Place]) -> None:
        self.owned = places
        self.world.check_owners(self)

    async def commit(self) -> Reply:
        """Commit some of what it owns."""
        cells = self.world.some(sorted(self.owned))
        committer = Committer(self.member_id, self.instance_id, self.generation)
        reply = await self.world.commit(self.group, cells, await self.find(), committer)
        await self.wake()
        return reply

    async def fetch(self) -> None:
        """Look where to go on, as a consumer does that was given partitions."""
        if self.owned and self.world.chance(300):
            reader = (self.member_id, self.generation)
            await self.world.fetch(self.group, sorted(self.owned), await self.find(), reader=reader)
            await self.wake()

    async def send(self, ask: Ask) -> Reply:
        reply = await self.world.send(await self.find(), self.group, ask)
        await self.wake()
        return reply

    async def find(self) -> Broker:
        """The coordinator, looked for again until there is one."""
        await self.wake()
        while self._broker is None or not self._broker.alive:
            self._broker = self.world.cluster.coordinator(self.group)
            await Pause(100 if self._broker is None else 1)
            await self.wake()
        return self._broker

    def find_again(self) -> None:
        self._broker = None

    async def wake(self) -> None:
        """Go on once it is not frozen. Raises Ended if it has crashed."""
        while self.alive and self.world.now_ms < self.frozen_until_ms:
            await Pause(self.frozen_until_ms - self.world.now_ms)
        if not self.alive:
            raise Ended

    def __str__(self) -> str:
        return f"{self.name} ({self.member_id or 'no id'}, generation {self.generation}) of {self.group}"
