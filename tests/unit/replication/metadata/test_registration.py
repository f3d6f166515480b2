"""Registrations: who waits for whom, what stays and what changes."""

from __future__ import annotations

import asyncio
import json

import pytest

from replication.metadata import paths, registration
from replication.metadata.memory_store import MemoryStore, MemoryTree
from replication.metadata.payloads import BrokerPayload
from replication.metadata.registration import NOT_REGISTERED, Registration, RegistrationRefused
from replication.metadata.store import ConnectionLost, Create, SessionEvent

NODE = paths.broker(1)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(registration, "LOOK_AGAIN_S", 0.02)
    monkeypatch.setattr(registration, "PAUSE_FIRST_S", 0.01)


def payload(port=9092, rack=None):
    return BrokerPayload({"PLAINTEXT": ("host", port)}, {"PLAINTEXT": "PLAINTEXT"}, rack, 17)


def run(story, stores=2, timeout_ms=18_000):
    async def main():
        tree = MemoryTree()
        made = [MemoryStore(tree, timeout_ms) for _ in range(stores)]
        for store in made:
            await store.open()
        await story(*made)

    asyncio.run(main())


def test_the_node_is_kafkas_and_the_epoch_its_transaction():
    async def story(store):
        mine = Registration(store, 1, lambda: payload(rack="r"))
        epoch = await mine.register()
        node = await store.get(NODE)
        assert (mine.epoch, node.created_id, node.version) == (epoch, epoch, 1)
        assert node.owner == store.session_id
        assert json.loads(node.value) == {
            "version": 5,
            "host": "host",
            "port": 9092,
            "endpoints": ["PLAINTEXT://host:9092"],
            "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
            "jmx_port": -1,
            "timestamp": "17",
            "features": {},
            "rack": "r",
        }

    run(story, stores=1)


def test_a_restart_waits_until_the_session_before_is_over():
    async def story(killed, restarted):
        before = await Registration(killed, 1, payload).register()
        registering = asyncio.ensure_future(Registration(restarted, 1, payload).register())
        await asyncio.sleep(0.05)
        assert not registering.done()
        assert (await restarted.get(NODE)).owner == killed.session_id
        killed.expire()
        assert await registering > before
        assert (await restarted.get(NODE)).owner == restarted.session_id

    run(story)


def test_a_node_of_a_living_broker_is_left_alone_and_the_start_gives_up():
    async def story(other, mine):
        await Registration(other, 1, payload).register()
        with pytest.raises(RegistrationRefused, match=r"Broker id 1 could not .* 0\.2 s"):
            await Registration(mine, 1, payload).register()
        assert (await mine.get(NODE)).owner == other.session_id

    run(story, timeout_ms=100)


def test_an_address_of_another_broker_is_refused():
    async def story(other, mine):
        await Registration(other, 2, lambda: payload(9093)).register()
        await other.create(paths.broker(3), b"not JSON")
        with pytest.raises(RegistrationRefused, match=r"host:9093 in .* is registered by broker 2"):
            await Registration(mine, 1, lambda: payload(9093)).register()
        assert await mine.get(NODE) is None
        await Registration(mine, 1, payload).register()

    run(story)


def test_an_attempt_whose_answer_was_lost_is_recognised():
    class Lossy(MemoryStore):
        lost = 0

        async def multi(self, operations):
            results = await super().multi(operations)
            if isinstance(operations[0], Create) and not self.lost:
                self.lost += 1
                raise ConnectionLost(operations[0].path)
            return results

    async def main():
        store = Lossy()
        await store.open()
        epoch = await Registration(store, 1, payload).register()
        assert store.lost == 1
        assert (await store.get(NODE))[1:3] == (1, epoch)

    asyncio.run(main())


def test_after_an_expiry_the_broker_registers_anew_and_does_not_give_up():
    async def story(mine, other):
        own = Registration(mine, 1, payload)
        before = await own.register()
        mine.expire()
        taken = Registration(other, 1, payload)
        await taken.register()
        renewing = asyncio.ensure_future(own.renew())
        await asyncio.sleep(0.05)
        assert own.epoch == NOT_REGISTERED
        assert not renewing.done()
        mine.expire()  # the next session ends, too, before it came to anything
        await asyncio.sleep(0.05)
        assert not renewing.done()
        other.expire()
        assert await renewing > before
        assert own.epoch == (await mine.get(NODE)).created_id

    run(story)


def test_who_renews_at_the_same_time_gets_the_same_epoch():
    async def story(store):
        own = Registration(store, 1, payload)
        before = await own.register()
        store.expire()
        epochs = await asyncio.gather(own.renew(), own.renew(), own.renew())
        assert len(set(epochs)) == 1
        assert own.epoch == epochs[0] > before
        assert await own.renew() == own.epoch

    run(story, stores=1)


def test_a_node_of_an_own_earlier_session_is_removed():
    class Slow(MemoryStore):
        """Its server says that the session is over before it removes what belonged to it."""

        def expire(self):
            self.session_id = 0
            self._missed = []
            self.listeners.tell_session(SessionEvent.EXPIRED)

    async def main():
        store = Slow()
        await store.open()
        own = Registration(store, 1, payload)
        before = await own.register()
        store.expire()
        assert await own.renew() > before
        assert (await store.get(NODE)).owner == store.session_id

    asyncio.run(main())


def test_an_update_keeps_the_epoch():
    async def story(store):
        says = [payload()]
        own = Registration(store, 1, lambda: says[0])
        epoch = await own.register()
        says[0] = payload(9095)
        await own.update()
        node = await store.get(NODE)
        assert (node.created_id, node.version) == (epoch, 2)
        assert json.loads(node.value)["port"] == 9095

    run(story, stores=1)
