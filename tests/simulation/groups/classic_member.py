"""A consumer of the classic protocol, as real clients behave: joins, heartbeats, commits, and recovers.

`healthy` means that it answers in time: it was not frozen since a coordinator last confirmed its place, and
nobody has taken its instance id or removed it. What a healthy member must never see is asserted here: to be
told that it is unknown, or of another generation, while its coordinator has not changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from coordinator.group.classic import events as ev
from coordinator.group.manager import Committer
from protocol.errors import ErrorCode as E
from tests.simulation.groups.assignor import COOPERATIVE, Place, assign, assigned_places, subscription
from tests.simulation.groups.cluster import NO_VIEW, Broker, Ended, Reply, Tell
from tests.simulation.virtual_time import Pause

if TYPE_CHECKING:
    from tests.simulation.groups.world import World

SESSION_MS, REBALANCE_MS, HEARTBEAT_MS = 10_000, 30_000, 3000
FIND_AGAIN = (
    E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR, E.COORDINATOR_LOAD_IN_PROGRESS, E.NETWORK_EXCEPTION,
)  # fmt: skip
JOIN_VERSIONS, SYNC_VERSION, BEAT_VERSION, LEAVE_VERSION = (3, 5, 9), 5, 4, 5


class ClassicMember:
    """One process. `run` is its life; it ends by `crash`, by `leaving`, or because it was fenced."""

    def __init__(
        self, world: World, group: str, name: str, topics: tuple[str, ...], protocols: tuple[str, ...],
        instance_id: str | None,
    ) -> None:  # fmt: skip
        self.world, self.group, self.name, self.topics = world, group, name, topics
        self.protocols, self.instance_id = protocols, instance_id
        self.cooperative = COOPERATIVE in protocols
        self.join_version = world.random.choice(JOIN_VERSIONS if instance_id is None else JOIN_VERSIONS[1:])
        self.alive, self.leaving = True, False
        self.suspect, self.suspect_since_ms = False, 0  # may have been removed or replaced with good reason
        self.rejoins = False  # somebody wants it to join again
        self.frozen_until_ms = 0
        self.member_id, self.generation = "", -1
        self.recorded = False  # a coordinator has said that a record with this id is committed
        self.view, self.known_since_ms = (
            NO_VIEW,
            0,
        )  # the view that last knew this id
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

    # -- its life

    async def run(self) -> None:
        try:
            while not self.leaving:
                if await self._join() and await self._sync():
                    await self._stay()
            await self._leave()
        except Ended:
            self.crash()

    async def _join(self) -> bool:
        """One JoinGroup; true once it is in a generation."""
        self.stable = False
        if not self.cooperative:
            self._own(frozenset())
        metadata = subscription(self.topics, self.owned, self.generation)
        protocols = tuple((name, metadata) for name in self.protocols)
        member_id, version, instance = self.member_id, self.join_version, self.instance_id

        def event(token: int) -> ev.JoinGroup:
            if instance is not None and not member_id:
                self.world.takes_instance(self)
            return ev.JoinGroup(
                token, version, member_id, SESSION_MS, REBALANCE_MS, "consumer", protocols, instance,
                client_id=self.name, client_host="/10.1.1.1",
            )  # fmt: skip

        reply = await self._call(event)
        if not self._went_well(reply):
            await self._back_off(reply)
            return False
        joined = reply.told
        if joined.member_id != member_id:
            self._new_id(joined.member_id, reply)
        self.generation, self.view, self._joined = joined.generation_id, reply.view, joined
        return True

    async def _sync(self) -> bool:
        joined, shares, self._incomplete = self._joined, {}, False
        if joined.leader == joined.member_id and not joined.skip_assignment:
            blobs = {each.member_id: bytes(each.metadata) for each in joined.members}
            assert self.member_id in blobs, "the leader is told of itself"
            shares, self._incomplete = assign(blobs, joined.protocol_name)

        def event(token: int) -> ev.SyncGroup:
            return ev.SyncGroup(
                token, SYNC_VERSION, self.member_id, self.generation, self.instance_id,
                "consumer", joined.protocol_name, shares,
            )  # fmt: skip

        reply = await self._call(event)
        if not self._went_well(reply):
            await self._back_off(reply)
            return False
        self.recorded = True
        self._confirmed(reply)
        places = assigned_places(bytes(reply.told.assignment))
        self.world.assigned(self, places)
        return await self._take_over(places)

    async def _take_over(self, places: frozenset[Place]) -> bool:
        """Own what was assigned; a cooperative member that loses something joins again at once."""
        lost, self.stable = self.owned - places, True
        self._own(places)
        if places and self.world.chance(300):
            await self.world.fetch(self.group, sorted(places), await self._find())
            await self._wake()
        return not (self.cooperative and lost)

    async def _stay(self) -> None:
        """Heartbeats, and commits in between, until something says to join again.

        A leader that had to leave something out tries again after a while.
        """
        beat_at_ms = self.world.now_ms + HEARTBEAT_MS
        while not self.leaving:
            await Pause(self.world.random.randrange(300, 1200))
            await self._wake()
            if self.world.now_ms >= beat_at_ms:
                beat_at_ms = self.world.now_ms + HEARTBEAT_MS
                if not await self._beat() or self._incomplete or self.rejoins:
                    self.rejoins = False
                    return
            elif self.owned and self.world.chance(150) and not await self._commit():
                return

    async def _beat(self) -> bool:
        def event(token: int) -> ev.Heartbeat:
            return ev.Heartbeat(token, BEAT_VERSION, self.member_id, self.generation, self.instance_id)

        reply = await self._call(event)
        if reply.told is E.COORDINATOR_LOAD_IN_PROGRESS:  # which clients are not told: NONE
            return True
        if self._went_well(reply):
            self._confirmed(reply)
            return True
        return self._error(reply) in FIND_AGAIN

    async def _commit(self) -> bool:
        cells = self.world.some(sorted(self.owned))
        committer = Committer(self.member_id, self.instance_id, self.generation)
        reply = await self.world.commit(self.group, cells, await self._find(), committer)
        await self._wake()
        if self._went_well(reply):  # which says nothing of now: the answer has waited for the log
            return True
        return self._error(reply) in (E.REBALANCE_IN_PROGRESS, E.UNKNOWN_SERVER_ERROR, *FIND_AGAIN)

    async def _leave(self) -> None:
        def event(token: int) -> ev.LeaveGroup:
            return ev.LeaveGroup(token, LEAVE_VERSION, (ev.LeavingMember(self.member_id, self.instance_id),))

        self._own(frozenset())
        self.doubt()
        await self._call(event)
        self.crash()

    # -- what it is told

    def _error(self, reply: Reply) -> E:
        if isinstance(reply.told, E):
            return reply.told
        return E.NONE if isinstance(reply.told, list) else E(reply.told.error_code)

    def _went_well(self, reply: Reply) -> bool:
        error = self._error(reply)
        if error is E.NONE:
            return True
        if error is E.MEMBER_ID_REQUIRED:
            self._new_id(reply.told.member_id, reply)
        elif error in (E.UNKNOWN_MEMBER_ID, E.GROUP_ID_NOT_FOUND):
            excused = not self.recorded and (
                self.view != reply.view or self.world.deleted_ms[self.group] >= self.known_since_ms
            )
            assert self.suspect or excused, f"{self} was removed though it sent heartbeats in time"
            self._forget()
        elif error is E.FENCED_INSTANCE_ID:
            # A new id that was not recorded is lost in a failover: then the instance has its old one again.
            excused = not self.recorded and self.view != reply.view
            assert self.suspect or excused, f"{self} was fenced, and nobody else has its instance id"
            raise Ended
        elif error is E.ILLEGAL_GENERATION:
            assert self.suspect or self.view != reply.view, f"{self} was left behind in its generation"
            self.generation = -1
            self._own(frozenset())
        elif error is E.GROUP_MAX_SIZE_REACHED:
            raise Ended
        elif error in FIND_AGAIN or error is E.UNKNOWN_SERVER_ERROR:
            self._broker = None
        else:
            assert error is E.REBALANCE_IN_PROGRESS, f"{self} was told {error.name}"
        return False

    async def _back_off(self, reply: Reply) -> None:
        if self._error(reply) in FIND_AGAIN:
            await Pause(100)

    def _new_id(self, member_id: str, reply: Reply) -> None:
        self.member_id, self.recorded = member_id, False
        self.view, self.known_since_ms = reply.view, reply.answered_ms

    def _confirmed(self, reply: Reply) -> None:
        """It was a member when this was answered."""
        self.view = reply.view
        if reply.answered_ms > max(self.suspect_since_ms, self.frozen_until_ms):
            self.suspect = False
            if self.recorded:
                self.world.active_ms[self.group] = self.world.now_ms
            self.world.check_owners(self)

    def _forget(self) -> None:
        self.member_id, self.generation, self.recorded = "", -1, False
        self._own(frozenset())

    def _own(self, places: frozenset[Place]) -> None:
        self.owned = places
        self.world.check_owners(self)

    # -- the way to a coordinator

    async def _call(self, event: Callable[[int], ev.Request]) -> Reply:
        def ask(broker: Broker, tell: Tell) -> None:
            broker.manager.handle(self.group, event, tell)

        reply = await self.world.send(await self._find(), self.group, ask)
        await self._wake()
        return reply

    async def _find(self) -> Broker:
        await self._wake()
        while self._broker is None or not self._broker.alive:
            self._broker = self.world.cluster.coordinator(self.group)
            await Pause(100 if self._broker is None else 1)
            await self._wake()
        return self._broker

    async def _wake(self) -> None:
        """Go on once it is not frozen. Raises Ended if it has crashed."""
        while self.alive and self.world.now_ms < self.frozen_until_ms:
            await Pause(self.frozen_until_ms - self.world.now_ms)
        if not self.alive:
            raise Ended

    def __str__(self) -> str:
        return f"{self.name} ({self.member_id or 'no id'}, generation {self.generation}) of {self.group}"
