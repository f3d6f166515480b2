"""Brokers come, go, come back at once, move to other addresses, lose directories."""

from __future__ import annotations

from dataclasses import replace

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.controller.batches import ControlRequest
from replication.controller.cluster_state import TopicPartition
from replication.metadata import paths, payloads
from tests.unit.replication.controller.desk import LISTENER, T0, T1, Desk, story


@story
async def test_a_broker_that_goes_loses_leadership_and_membership_in_kafkas_order():
    at = await Desk.with_topics({"t": [(1, 2, 3), (2, 1, 3)]})
    await at.goes(1)
    assert at.leads("t", 0) == (2, 1, (2, 3))
    assert at.leads("t", 1) == (2, 1, (2, 3))
    told = at.told()
    assert told[:2] == ["LISR 2 t-0 leader 2/1 isr 2,3", "LISR 3 t-0 leader 2/1 isr 2,3"]
    assert "LISR 2 t-1 leader 2/1 isr 2,3" in told
    assert at.outbox.dropped == [1]


@story
async def test_a_broker_without_replicas_is_told_of_all_the_same():
    at = await Desk.with_topics({"t": [(1, 2)]})
    await at.goes(3)
    assert at.told() == ["UMR 1", "UMR 2"]


@story
async def test_the_last_member_in_sync_leads_again_when_it_is_back():
    at = await Desk.with_topics({"t": [(1, 2)]})
    await at.goes(2)
    await at.goes(1)
    assert at.leads() == (-1, 2, (1,))
    await at.comes(2)
    assert at.leads() == (-1, 2, (1,))
    await at.comes(1)
    assert at.leads() == (1, 3, (1,))


@story
async def test_a_broker_that_comes_hears_everything_and_the_others_of_it():
    at = await Desk.with_topics({"t": [(1, 2)], "u": [(1, 3)]})
    await at.goes(2)
    at.told()
    await at.comes(2)
    assert at.told() == [
        "UMR 1",
        "UMR 3",
        "UMR 2 t-0 leader 1/1, u-0 leader 1/0",
        "LISR 2 t-0 leader 1/1 isr 1",
        "UMR 1 t-0 leader 1/1",
        "UMR 2 t-0 leader 1/1",
        "UMR 3 t-0 leader 1/1",
    ]


@story
async def test_a_bounce_that_nobody_saw_is_a_failure_and_a_start():
    at = await Desk.with_topics({"t": [(1, 2)]})
    epoch = at.state.brokers[1].epoch
    await at.store.delete(paths.broker(1))
    await at.register(1)
    await at.reign.on_registrations()
    assert at.state.brokers[1].epoch > epoch
    assert at.leads() == (2, 1, (2,))
    told = at.told()
    assert told[0] == "LISR 2 t-0 leader 2/1 isr 2"
    assert "LISR 1 t-0 leader 2/1 isr 2" in told
    assert at.outbox.dropped == [1]


@story
async def test_a_bounced_broker_that_alone_is_in_sync_leads_again():
    at = await Desk.with_topics({"t": [(1,)]})
    await at.store.delete(paths.broker(1))
    await at.register(1)
    await at.reign.on_registrations()
    assert at.leads() == (1, 2, (1,))


@story
async def test_other_addresses_are_told_and_another_rack_alone_is_not():
    at = await Desk.with_topics({"t": [(1, 2)]})
    epoch = at.state.brokers[2].epoch
    moved = payloads.BrokerPayload({LISTENER: ("elsewhere", 1)}, {LISTENER: LISTENER}, None, 0)
    await at.store.put(paths.broker(2), payloads.encode_broker(moved))
    await at.reign.on_registrations()
    assert at.state.brokers[2].endpoints[LISTENER].host == "elsewhere"
    assert at.state.brokers[2].epoch == epoch
    assert at.told() == ["UMR 1", "UMR 2", "UMR 3"]
    racked = payloads.BrokerPayload({LISTENER: ("elsewhere", 1)}, {LISTENER: LISTENER}, "r", 0)
    await at.store.put(paths.broker(2), payloads.encode_broker(racked))
    await at.reign.on_registrations()
    assert at.told() == []
    cordoned = replace(racked, features={"group.version": 1}, cordoned=True)
    await at.store.put(paths.broker(2), payloads.encode_broker(cordoned))
    await at.reign.on_registrations()
    assert at.told() == []
    assert (at.state.brokers[2].cordoned, at.state.brokers[2].epoch) == (True, epoch)


@story
async def test_nothing_changed_does_nothing():
    at = await Desk.with_topics({"t": [(1, 2)]})
    await at.reign.on_registrations()
    assert at.told() == []


def answered(at: Desk, broker: int, errors) -> tuple[ControlRequest, m.LeaderAndIsrResponse]:
    kind = m.LeaderAndIsrResponse
    told = [kind.LeaderAndIsrPartitionError(partition_index=i, error_code=e) for i, e in errors.items()]
    response = kind(topics=[kind.LeaderAndIsrTopicError(topic_id=b"t" * 16, partition_errors=told)])
    return ControlRequest(broker, at.state.brokers[broker].epoch, None, 7), response


@story
async def test_a_replica_on_a_failed_directory_loses_leadership_and_the_broker_keeps_others():
    at = await Desk.with_topics({"t": [(1, 2), (1, 2)]})
    await at.reign.on_answer(*answered(at, 1, {0: ErrorCode.KAFKA_STORAGE_ERROR, 1: ErrorCode.NONE}))
    assert at.leads("t", 0) == (2, 1, (2,))
    assert at.leads("t", 1) == (1, 0, (1, 2))
    assert not at.state.is_online(1, T0)
    at.told()
    await at.reign.on_answer(*answered(at, 1, {0: ErrorCode.KAFKA_STORAGE_ERROR}))
    assert at.told() == []


@story
async def test_a_directory_that_is_served_again_is_online_again():
    at = await Desk.with_topics({"t": [(1, 2), (1, 2)]})
    await at.reign.on_answer(*answered(at, 1, {0: ErrorCode.KAFKA_STORAGE_ERROR}))
    await at.reign.on_answer(*answered(at, 1, {0: ErrorCode.NONE}))
    assert at.state.is_online(1, T0)
    await at.reign.on_answer(*answered(at, 1, {1: ErrorCode.KAFKA_STORAGE_ERROR}))
    await at.goes(1)
    await at.comes(1)
    assert at.state.is_online(1, T1)


@story
async def test_who_alone_has_the_records_leads_again_when_it_is_served_again():
    at = await Desk.with_topics({"t": [(1,)]})
    await at.reign.on_answer(*answered(at, 1, {0: ErrorCode.KAFKA_STORAGE_ERROR}))
    assert at.leads() == (-1, 1, (1,))
    await at.reign.on_answer(*answered(at, 1, {0: ErrorCode.NONE}))
    assert at.leads() == (1, 2, (1,))


@story
async def test_old_leader_epochs_and_unknown_topics_in_answers_say_nothing():
    at = await Desk.with_topics({"t": [(1, 2)]})
    request, response = answered(at, 1, {0: ErrorCode.STALE_CONTROLLER_EPOCH})
    await at.reign.on_answer(request, response)
    response.topics[0].topic_id = b"?" * 16
    response.topics[0].partition_errors[0].error_code = ErrorCode.KAFKA_STORAGE_ERROR
    await at.reign.on_answer(request, response)
    await at.reign.on_answer(request, m.LeaderAndIsrResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    await at.reign.on_answer(request, m.UpdateMetadataResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
    assert at.told() == []
    assert TopicPartition("t", 0) in at.state.leaderships
