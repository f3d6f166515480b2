"""A random life of a cluster's controllers, and what must be true when it has calmed down.

Brokers die (some of them in the middle of a write), return, bounce, lose their sessions; topics are created,
grown and deleted, partitions reassigned, reassignments replaced and cancelled, leaders elected; requests and
answers get lost. Then all faults stop.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from replication.controller.cluster_state import TopicPartition
from replication.controller.leader_requests import ElectionType
from replication.controller.outcomes import MorePartitions, NewTopic, TopicToDelete
from replication.metadata import controller_payloads, paths
from replication.metadata.notify import events_of
from replication.metadata.store import Delete, StoreError
from tests.unit.replication.controller.world import Host, World, registered

TOPICS = ("a", "b", "c", "d")


class Life:
    """One seed."""

    def __init__(self, seed: int) -> None:
        self.world = World(
            seed,
            brokers=4,
            lossy=0.02,
            settings={"imbalance_percent": 0, "imbalance_check_interval_ms": 20_000},
        )
        self.random = self.world.random
        self.done: Counter[str] = Counter()
        self.asked: Host | None = None

    async def run(self, steps: int) -> None:
        await self.world.start()
        for _ in range(steps):
            await asyncio.sleep(self.random.expovariate(1 / 0.4))
            await self.step()
        await self.calm_down()
        self.check()
        await self.world.stop()

    async def step(self) -> None:
        kinds = (
            *(self.create, self.grow, self.delete),
            *(self.reassign,) * 3,
            *(self.cancel, self.elect),
            *(self.kill, self.revive, self.bounce, self.expire, self.lose_the_store, self.lose_answers),
            *(self.shut_down, self.fail_a_directory, self.let_live_a_zombie, self.depose),
            *(self.crash_in_a_write,) * 3,
        )
        for _ in range(100):  # what is not possible now (nobody is dead, say) is drawn again
            kind = self.random.choice(kinds)
            if await kind():
                self.done[kind.__name__] += 1
                return

    # What clients ask for; the answer is waited for a short time only

    async def ask(self, request) -> bool:
        host = self.asked or self.world.controller()
        if host is None:
            return False
        task = asyncio.get_running_loop().create_task(request(host))
        await asyncio.wait([task], timeout=0.5)
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
        return True

    async def create(self) -> bool:
        name = self.random.choice(TOPICS)
        topic = NewTopic(name, self.random.randint(1, 3), self.random.randint(1, 3))
        return await self.ask(lambda host: host.admin.create_topics([topic], timeout_ms=100))

    async def grow(self) -> bool:
        more = MorePartitions(self.random.choice(TOPICS), self.random.randint(2, 5))
        return await self.ask(lambda host: host.admin.create_partitions([more], timeout_ms=100))

    async def delete(self) -> bool:
        topic = TopicToDelete(self.random.choice(TOPICS))
        return await self.ask(lambda host: host.admin.delete_topics([topic], timeout_ms=100))

    def any_partition(self) -> TopicPartition:
        return TopicPartition(self.random.choice(TOPICS), self.random.randint(0, 2))

    async def reassign(self) -> bool:
        target = tuple(self.random.sample(range(1, 5), self.random.randint(1, 3)))
        wanted = {self.any_partition(): target}
        return await self.ask(lambda host: host.admin.alter_reassignments(wanted))

    async def cancel(self) -> bool:
        wanted = {self.any_partition(): None}
        return await self.ask(lambda host: host.admin.alter_reassignments(wanted))

    async def elect(self) -> bool:
        return await self.ask(
            lambda host: host.admin.elect_leaders(None, ElectionType.PREFERRED, timeout_ms=100)
        )

    # What happens to brokers

    def some(self, alive: bool) -> Host | None:
        hosts = [host for host in self.world.hosts.values() if host.alive is alive]
        return self.random.choice(hosts) if hosts else None

    async def kill(self) -> bool:
        host = self.some(alive=True)
        if host is None:
            return False
        await host.kill()
        return True

    async def revive(self) -> bool:
        host = self.some(alive=False)
        if host is None:
            return False
        host.end_session()
        await host.start()
        return True

    async def bounce(self) -> bool:
        """Dead and back before anybody has looked."""
        host = self.some(alive=True)
        if host is None:
            return False
        await host.kill()
        await host.start()
        return True

    async def expire(self) -> bool:
        host = self.some(alive=True)
        if host is None:
            return False
        await host.expire()
        return True

    async def lose_the_store(self) -> bool:
        """A broker's connection to the tree is cut for a while, and its session lives on."""
        host = self.some(alive=True)
        if host is None:
            return False
        store = host.store
        store.suspend()
        await asyncio.sleep(self.random.random() * 2)
        if host.store is store and host.alive:
            store.resume()
        return True

    async def lose_answers(self) -> bool:
        """The next writes of the controller are done, or not, and it does not hear which."""
        host = self.world.controller()
        if host is None:
            return False
        host.store.answers_lost = self.random.randint(1, 3)
        host.store.lost_ones_apply = self.random.random() < 0.5
        await self.random.choice((self.create, self.delete, self.reassign, self.grow))()
        host.store.answers_lost = 0
        return True

    async def shut_down(self) -> bool:
        """A clean stop, and sometimes none after all."""
        host, controller = self.some(alive=True), self.world.controller()
        if host is None or controller is None:
            return False
        await self.ask(lambda active: active.admin.controlled_shutdown(host.id, host.epoch))
        if self.random.random() < 0.8:
            await host.kill()
        else:
            await host.expire()
        return True

    async def fail_a_directory(self) -> bool:
        """A broker cannot serve one of its replicas until it is started anew."""
        host = self.some(alive=True)
        if host is None or not host.hosted:
            return False
        partition = self.random.choice(list(host.hosted))
        host.failed_dirs[partition] = None
        del host.hosted[partition]
        try:
            note = controller_payloads.encode_log_dir_event(host.id)
            await host.store.create_sequential(f"{paths.LOG_DIR_EVENTS}/log_dir_event_", note)
        except StoreError:
            return True
        return True

    async def let_live_a_zombie(self) -> bool:
        """The controller's session is over, and for a second it does not hear of it."""
        host = self.world.controller()
        if host is None:
            return False
        store = host.store
        store.suspend()
        self.world.tree.end_session(store.session_id)
        await self.random.choice((self.create, self.delete, self.reassign, self.kill_another))()
        await asyncio.sleep(self.random.random())
        if host.store is store and host.alive:
            await host.expire()
        return True

    async def depose(self) -> bool:
        """Somebody takes /controller away, another broker is elected, and the first one hears late of it."""
        host = self.world.controller()
        if host is None:
            return False
        store = host.store
        store.unheard = []
        self.world.tree.apply([Delete(paths.CONTROLLER)], 0)
        self.world.tree.tell(events_of([Delete(paths.CONTROLLER)]))
        await asyncio.sleep(0.1)
        self.asked = host
        await self.random.choice((self.create, self.delete, self.reassign, self.reassign, self.cancel))()
        self.asked = None
        store.catch_up()
        return True

    async def crash_in_a_write(self) -> bool:
        """The controller's host dies between two writes, or with one whose answer never comes."""
        host = self.world.controller()
        if host is None:
            return False
        host.store.writes_until_crash = self.random.randint(0, 6)
        host.store.crash_applies = self.random.random() < 0.5
        await self.random.choice((self.create, self.delete, self.reassign, self.kill_another, self.grow))()
        await asyncio.sleep(0.3)
        crashed = host.store.crashed.is_set()
        host.store.writes_until_crash = None
        if crashed:
            await host.kill(session_ends=False)
            await asyncio.sleep(self.random.random())
            host.end_session()
        return crashed

    async def kill_another(self) -> bool:
        active = self.world.controller()
        others = [host for host in self.world.hosts.values() if host.alive and host is not active]
        if others:
            await self.random.choice(others).kill()
        return bool(others)

    # The end

    async def calm_down(self) -> None:
        self.world.lossy = 0.0
        for host in self.world.hosts.values():
            if host.failed_dirs:
                await host.kill()
            if not host.alive:
                host.end_session()
                await host.start()
        await asyncio.sleep(120)

    def check(self) -> None:
        assert self.world.history.broken == []
        nodes = self.world.tree.nodes
        active = [host for host in self.world.hosts.values() if host.controller.is_active]
        assert [host.store.session_id for host in active] == [nodes[paths.CONTROLLER].owner]
        assert sorted(registered(self.world)) == [1, 2, 3, 4]
        marked = [path for path in nodes if path.startswith(f"{paths.DELETE_TOPICS}/")]
        assert marked == []
        names = [
            path.split("/")[3] for path in nodes if path.count("/") == 3 and path.startswith(paths.TOPICS)
        ]
        expected: dict[int, dict[TopicPartition, bytes]] = {host: {} for host in self.world.hosts}
        for name in names:
            topic = self.world.topic_of(name)
            assert topic.adding == topic.removing == {}
            for index, replicas in topic.assignment.items():
                state = self.world.state_of(name, index)
                assert sorted(state.isr) == sorted(replicas), (name, index, state, replicas)
                assert state.leader == replicas[0], (name, index, state, replicas)
                for broker in replicas:
                    expected[broker][TopicPartition(name, index)] = topic.topic_id
        for host in self.world.hosts.values():
            hosted = {partition: known.topic_id for partition, known in host.hosted.items()}
            assert hosted == expected[host.id], (host.id, hosted, expected[host.id])
            self.check_metadata(host, names)

    def check_metadata(self, host: Host, names: list[str]) -> None:
        image = host.holder.current
        assert sorted(image.topics) == sorted(names)
        assert sorted(image.brokers) == [1, 2, 3, 4]
        for name in names:
            for partition in image.topics[name].partitions:
                state = self.world.state_of(name, partition.index)
                assert (partition.leader, partition.leader_epoch) == (state.leader, state.leader_epoch)
                assert partition.isr == state.isr
