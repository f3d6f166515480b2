"""What happens in a run: random deeds, each some hundred milliseconds after the one before, then a calm end.

In the calm nothing goes wrong any more, and after a while every group that has members is Stable with exactly
those, all partitions owned.
"""

from __future__ import annotations

from collections.abc import Callable

from coordinator.group.classic import events as ev
from coordinator.group.manager import Committer
from coordinator.result import Producer
from coordinator.runtime import State
from tests.simulation.groups.assignor import COOPERATIVE, EAGER, TOPICS
from tests.simulation.groups.classic_member import ClassicMember
from tests.simulation.groups.cluster import Broker, Tell
from tests.simulation.groups.consumer_member import ConsumerMember
from tests.simulation.groups.log import Trouble
from tests.simulation.groups.member import Member
from tests.simulation.groups.offset_model import Cell
from tests.simulation.groups.replayed import check_replayed
from tests.simulation.groups.world import World, shard_settings
from tests.simulation.virtual_time import Pause

STYLES = {"eager": (EAGER, "roundrobin"), "cooperative": (COOPERATIVE,), "mixed": (EAGER,)}
GROUPS = ("eager-1", "eager-2", "cooperative-1", "consumer-1", "consumer-2", "mixed-1")
SIMPLE = "simple"
MEMBERS_MAX = 5
CALM_MS = 90_000  # longer than a rebalance, a session and a write that takes too long


class Schedule:
    """One seed. `run` raises AssertionError where something does not hold."""

    def __init__(self, seed: int) -> None:
        self.limit = 3 if seed % 5 == 0 else 2**31 - 1
        self.world = World(seed, settings=shard_settings(self.limit, (0, 3000)[seed % 2]))
        self.random = self.world.random
        self._named = 0
        self._producers = 0
        self._calm = False
        self.deeds: list[tuple[int, Callable[[], object]]] = [
            (9, self.join), (4, self.leave), (4, self.crash_member), (5, self.freeze),
            (5, self.restart_static), (2, self.remove_static), (6, self.move), (2, self.crash_broker),
            (6, self.simple_commit),
            (8, self.fetch), (5, self.transaction), (3, self.delete_offsets), (2, self.delete_group),
            (1, self.delete_topic), (3, self.expire), (3, self.look), (4, self.trouble), (3, self.check_log),
        ]  # fmt: skip

    def run(self, duration_ms: int = 150_000) -> None:
        world = self.world
        until_ms = world.now_ms + duration_ms
        weights = [weight for weight, _ in self.deeds]
        while world.now_ms < until_ms:
            ((_, deed),) = self.random.choices(self.deeds, weights)
            deed()
            world.scheduler.run_for(self.random.randrange(50, 1200))
        self.settle()

    # -- members

    def join(self) -> None:
        group = self.random.choice(GROUPS)
        living = self.world.living(group)
        if len(living) >= MEMBERS_MAX:
            return
        instance = f"{group}-i{self.random.randrange(3)}" if self.world.chance(350) else None
        if group.startswith(("consumer", "mixed")) and any(each.instance_id == instance for each in living):
            instance = None  # the second one would wait until the first one has gone
        self._start(group, instance)

    def _start(self, group: str, instance: str | None, topics: tuple[str, ...] | None = None) -> None:
        self._named += 1
        if topics is None:
            topics = self.random.choice((("a",), ("a", "b"), ("b",), ("a", "b")))
        name, style = f"m{self._named}", group.split("-")[0]
        if style == "consumer" or (style == "mixed" and self.world.chance(500)):
            self.world.start(ConsumerMember(self.world, group, name, topics, instance))
            return
        protocols = list(STYLES[style])
        self.random.shuffle(protocols)
        self.world.start(ClassicMember(self.world, group, name, topics, instance, tuple(protocols)))

    def _member(self, *, static: bool = False) -> Member | None:
        chosen = [each for each in self.world.members if each.alive and (not static or each.instance_id)]
        return self.random.choice(chosen) if chosen else None

    def leave(self) -> None:
        if member := self._member():
            member.leaving = True

    def crash_member(self) -> None:
        if member := self._member():
            member.crash()

    def freeze(self) -> None:
        if member := self._member():
            member.freeze(self.random.randrange(500, 40_000))

    def restart_static(self) -> None:
        """A new process with the instance id of one that has just ended, or, in a classic group, lives."""
        member = self._member(static=True)
        if member is None:
            return
        for each in self.world.living(member.group):
            if each.instance_id == member.instance_id:
                if isinstance(each, ConsumerMember) and self.world.chance(600):
                    each.leaving = each.comes_back = True
                elif isinstance(each, ConsumerMember) or self.world.chance(700):
                    each.crash()
        self._start(member.group, member.instance_id, member.topics)

    def remove_static(self) -> None:
        """An administrator removes a static member by its instance id."""
        member = self._member(static=True)
        if member is None:
            return
        group, instance = member.group, member.instance_id

        def ask(broker: Broker, tell: Tell) -> None:
            for each in self.world.living(group):
                if each.instance_id == instance:
                    each.doubt()
            leaving = (ev.LeavingMember("", instance),)
            broker.manager.handle(group, lambda token: ev.LeaveGroup(token, 5, leaving), tell)

        self._at_coordinator(group, lambda broker: self.world.send(broker, group, ask))

    # -- brokers and the log

    def move(self) -> None:
        number = self.random.randrange(self.world.cluster.partition_count)
        alive = [index for index, broker in enumerate(self.world.cluster.brokers) if broker.alive]
        if alive and self.world.cluster.leaders[number] >= 0:
            self.world.cluster.lead(number, self.random.choice(alive))

    def crash_broker(self) -> None:
        cluster, scheduler = self.world.cluster, self.world.scheduler
        index = self.random.randrange(len(cluster.brokers))
        if not cluster.brokers[index].alive:
            return
        cluster.crash(index)
        scheduler.add(self.random.randrange(200, 2000), cluster.take_over)
        back_ms = self.random.randrange(100, 6000)
        scheduler.add(back_ms, lambda: cluster.restart(index))
        scheduler.add(back_ms + 500, cluster.take_over)

    def trouble(self) -> None:
        """For some seconds appends fail, are refused or take long, loads fail, answers are lost."""
        if self._calm:
            return
        trouble = self.world.log.trouble
        for name in Trouble.__slots__:
            if self.world.chance(400):
                setattr(trouble, name, self.random.choice((20, 100, 300)))
        self.world.loses_answers = self.random.choice((0, 30, 150))
        self.world.scheduler.add(self.random.randrange(500, 5000), self._no_trouble)

    def _no_trouble(self) -> None:
        for name in Trouble.__slots__:
            setattr(self.world.log.trouble, name, 0)
        self.world.loses_answers = 0
        self.world.cluster.take_over()

    def check_log(self) -> None:
        """Live state equals replayed state wherever nothing is on its way."""
        for number, shard in self.world.cluster.active():
            if not self.world.log.partitions[number].undecided:
                self.world.counts["replayed groups"] += check_replayed(shard, self.world.log.stored(number))
                self.world.counts["replays"] += 1

    # -- offsets

    def _cells(self) -> list[Cell]:
        cells = [(topic, number) for topic, count in TOPICS.items() for number in range(count)]
        return self.world.some(cells)

    def _any_group(self) -> str:
        return self.random.choice((*GROUPS, SIMPLE))

    def _at_coordinator(self, group: str, process: Callable[[Broker], object]) -> None:
        broker = self.world.cluster.coordinator(group)
        if broker is not None:
            self.world.scheduler.spawn(process(broker))

    def simple_commit(self) -> None:
        """Of somebody without a group membership: refused where there are members."""
        group = self.random.choice((SIMPLE, SIMPLE, self._any_group()))
        cells = self._cells()
        self._at_coordinator(group, lambda broker: self.world.commit(group, cells, broker, Committer()))

    def fetch(self) -> None:
        group, cells, stable = self._any_group(), self._cells(), self.world.chance(300)
        self._at_coordinator(group, lambda broker: self.world.fetch(group, cells, broker, stable=stable))

    def transaction(self) -> None:
        group, cells, world = self._any_group(), self._cells(), self.world
        self._producers += 1
        producer = Producer(self._producers, 0)

        async def process(broker: Broker) -> None:
            steps = []
            reply = await world.commit(group, cells, broker, Committer(), producer, steps)
            await Pause(self.random.randrange(0, 8000))
            commit = isinstance(reply.told, list) and world.chance(600)
            await world.end_transaction(group, producer, steps, commit)

        self._at_coordinator(group, process)

    def delete_offsets(self) -> None:
        group, cells = self._any_group(), self._cells()
        self._at_coordinator(group, lambda broker: self.world.delete_offsets(group, cells, broker))

    def delete_group(self) -> None:
        group = self._any_group()
        self._at_coordinator(group, lambda broker: self.world.delete_group(group, broker))

    def delete_topic(self) -> None:
        if alive := [broker for broker in self.world.cluster.brokers if broker.alive]:
            self.world.delete_topic("c", self.random.choice(alive))

    def expire(self) -> None:
        if alive := [broker for broker in self.world.cluster.brokers if broker.alive]:
            self.world.expire(self.random.choice(alive))

    def look(self) -> None:
        """What an administrator sees: each group once, no member twice."""
        for _, shard in self.world.cluster.active():
            for group in shard.groups.values():
                assert len(set(group.static_ids.values())) == len(group.static_ids)
        for group in GROUPS:
            if shown := self._shown(group):
                assert len(shown[1]) == len(set(shown[1])), f"{group} shows a member twice"

    # -- the end

    def settle(self) -> None:
        """Calm: the groups come to rest with everybody who lives, and everything is owned."""
        world = self.world
        self._calm = True
        self._no_trouble()
        for member in world.members:
            member.frozen_until_ms = min(member.frozen_until_ms, world.now_ms)
        for index, broker in enumerate(world.cluster.brokers):
            if not broker.alive:
                world.scheduler.run_for(7000)
                assert world.cluster.brokers[index].alive, "it comes back"
        world.cluster.take_over()
        world.scheduler.run_for(CALM_MS)
        for member in world.members:  # a leader that died may have left something out for a moment
            member.rejoins = True
        world.scheduler.run_for(CALM_MS // 2)
        for group in GROUPS:
            self._check_rest(group)
        self.check_log()
        for group, cell in list(world.model.histories):
            self._at_coordinator(group, lambda broker, g=group, c=cell: world.fetch(g, [c], broker))
        world.scheduler.run_for(1000)
        world.cluster.close()

    def _shown(self, group: str) -> tuple[str, list[str]] | None:
        """State and member ids as an administrator sees them; None while nobody can tell."""
        cluster = self.world.cluster
        broker = cluster.coordinator(group)
        if broker is None or broker.runtime.state(cluster.partition_of(group)) is not State.ACTIVE:
            return None
        newer = broker.manager.consumer_describe(group)
        if newer.error_code == 0:
            return newer.group_state, sorted(member.member_id for member in newer.members)
        described = broker.manager.describe(group, 5)
        return described.group_state, sorted(member.member_id for member in described.members)

    def _check_rest(self, group: str) -> None:
        living, shown = self.world.living(group), self._shown(group)
        assert shown is not None, "somebody serves it"
        state, members = shown
        assert members == sorted(member.member_id for member in living), f"{group} shows {members}"
        assert len(living) <= self.limit, f"{group} is larger than its limit"
        assert all(member.stable and member.healthy for member in living), [str(each) for each in living]
        if living:
            topics = dict.fromkeys(topic for member in living for topic in member.topics)
            wanted = [(topic, number) for topic in topics for number in range(TOPICS[topic])]
            owned = [place for member in living for place in member.owned]
            assert sorted(owned) == sorted(wanted), f"{group} owns {sorted(owned)}"
            assert state == "Stable", f"{group} is {state}"
