"""A consumer of the classic protocol, as real clients behave: joins, heartbeats, commits, and recovers.

What a healthy member must never see is asserted here and in `Member`: to be told that it is unknown, or of
another generation, while its coordinator has not changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from coordinator.group.classic import events as ev
from protocol.errors import ErrorCode as E
from tests.simulation.groups.assignor import COOPERATIVE, Place, assign, assigned_places, subscription
from tests.simulation.groups.cluster import Broker, Ended, Reply, Tell
from tests.simulation.groups.member import FIND_AGAIN, HEARTBEAT_MS, REBALANCE_MS, REMOVED, SESSION_MS, Member
from tests.simulation.virtual_time import Pause

if TYPE_CHECKING:
    from tests.simulation.groups.world import World

JOIN_VERSIONS, SYNC_VERSION, BEAT_VERSION, LEAVE_VERSION = (3, 5, 9), 5, 4, 5


class ClassicMember(Member):
    """See `Member`."""

    is_classic = True

    def __init__(
        self, world: World, group: str, name: str, topics: tuple[str, ...], instance_id: str | None,
        protocols: tuple[str, ...],
    ) -> None:  # fmt: skip
        super().__init__(world, group, name, topics, instance_id)
        self.protocols, self.cooperative = protocols, COOPERATIVE in protocols
        self.join_version = world.random.choice(JOIN_VERSIONS if instance_id is None else JOIN_VERSIONS[1:])

    async def live(self) -> None:
        while not self.leaving:
            if await self._join() and await self._sync():
                await self._stay()
        await self._leave()

    async def _join(self) -> bool:
        """One JoinGroup; true once it is in a generation."""
        self.stable = False
        if not self.cooperative:
            self.own(frozenset())
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
        self.confirmed(reply)
        places = assigned_places(bytes(reply.told.assignment))
        self.world.assigned(self, places, reply.handled_ms, fixed=True)
        return await self._take_over(places)

    async def _take_over(self, places: frozenset[Place]) -> bool:
        """Own what was assigned; a cooperative member that loses something joins again at once."""
        lost, self.stable = self.owned - places, True
        self.own(places)
        await self.fetch()
        return not (self.cooperative and lost)

    async def _stay(self) -> None:
        """Heartbeats, and commits in between, until something says to join again.

        A leader that had to leave something out tries again after a while.
        """
        beat_at_ms = self.world.now_ms + HEARTBEAT_MS
        while not self.leaving:
            await Pause(self.world.random.randrange(300, 1200))
            await self.wake()
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
            self.confirmed(reply)
            return True
        return self.error_of(reply) in FIND_AGAIN

    async def _commit(self) -> bool:
        reply = await self.commit()
        if self._went_well(reply):
            self.confirmed(reply)
            return True
        return self.error_of(reply) in (E.REBALANCE_IN_PROGRESS, E.UNKNOWN_SERVER_ERROR, *FIND_AGAIN)

    async def _leave(self) -> None:
        def event(token: int) -> ev.LeaveGroup:
            return ev.LeaveGroup(token, LEAVE_VERSION, (ev.LeavingMember(self.member_id, self.instance_id),))

        self.own(frozenset())
        self.doubt()
        if self.member_id:
            await self._call(event)
        self.crash()

    # -- what it is told

    def _went_well(self, reply: Reply) -> bool:
        error = self.error_of(reply)
        if error is E.NONE:
            return True
        if error is E.MEMBER_ID_REQUIRED:
            self._new_id(reply.told.member_id, reply)
        elif error in REMOVED:
            self.check_removed(reply)
            self._forget()
        elif error is E.FENCED_INSTANCE_ID:
            # A new id that was not recorded is lost in a failover: then the instance has its old one again.
            excused = not self.recorded and self.view != reply.view
            assert self.suspect or excused, f"{self} was fenced, and nobody else has its instance id"
            raise Ended
        elif error is E.ILLEGAL_GENERATION:
            # A group that changes its protocol there and back moves on without those it has not told yet.
            excused = self.view != reply.view or self.group.startswith("mixed")
            assert self.suspect or excused, f"{self} was left behind in its generation"
            self.generation = -1
            self.own(frozenset())
        elif error is E.GROUP_MAX_SIZE_REACHED:
            raise Ended
        elif error in FIND_AGAIN or error is E.UNKNOWN_SERVER_ERROR:
            self.find_again()
        else:
            assert error is E.REBALANCE_IN_PROGRESS, f"{self} was told {error.name}"
        return False

    async def _back_off(self, reply: Reply) -> None:
        if self.error_of(reply) in FIND_AGAIN:
            await Pause(100)

    def _new_id(self, member_id: str, reply: Reply) -> None:
        self.member_id, self.recorded = member_id, False
        self.view, self.known_since_ms = reply.view, reply.handled_ms

    def _forget(self) -> None:
        self.member_id, self.generation, self.recorded = "", -1, False
        self.own(frozenset())

    async def _call(self, event: Callable[[int], ev.Request]) -> Reply:
        def told(answer: Any, tell: Tell) -> None:
            if answer.error_code == E.GROUP_MAX_SIZE_REACHED:
                self.doubt()  # it is out before it hears of that
            tell(answer)

        def ask(broker: Broker, tell: Tell) -> None:
            broker.manager.handle(self.group, event, lambda answer: told(answer, tell))

        return await self.send(ask)
