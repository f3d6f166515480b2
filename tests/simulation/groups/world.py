"""One run: the cluster, everybody who asks it something, and what must hold while it goes on.

Requests travel for a few milliseconds each way; some answers get lost on the way. Offsets are checked against
`OffsetModel`, ownership whenever a member takes partitions over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

from coordinator.group.classic import events as ev
from coordinator.group.consumer.settings import ConsumerSettings
from coordinator.group.manager import NO_READER, Committer
from coordinator.group.offsets import Commit, Fetched
from coordinator.group.shard import ShardSettings
from coordinator.result import NO_PRODUCER, Producer
from protocol.errors import ErrorCode as E
from tests.simulation.groups.assignor import FixedTopics, Place
from tests.simulation.groups.cluster import GONE, NO_VIEW, RETENTION_MS, Ask, Broker, Cluster, Reply, Tell
from tests.simulation.groups.log import SimulatedLog, Trouble
from tests.simulation.groups.member import HEARTBEAT_MS, SESSION_MS, Member
from tests.simulation.groups.offset_model import Cell, Fate, OffsetModel, Step
from tests.simulation.virtual_time import Answer, Pause, Scheduler

NO_TELLING = (E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR, E.UNKNOWN_SERVER_ERROR)
"""Errors after which a write may still be found in the log."""
T = TypeVar("T")
_GROUP_CONFIGS = {
    "consumer.session.timeout.ms": SESSION_MS,
    "consumer.heartbeat.interval.ms": HEARTBEAT_MS,
    "consumer.assignment.interval.ms": 1000,
}


def shard_settings(max_size: int = 2**31 - 1, initial_delay_ms: int = 0) -> ShardSettings:
    """The broker's settings in a run."""
    return ShardSettings(
        ev.GroupSettings(max_size=max_size, initial_rebalance_delay_ms=initial_delay_ms),
        topics=FixedTopics(),
        consumer=ConsumerSettings(
            group_config=lambda group, name: _GROUP_CONFIGS[name],
            max_size=max_size,
            classic_max_size=max_size,
        ),
    )


class World:
    """`random` decides everything that a run does."""

    def __init__(self, seed: int, partition_count: int = 2, settings: ShardSettings | None = None) -> None:
        self.random = Random(seed)
        self.scheduler = Scheduler()
        self.log = SimulatedLog(self.scheduler, self.random, partition_count, Trouble())
        self.cluster = Cluster(self.scheduler, self.random, self.log, settings or shard_settings())
        self.model = OffsetModel()
        self.members: list[Member] = []
        self.loses_answers = 0
        self.active_ms: dict[str, int] = {}  # when a member of a recorded group was last confirmed
        self.deleted_ms: defaultdict[str, int] = defaultdict(lambda: -1)  # when deletion was last asked for
        self.handed_out: dict[tuple[str, int], dict[str, frozenset[Place]]] = {}
        self.counts: defaultdict[str, int] = defaultdict(int)

    @property
    def now_ms(self) -> int:
        return self.scheduler.now_ms()

    def chance(self, in_1000: int) -> bool:
        return self.random.randrange(1000) < in_1000

    def some(self, items: list[T]) -> list[T]:
        return self.random.sample(items, self.random.randint(1, len(items)))

    # -- members

    def start(self, member: Member) -> Member:
        self.members.append(member)
        self.scheduler.spawn(member.run())
        return member

    def living(self, group: str) -> list[Member]:
        return [member for member in self.members if member.group == group and member.alive]

    def takes_instance(self, member: Member) -> None:
        """A process joins under an instance id: who had it before is fenced, now or soon.

        A member of the newer protocol takes it from classic ones only; it waits for others to leave.
        """
        for other in self.living(member.group):
            same = other is not member and other.instance_id == member.instance_id
            if same and (member.is_classic or other.is_classic):
                other.doubt()

    def assigned(self, member: Member, places: frozenset[Place], handled_ms: int, *, fixed: bool) -> None:
        """No partition twice in a generation. A classic member's own part never changes within one."""
        self.counts["assignments"] += 1
        if member.group.startswith("mixed") or handled_ms <= self.deleted_ms[member.group]:
            return  # each conversion begins to count anew, and so does a group that was deleted meanwhile
        parts = self.handed_out.setdefault((member.group, member.generation), {})
        who = member.instance_id or member.member_id
        before = parts.setdefault(who, places)
        assert not fixed or before == places, f"{member} had {sorted(before)}, now {sorted(places)}"
        parts[who] = before | places
        for other, taken in parts.items():
            both = sorted(places & taken)
            assert other == who or not both, f"{member} and {other} both own {both}"

    def check_owners(self, member: Member) -> None:
        """Of members in good standing, one owns a partition, whatever their generations."""
        if not member.healthy:
            return
        for other in self.members:
            if other is not member and other.group == member.group and other.healthy:
                both = sorted(member.owned & other.owned)
                assert not both, f"{member} and {other} both own {both}"

    # -- requests

    async def send(self, broker: Broker, group: str, ask: Ask) -> Reply:
        """A request and its answer over the network; GONE when the broker or the answer is lost."""
        await Pause(self.random.randrange(1, 40))
        if not broker.alive:
            await Pause(50)
            return Reply(GONE, self.now_ms, NO_VIEW)
        answer, first = Answer(), Answer()
        broker.receive(group, ask, answer)
        answer.then(first.set_first)
        if self.chance(self.loses_answers):  # soon, or while the request is parked
            gone = Reply(GONE, self.now_ms, NO_VIEW)
            self.scheduler.add(self.random.randrange(2000), lambda: first.set_first(gone))
        reply: Reply = await first
        await Pause(self.random.randrange(1, 40))
        if self.chance(self.loses_answers):
            return Reply(GONE, reply.handled_ms, reply.view)
        return reply

    async def commit(
        self, group: str, cells: list[Cell], broker: Broker, who: Committer, producer: Producer = NO_PRODUCER,
        steps: list[Step] | None = None,
    ) -> Reply:  # fmt: skip
        """OffsetCommit, or TxnOffsetCommit with a producer. `steps` receives what was asked for."""
        steps, hidden = [] if steps is None else steps, producer != NO_PRODUCER

        def ask(broker: Broker, tell: Tell) -> None:
            now_ms = self.now_ms
            made = [self.model.step(group, cell, now_ms, hidden=hidden) for cell in cells]
            steps.extend(made)
            commits = [Commit(*cell, step.value) for cell, step in zip(cells, made, strict=True)]
            for step in made:
                step.waits_at = broker
            done = self._settling(made, tell, hidden=hidden)
            broker.manager.commit_offsets(group, who, 9, commits, done, producer=producer)

        self.counts["commits"] += 1
        return await self.send(broker, group, ask)

    def _settling(self, steps: list[Step], tell: Tell, *, hidden: bool = False) -> Callable[[E, Any], None]:
        """Takes the answer to a write: steps that were refused are lost, acknowledged ones hold."""

        def done(error: E, told: Any) -> None:
            for step in steps:
                step.waits_at = None
            if error is E.NONE:
                if not hidden:
                    for step, single in zip(steps, told or [E.NONE] * len(steps), strict=True):
                        step.fate = Fate.HELD if single is E.NONE else Fate.LOST
            elif error not in NO_TELLING:
                self.model.settle(steps, Fate.LOST)
            tell([] if error is E.NONE else error)

        return done

    async def fetch(
        self, group: str, cells: list[Cell], broker: Broker, *, stable: bool = False,
        reader: tuple[str | None, int] = NO_READER,
    ) -> None:  # fmt: skip
        """OffsetFetch, checked where the broker leads the group when it handles it."""

        def ask(broker: Broker, tell: Tell) -> None:
            leads = self.cluster.coordinator(group) is broker
            before = {cell: self.model.history(group, cell).possible() for cell in cells}

            def done(error: E, found: list[Fetched] | None) -> None:
                for each in found or ():
                    cell = (each.topic, each.partition)
                    if each.error is E.UNSTABLE_OFFSET_COMMIT:
                        assert stable, "only a fetch that asks for stable offsets is told that one is not"
                    elif leads:
                        seen = self.model.fetched(group, cell, each.offset, before[cell])
                        assert stable or seen.waits_at is not broker, f"{cell}: {seen} is not committed yet"
                tell(error)

            broker.manager.fetch_offsets(group, cells, done, require_stable=stable, reader=reader)

        await self.send(broker, group, ask)

    async def end_transaction(self, group: str, producer: Producer, steps: list[Step], commit: bool) -> None:
        """WriteTxnMarkers to whoever leads the group, until one of them is acknowledged."""

        def ask(broker: Broker, tell: Tell) -> None:
            if commit:
                self.model.settle([step for step in steps if step.fate is Fate.HIDDEN], Fate.OPEN)

            def done(error: E, _: None) -> None:
                if error is E.NONE:
                    self.model.settle([step for step in steps if step.fate is not Fate.LOST],
                                      Fate.HELD if commit else Fate.LOST)  # fmt: skip
                tell(error)

            partition = self.cluster.partition_of(group)
            broker.runtime.write_end_marker(partition, *producer, 1, commit, done)

        self.counts["transactions"] += 1
        told = E.NOT_COORDINATOR
        while told is not E.NONE:
            await Pause(self.random.randrange(10, 300))
            broker = self.cluster.coordinator(group)
            if broker is not None:
                told = (await self.send(broker, group, ask)).told

    async def delete_offsets(self, group: str, cells: list[Cell], broker: Broker) -> None:
        """OffsetDelete."""

        def ask(broker: Broker, tell: Tell) -> None:
            steps = [self.model.step(group, cell, self.now_ms, delete=True) for cell in cells]
            broker.manager.delete_offsets(group, cells, self._settling(steps, tell))

        await self.send(broker, group, ask)

    async def delete_group(self, group: str, broker: Broker) -> None:
        """DeleteGroups for one group, which must not succeed while a healthy member is in it."""

        def ask(broker: Broker, tell: Tell) -> None:
            cells = self.model.cells(group)
            steps = [self.model.step(group, cell, self.now_ms, delete=True) for cell in cells]
            used = [str(member) for member in self.living(group) if member.healthy and member.stable]
            self._will_delete(group)

            def checked(error: E, told: Any) -> None:
                assert error is not E.NONE or not used, f"{group} was deleted with {used} in it"

            settle = self._settling(steps, tell)
            broker.manager.delete_group(
                group, lambda error, told: (checked(error, told), settle(error, told))
            )

        await self.send(broker, group, ask)

    def _will_delete(self, group: str) -> None:
        self.deleted_ms[group] = self.now_ms
        for key in [key for key in self.handed_out if key[0] == group]:
            del self.handed_out[key]

    def expire(self, broker: Broker) -> None:
        """The check for offsets that are over, at one broker. What may go is decided by the model."""
        now_ms = self.now_ms
        for group, cell in list(self.model.histories):
            quiet_ms = now_ms - self.active_ms.get(group, 0)
            old = now_ms - self.model.committed_since_ms(group, cell) >= RETENTION_MS
            reading = [member for member in self.living(group) if member.healthy and cell[0] in member.topics]
            if (group in self.active_ms and quiet_ms >= RETENTION_MS) or (old and not reading):
                self.model.step(group, cell, now_ms, delete=True)
        for group in {member.group: None for member in self.members}:
            if not any(member.healthy and member.stable for member in self.living(group)):
                self._will_delete(group)  # an Empty group without offsets goes at once
        broker.manager.expire(lambda error, _: None)

    def delete_topic(self, topic: str, broker: Broker) -> None:
        """A topic is gone: so are its offsets, of all groups of this broker."""
        for group, cell in list(self.model.histories):
            if cell[0] == topic and self.cluster.coordinator(group) is broker:
                self.model.step(group, cell, self.now_ms, delete=True)
        broker.manager.topics_deleted([topic], lambda error, _: None)
