"""Controllers of several brokers: elections, fences, sessions, failures, and what they are told."""

from __future__ import annotations

import asyncio

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.controller.cluster_controller import FAILURE_PAUSE_S
from replication.controller.cluster_state import TopicPartition
from replication.controller.events import NotController
from replication.controller.office import OfficeSettings
from replication.controller.outcomes import NewTopic
from replication.metadata import controller_payloads, paths, payloads
from replication.metadata.configs import ConfigResource, ConfigType
from replication.metadata.memory_store import MemoryStore
from replication.metadata.store import Create, Put, StoreFailed
from tests.support.virtual_loop import run
from tests.unit.replication.controller.world import LISTENER, World

T0 = TopicPartition("t", 0)


def story(test=None, **options):
    """A test that gets a world of three brokers which has started."""

    def decorate(inner):
        def run_it():
            async def main():
                world = World(1, **options)
                await world.start()
                await world.active()
                await inner(world)
                await world.stop()
                assert world.history.broken == []

            run(main())

        run_it.__name__ = inner.__name__
        return run_it

    return decorate if test is None else decorate(test)


async def create(world, *replicas: tuple[int, ...]) -> None:
    host = await world.active()
    topic = NewTopic("t", assignments=tuple(enumerate(replicas)))
    (outcome,) = await host.admin.create_topics([topic], timeout_ms=1000)
    assert outcome.error is ErrorCode.NONE


@story
async def test_one_broker_is_the_controller_and_the_others_say_that_they_are_not(world):
    host = await world.active()
    assert world.tree.nodes[paths.CONTROLLER_EPOCH].value == b"1"
    assert [other.controller.is_active for other in world.hosts.values()].count(True) == 1
    for other in world.hosts.values():
        if other is not host:
            assert other.controller.epoch == -1
            assert other.controller.endpoint_of(1, LISTENER) is None
            with pytest.raises(NotController):
                await other.controller.ask("anything", lambda reign: asyncio.sleep(0))
    assert host.controller.epoch == 1
    assert host.controller.endpoint_of(2, LISTENER).host == "host2"
    assert host.controller.endpoint_of(9, LISTENER) is None


@story
async def test_the_death_of_the_controller_brings_another_one_that_finishes(world):
    await create(world, (1, 2, 3), (2, 3, 1), (3, 1, 2))
    first = await world.active()
    await first.kill()
    second = await world.active()
    assert second is not first
    assert second.controller.epoch == 2
    for index in range(3):
        state = world.state_of("t", index)
        assert first.id not in (state.leader, *state.isr)


@story
async def test_a_creation_of_which_only_the_topic_was_written_is_seen(world):
    setup = MemoryStore(world.tree)
    await setup.open()
    topic = payloads.TopicPayload(b"T" * 16, {0: (2, 1), 1: (3, 2)}, {}, {})
    await setup.create(paths.topic("t"), payloads.encode_topic(topic))
    await world.active()
    await asyncio.sleep(0.1)
    assert world.state_of("t", 0).leader == 2
    assert world.hosts[1].holder.current.topics["t"].partitions[1].leader == 3
    grown = payloads.TopicPayload(b"T" * 16, {**topic.assignment, 2: (1, 2)}, {}, {})
    await setup.put(paths.topic("t"), payloads.encode_topic(grown))
    await asyncio.sleep(0.1)
    assert world.state_of("t", 2).leader == 1


@story
async def test_the_expired_session_of_the_controller_ends_its_time_before_anything_else(world):
    await create(world, (1, 2, 3))
    host = await world.active()
    asked = asyncio.ensure_future(host.controller.ask("waits", lambda reign: asyncio.sleep(0)))
    await asyncio.sleep(0)
    host.store.expire()
    assert not host.controller.is_active
    with pytest.raises(NotController):
        await asked
    await host.store.open()
    await host.register()
    again = await world.active()
    assert again.controller.epoch == 2
    assert [h.controller.is_active for h in world.hosts.values()].count(True) == 1


@story
async def test_a_controller_that_does_not_know_yet_that_it_is_none_writes_nothing(world):
    """Its session has ended, another broker was elected, and the news has not come."""
    await create(world, (1, 2, 3))
    zombie = await world.active()
    zombie.store.listeners, listeners = type(zombie.store.listeners)(), zombie.store.listeners
    ended, zombie.store.session_id = zombie.store.session_id, 10_000
    world.tree.end_session(ended)
    successor = await world.active()
    assert successor is not zombie
    assert zombie.controller.is_active
    before = dict(world.tree.nodes)
    known = zombie.hosted.get(T0) or next(h.hosted[T0] for h in world.hosts.values() if T0 in h.hosted)
    with pytest.raises(NotController):
        await zombie.controller.ask("elect", lambda reign: reign.shutdowns.shut_down(known.leader, -1))
    assert world.tree.nodes == before
    assert not zombie.controller.is_active
    zombie.store.listeners = listeners


@story
async def test_what_waits_for_the_connection_is_not_written_under_the_next_session(world):
    """With nobody elected since, the fence alone would let it pass."""
    await create(world, (1, 2, 3))
    host = await world.active()
    for other in world.hosts.values():
        if other is not host:
            await other.kill()
    await asyncio.sleep(0.5)
    host.store.suspend()
    late = asyncio.ensure_future(
        host.controller.ask(
            "write", lambda reign: reign.office.ledger.write([Create("/consumers/late", b"")])
        )
    )
    await asyncio.sleep(0.5)
    host.store.expire()
    await host.store.open()
    await asyncio.sleep(1)
    with pytest.raises(NotController):
        await late
    assert "/consumers/late" not in world.tree.nodes


@story
async def test_out_of_contact_for_a_session_it_refuses_instead_of_keeping_people_waiting(world):
    host = await world.active()
    host.store.contact_age_ms = lambda: host.store.session_timeout_ms + 1
    with pytest.raises(NotController):
        await host.controller.ask("anything", lambda reign: asyncio.sleep(0))
    host.store.contact_age_ms = lambda: host.store.session_timeout_ms
    assert await host.controller.ask("anything", lambda reign: asyncio.sleep(0, "done")) == "done"


@story
async def test_a_failure_ends_the_epoch_and_not_the_broker(world):
    await create(world, (1, 2, 3))
    host = await world.active()

    async def fail(reign):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await host.controller.ask("breaks", fail)
    assert not host.controller.is_active
    await asyncio.sleep(FAILURE_PAUSE_S + 0.1)
    assert (await world.active()).controller.epoch == 2


@story(brokers=1)
async def test_what_the_store_refuses_ends_the_epoch_and_the_office_is_given_up_as_soon_as_it_can_be(world):
    host = await world.active()
    multi, refused = host.store.multi, []

    async def full(operations):
        refused.append(operations)
        raise StoreFailed("/", "the disk is full")

    host.store.multi = full
    topics = [NewTopic("t", assignments=((0, (1,)),))]
    with pytest.raises(StoreFailed):
        await host.admin.create_topics(topics, timeout_ms=1000)
    assert not host.controller.is_active
    await asyncio.sleep(5 * FAILURE_PAUSE_S)
    assert len(refused) > 2
    assert world.tree.nodes[paths.CONTROLLER].value
    host.store.multi = multi
    await asyncio.sleep(3 * FAILURE_PAUSE_S)
    assert host.controller.epoch == 2
    (outcome,) = await host.admin.create_topics(topics, timeout_ms=1000)
    assert outcome.error is ErrorCode.NONE


@story(brokers=1)
async def test_a_broker_alone_stands_again_after_a_failure(world):
    host = await world.active()

    async def fail(reign):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await host.controller.ask("breaks", fail)
    await asyncio.sleep(FAILURE_PAUSE_S + 0.1)
    assert host.controller.epoch == 2


@story
async def test_a_connection_that_comes_back_finds_what_happened_meanwhile(world):
    host = await world.active()
    host.store.suspend()
    setup = MemoryStore(world.tree)
    await setup.open()
    topic = payloads.TopicPayload(b"T" * 16, {0: (2, 1)}, {}, {})
    await setup.create(paths.topic("t"), payloads.encode_topic(topic))
    await asyncio.sleep(1)
    assert not any("/state" in path for path in world.tree.nodes)
    host.store.resume()
    await asyncio.sleep(0.5)
    assert host.controller.is_active
    assert host.controller.epoch == 1
    assert world.state_of("t").leader == 2


@story(settings={"imbalance_percent": 10, "imbalance_check_interval_ms": 60_000})
async def test_leaders_return_five_seconds_after_the_election_and_then_at_times(world):
    await create(world, (1, 2, 3))
    leader = world.hosts[1]
    controller = await world.active()
    if controller is leader:
        await controller.expire()  # another one shall count the seconds
        controller = await world.active()
    await asyncio.sleep(10)
    await leader.kill()
    await asyncio.sleep(1)
    await leader.start()
    await asyncio.sleep(2)
    assert world.state_of("t").leader != 1
    await asyncio.sleep(65)
    assert world.state_of("t").leader == 1


@story(settings={"auto_balance": False})
async def test_leaders_stay_where_balancing_is_off(world):
    await create(world, (1, 2, 3))
    await world.hosts[1].kill()
    await asyncio.sleep(1)
    await world.hosts[1].start()
    await asyncio.sleep(400)
    assert world.state_of("t").leader != 1
    assert 1 in world.state_of("t").isr


async def leaderless(world) -> None:
    """A partition of which one replica is alive and not in sync."""
    await create(world, (1, 2))
    await world.hosts[2].kill()
    await asyncio.sleep(0.3)
    await world.hosts[1].kill()
    await asyncio.sleep(0.3)
    await world.hosts[2].start()
    await asyncio.sleep(0.3)
    assert world.state_of("t").leader == -1
    assert world.state_of("t").isr == (1,)


@story
async def test_unclean_leaders_are_elected_when_the_topic_comes_to_allow_them(world):
    await leaderless(world)
    host = await world.active()
    topic, values = ConfigResource(ConfigType.TOPIC, "t"), {"unclean.leader.election.enable": "true"}
    await host.store.multi([Create(topic.path, payloads.encode_config(values))])
    before = host.holder.current
    changed = before.with_configs({topic: values, ConfigResource(ConfigType.BROKER, "1"): values})
    host.controller.follow(before, before)
    assert not host.controller._events
    host.controller.follow(before, changed)
    host.controller.follow(changed, changed.with_configs({}))
    await asyncio.sleep(0.01)
    state = world.state_of("t")
    assert (state.leader, state.isr, state.recovering) == (2, (2,), True)
    await asyncio.sleep(1)
    assert not world.state_of("t").recovering


@story
async def test_unclean_leaders_are_elected_when_the_brokers_come_to_allow_them(world):
    await leaderless(world)
    host = await world.active()
    host.controller.change_settings(OfficeSettings(host.id, LISTENER, unclean=True))
    await asyncio.sleep(0.01)
    assert world.state_of("t").leader == 2


@story
async def test_legacy_tools_are_heard(world):
    await create(world, (1, 2), (2, 1))
    setup = MemoryStore(world.tree)
    await setup.open()
    value = controller_payloads.encode_reassignment({("t", 0): (3,)})
    await setup.create(paths.REASSIGN_PARTITIONS, value)
    await asyncio.sleep(1)
    assert world.topic_of("t").assignment[0] == (3,)
    assert paths.REASSIGN_PARTITIONS not in world.tree.nodes
    host = await world.active()
    await host.admin.controlled_shutdown(2, -1)
    assert world.state_of("t", 1).leader == 1
    host.controller._reign.state.shutting_down.clear()
    await asyncio.sleep(1)
    await setup.create(paths.PREFERRED_ELECTION, controller_payloads.encode_partitions([("t", 1)]))
    await asyncio.sleep(0.5)
    assert paths.PREFERRED_ELECTION not in world.tree.nodes
    assert world.state_of("t", 1).leader == 2


@story
async def test_notes_of_brokers_are_heard(world):
    await create(world, (1, 2))
    host = world.hosts[1]
    host.failed_dirs[T0] = None
    note = controller_payloads.encode_log_dir_event(1)
    await host.store.create_sequential(f"{paths.LOG_DIR_EVENTS}/log_dir_event_", note)
    await asyncio.sleep(0.5)
    assert world.state_of("t").leader == 2
    assert world.state_of("t").isr == (2,)
    note = controller_payloads.encode_partitions([T0])
    await host.store.create_sequential(f"{paths.ISR_CHANGES}/isr_change_", note)
    await asyncio.sleep(0.5)
    folders = (paths.LOG_DIR_EVENTS, paths.ISR_CHANGES)
    assert [await host.store.children(folder) for folder in folders] == [[], []]


@story
async def test_other_addresses_of_a_broker_reach_the_others(world):
    host = await world.active()
    moved = payloads.BrokerPayload({LISTENER: ("elsewhere", 1)}, {LISTENER: LISTENER}, None, 0)
    before = len(world.requests)
    await world.hosts[2].store.multi([Put(paths.broker(2), payloads.encode_broker(moved))])
    await asyncio.sleep(0.2)
    assert host.controller.endpoint_of(2, LISTENER).host == "elsewhere"
    told = [request for _, request in world.requests[before:]]
    assert [type(request) for request in told] == [m.UpdateMetadataRequest] * 3


@story
async def test_a_closed_controller_refuses_what_is_under_way(world):
    host = await world.active()
    stuck = asyncio.ensure_future(host.controller.ask("long", lambda reign: asyncio.sleep(1000)))
    waiting = asyncio.ensure_future(host.controller.ask("next", lambda reign: asyncio.sleep(0)))
    await asyncio.sleep(0.1)
    await host.controller.close()
    for asked in (stuck, waiting):
        with pytest.raises(NotController):
            await asked
