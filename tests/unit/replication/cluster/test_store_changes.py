"""Configurations and features of the store become those of the image."""

from __future__ import annotations

import asyncio

from replication.cluster import store_changes
from replication.cluster.store_changes import NOTE_LIFE_MS, StoreChanges
from replication.metadata import controller_payloads, paths, payloads
from replication.metadata.configs import ConfigResource, ConfigType
from replication.metadata.features import GROUP_VERSION, SHARE_VERSION, encode_features, supported_levels
from replication.metadata.image import ImageHolder
from replication.metadata.memory_store import MemoryStore, MemoryTree
from replication.metadata.store import ConnectionLost, StoreFailed, ensure_path
from tests.unit.replication.cluster.stage import until

TOPIC = ConfigResource(ConfigType.TOPIC, "t")
PREFIX = f"{paths.CONFIG_CHANGES}/config_change_"


class Follower:
    """A broker that follows a store, in which others write."""

    def __init__(self):
        self.now_ms = 1000
        self.store = MemoryStore(MemoryTree())
        self.holder = ImageHolder()
        self.changes = StoreChanges(self.store, self.holder, lambda: self.now_ms)

    async def begin(self):
        await self.store.open()
        for root in paths.ROOTS:
            await ensure_path(self.store, root)

    async def set(self, resource, **values):
        node = await self.store.get(resource.path)
        value = payloads.encode_config(values)
        if node is None:
            await self.store.create(resource.path, value)
        else:
            await self.store.put(resource.path, value)

    async def note(self, resource, value=None):
        entity = resource.path.removeprefix("/config/")
        return await self.store.create_sequential(
            PREFIX, value or controller_payloads.encode_config_change(entity)
        )

    def value(self, resource=TOPIC):
        return dict(self.holder.current.overrides(resource))


def run(story):
    async def main():
        follower = Follower()
        await follower.begin()
        task = None

        async def start():
            nonlocal task
            await follower.changes.load()
            task = asyncio.get_running_loop().create_task(follower.changes.run())

        await story(follower, start)
        follower.changes.close()
        if task is not None:
            task.cancel()

    asyncio.run(main())


def test_what_is_stored_at_the_start_is_there_and_later_changes_come_by_notes():
    async def story(broker, start):
        await broker.set(TOPIC, **{"retention.ms": "1"})
        await broker.note(TOPIC)
        await start()
        assert broker.value() == {"retention.ms": "1"}
        await broker.set(TOPIC, **{"retention.ms": "2"})
        await broker.note(TOPIC)
        await until(lambda: broker.value() == {"retention.ms": "2"})
        default = ConfigResource(ConfigType.BROKER, "")
        await broker.set(default, **{"log.cleaner.threads": "2"})
        await broker.note(default)
        await until(lambda: broker.value(default) == {"log.cleaner.threads": "2"})
        await broker.store.delete(TOPIC.path)
        await broker.note(TOPIC)
        await until(lambda: broker.value() == {})

    run(story)


def test_notes_of_the_old_form_are_read_and_those_that_say_nothing_are_passed_over(caplog):
    async def story(broker, start):
        await start()
        await broker.set(TOPIC, **{"retention.ms": "7"})
        await broker.note(TOPIC, b"no json")
        await broker.note(TOPIC, b'{"version":1,"entity_type":"topics","entity_name":"t"}')
        await until(lambda: broker.value() == {"retention.ms": "7"})
        assert "not understood" in caplog.text

    run(story)


def test_a_topics_configuration_is_read_before_it_is_hosted():
    async def story(broker, start):
        await start()
        await broker.set(TOPIC, **{"cleanup.policy": "compact"})
        await broker.changes.read_topics(["t", "unknown"])
        assert broker.value() == {"cleanup.policy": "compact"}

    run(story)


def test_a_topics_configuration_is_read_in_the_next_session_where_this_one_ends():
    async def story(broker, start):
        await start()
        await broker.set(TOPIC, **{"cleanup.policy": "compact"})
        broker.store.suspend()
        reading = asyncio.ensure_future(broker.changes.read_topics(["t"]))
        await asyncio.sleep(0)
        broker.store.expire()
        await asyncio.sleep(0)
        assert not reading.done()
        await broker.store.open()
        await reading
        assert broker.value() == {"cleanup.policy": "compact"}

    run(story)


def test_features_follow_their_node():
    async def story(broker, start):
        await start()
        assert broker.holder.current.features.level(GROUP_VERSION) == 1
        await broker.store.create(paths.FEATURES, encode_features({GROUP_VERSION: 0}))
        await until(lambda: broker.holder.current.features.level(GROUP_VERSION) == 0)

    run(story)


def test_features_are_off_while_a_broker_is_registered_that_does_not_know_them(caplog):
    def node(features):
        return payloads.encode_broker(payloads.BrokerPayload({}, {}, None, 0, features))

    async def story(broker, start):
        def on():
            return broker.holder.current.features.level(GROUP_VERSION) == 1

        await broker.store.create(paths.broker(1), node(supported_levels()))
        await broker.store.create(paths.broker(3), node({}))
        await start()
        assert not on()
        await broker.store.delete(paths.broker(3))
        await until(on)
        await broker.store.create(paths.broker(3), b"{")
        await until(lambda: not on())
        assert "/brokers/ids/3" in caplog.text
        await broker.store.delete(paths.broker(3))
        await broker.store.create(paths.broker(3), node({GROUP_VERSION: 1}))
        await until(on)
        assert broker.holder.current.features.level(SHARE_VERSION) == 0

    run(story)


def test_old_notes_are_removed_a_quarter_of_an_hour_after_they_were_seen():
    async def story(broker, start):
        await broker.note(TOPIC)
        await start()
        broker.now_ms += NOTE_LIFE_MS
        kept = await broker.note(TOPIC)
        name = kept.rpartition("/")[2]
        gone = asyncio.Event()
        broker.store.watch(paths.CONFIG_CHANGES, lambda path, event: gone.set())
        await asyncio.wait_for(gone.wait(), 60)
        assert await broker.store.children(paths.CONFIG_CHANGES) == [name]

    run(story)


def test_what_cannot_be_read_now_is_read_later(monkeypatch):
    monkeypatch.setattr(store_changes, "RETRY_S", 0)

    async def story(broker, start):
        await start()
        children, failures = broker.store.children, [ConnectionLost("/"), OSError]

        async def failing(path):
            if len(failures) == 2:
                raise failures.pop()("/")
            return await children(path)

        failures[1] = lambda path: store_changes.StoreError(path, "the disk is full")
        monkeypatch.setattr(broker.store, "children", failing)
        await broker.set(TOPIC, **{"retention.ms": "3"})
        await broker.note(TOPIC)
        await until(lambda: broker.value() == {"retention.ms": "3"})

    run(story)


def test_a_damaged_configuration_leaves_what_is_known_and_the_others_go_on():
    async def story(broker, start):
        other = ConfigResource(ConfigType.TOPIC, "u")
        await broker.set(TOPIC, **{"retention.ms": "1"})
        await start()
        await broker.store.put(TOPIC.path, b"no json")
        await broker.note(TOPIC)
        await broker.set(other, **{"retention.ms": "2"})
        await broker.note(other)
        await until(lambda: broker.value(other) == {"retention.ms": "2"})
        assert broker.value() == {"retention.ms": "1"}
        await broker.changes.read_topics(["t", "u"])
        assert broker.value() == {"retention.ms": "1"}

    run(story)


def test_a_topic_is_hosted_with_defaults_where_the_store_has_no_settings_to_give(monkeypatch):
    monkeypatch.setattr(store_changes, "RETRY_S", 0)

    async def story(broker, start):
        await start()
        await broker.set(TOPIC, **{"retention.ms": "1"})
        get = broker.store.get

        async def failing(path):
            monkeypatch.setattr(broker.store, "get", get)
            raise StoreFailed(path, "the disk is full")

        monkeypatch.setattr(broker.store, "get", failing)
        await broker.changes.read_topics(["t"])
        assert broker.value() == {}
        await until(lambda: broker.value() == {"retention.ms": "1"})

    run(story)


def test_reading_everything_does_not_undo_what_a_new_topic_has_brought(monkeypatch):
    async def story(broker, start):
        await start()
        subtree = broker.store.subtree

        async def slow(path):
            nodes = await subtree(path)
            if path == paths.CONFIG and TOPIC.path not in nodes:
                await broker.set(TOPIC, **{"retention.ms": "1"})
                await broker.changes.read_topics(["t"])
            return nodes

        monkeypatch.setattr(broker.store, "subtree", slow)
        broker.store.suspend()
        broker.store.resume()
        await until(lambda: broker.value() == {"retention.ms": "1"})
        await until(lambda: not broker.changes._woken.is_set())
        assert broker.value() == {"retention.ms": "1"}

    run(story)
