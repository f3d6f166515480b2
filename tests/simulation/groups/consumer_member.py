"""A consumer of the newer protocol (KIP-848): one request, a heartbeat, and it does as the answers say.

It gives partitions up before it says so. After an answer that did not come it says everything again. A
healthy member is never unknown, and fenced only where answers were lost one after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.group.consumer.heartbeat import Caller
from protocol import messages as m
from protocol.errors import ErrorCode as E
from tests.simulation.groups.assignor import by_id, place_of
from tests.simulation.groups.cluster import Broker, Ended, Reply, Tell
from tests.simulation.groups.member import FIND_AGAIN, HEARTBEAT_MS, REBALANCE_MS, REMOVED, Member
from tests.simulation.virtual_time import Pause

if TYPE_CHECKING:
    from tests.simulation.groups.world import World

JOIN, LEAVE, LEAVE_FOR_NOW = 0, -1, -2
VERSION = 1
LOST_IN_A_ROW = 2  # answers after which a member may find itself two epochs behind


class ConsumerMember(Member):
    """See `Member`; `generation` is the member's epoch."""

    def __init__(
        self, world: World, group: str, name: str, topics: tuple[str, ...], instance_id: str | None
    ) -> None:
        super().__init__(world, group, name, topics, instance_id)
        self.member_id, self.generation = f"{name}-id", JOIN
        self.comes_back = False  # a static member that leaves for now
        self._lost = 0
        self._says_all = True
        self._says_owned = False

    async def live(self) -> None:
        beat_at_ms = 0
        while not self.leaving:
            if self.world.now_ms >= beat_at_ms or self._says_all or self._says_owned:
                beat_at_ms = self.world.now_ms + HEARTBEAT_MS
                await self._beat()
            elif self.owned and self.world.chance(150):
                await self._commit()
            await Pause(self.world.random.randrange(100, 900))
            await self.wake()
        await self._leave()

    def _ask(self, epoch: int, *, everything: bool, owned: bool) -> m.ConsumerGroupHeartbeatRequest:
        request = m.ConsumerGroupHeartbeatRequest(
            group_id=self.group, member_id=self.member_id, member_epoch=epoch, instance_id=self.instance_id
        )
        if everything:
            request.rebalance_timeout_ms = REBALANCE_MS
            request.subscribed_topic_names = list(self.topics)
        if everything or owned:
            request.topic_partitions = [
                m.ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=topic_id, partitions=partitions)
                for topic_id, partitions in by_id(self.owned).items()
            ]
        return request

    async def _beat(self) -> None:
        request = self._ask(self.generation, everything=self._says_all, owned=self._says_owned)
        if self.generation == JOIN:
            self.known_since_ms = self.world.now_ms
        self._says_all, said_all = False, self._says_all
        self._says_owned, said_owned = False, self._says_owned
        reply = await self._heartbeat(request)
        error = self.error_of(reply)
        if error is E.NONE:
            self._lost = 0
            await self._follow(reply)
            return
        self._says_all = said_all or error not in (E.UNRELEASED_INSTANCE_ID,)
        self._says_owned = said_owned
        self._lost += 1
        await self._went_wrong(error, reply)

    async def _heartbeat(self, request: m.ConsumerGroupHeartbeatRequest) -> Reply:
        def ask(broker: Broker, tell: Tell) -> None:
            def done(error: E, response: m.ConsumerGroupHeartbeatResponse | None) -> None:
                tell(error if response is None else response)

            if request.member_epoch == JOIN and self.instance_id is not None:
                self.world.takes_instance(self)
            broker.manager.consumer_heartbeat(request, VERSION, Caller(self.name, "/10.1.1.2"), done)

        return await self.send(ask)

    async def _follow(self, reply: Reply) -> None:
        """Take over epoch and assignment."""
        answer = reply.told
        self.recorded = True
        moved, self.generation = answer.member_epoch != self.generation, answer.member_epoch
        self.stable = True
        if answer.assignment is not None:
            places = frozenset(
                place_of(each.topic_id, number)
                for each in answer.assignment.topic_partitions
                for number in each.partitions
            )
            self.world.assigned(self, places, reply.handled_ms, fixed=False)
            if self.owned - places:  # what it does with them takes a while to end
                await Pause(self.world.random.randrange(700))
                await self.wake()
            if places != self.owned:
                self._says_owned = True
                self.own(places)
                self.confirmed(reply)
                await self.fetch()
                return
        elif moved:
            self.world.assigned(self, self.owned, reply.handled_ms, fixed=False)
        self.confirmed(reply)

    async def _went_wrong(self, error: E, reply: Reply) -> None:
        self.stable = False
        if error in REMOVED:
            if self.generation != JOIN:
                self.check_removed(reply)
            self._join_again()
        elif error is E.FENCED_MEMBER_EPOCH:
            assert self.suspect or self._lost > LOST_IN_A_ROW, f"{self} was fenced though it kept up"
            self._join_again()
        elif error is E.FENCED_INSTANCE_ID:
            assert self.suspect, f"{self} was fenced, and nobody else has its instance id"
            raise Ended
        elif error is E.GROUP_MAX_SIZE_REACHED:
            raise Ended
        elif error is E.UNRELEASED_INSTANCE_ID:
            assert self.instance_id is not None, "only static members have an instance id"
            await Pause(1000)
        else:
            assert error in FIND_AGAIN or error is E.UNKNOWN_SERVER_ERROR, f"{self} was told {error.name}"
            self.find_again()

    def _join_again(self) -> None:
        self.own(frozenset())
        self.generation, self.recorded, self._says_all = JOIN, False, True

    async def _commit(self) -> None:
        reply = await self.commit()
        error = self.error_of(reply)
        if error in REMOVED:
            self.check_removed(reply)
            self._join_again()
        elif error in FIND_AGAIN:
            self.find_again()
        else:
            assert error in (E.NONE, E.STALE_MEMBER_EPOCH, E.UNKNOWN_SERVER_ERROR, E.FENCED_INSTANCE_ID), (
                error
            )

    async def _leave(self) -> None:
        self.own(frozenset())
        self.doubt()
        epoch = LEAVE_FOR_NOW if self.comes_back and self.instance_id is not None else LEAVE
        await self._heartbeat(self._ask(epoch, everything=False, owned=False))
        self.crash()
