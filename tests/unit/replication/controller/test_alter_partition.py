"""AlterPartition: every check of the controller, in its order."""

from __future__ import annotations

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.controller import alter_partition
from replication.controller.cluster_state import Leadership
from tests.unit.replication.controller.desk import T0, TOPIC_ID, Desk, story

kind = m.AlterPartitionRequest
KNOWN_ID = b"t" * 16


async def desk(**options) -> Desk:
    """`t` on 1, 2, 3, led by 1 under leader epoch 0 and partition epoch 0; 4 is alive, too."""
    return await Desk.with_topics({"t": [(1, 2, 3)]}, brokers=(1, 2, 3, 4), **options)


def request(
    at, *isr, sender=1, epoch=0, version=0, recovering=0, topic_id=KNOWN_ID, epochs=(), sent_epoch=None
):
    """`epochs` maps members to the broker epoch that the leader knows of them."""
    known = dict(epochs)
    return kind(
        broker_id=sender,
        broker_epoch=at.state.brokers[sender].epoch if sent_epoch is None else sent_epoch,
        topics=[
            kind.TopicData(
                topic_name="t",
                topic_id=topic_id,
                partitions=[
                    kind.PartitionData(
                        partition_index=0,
                        leader_epoch=epoch,
                        new_isr=list(isr),
                        new_isr_with_epochs=[
                            kind.BrokerState(broker_id=b, broker_epoch=known.get(b, -1)) for b in isr
                        ],
                        leader_recovery_state=recovering,
                        partition_epoch=version,
                    )
                ],
            )
        ],
    )


async def answer(at, asked, version=3):
    response = await alter_partition.alter(at.reign, asked, version)
    if response.error_code:
        return ErrorCode(response.error_code)
    partition = response.topics[0].partitions[0]
    if partition.error_code:
        return ErrorCode(partition.error_code)
    return partition.leader_id, partition.leader_epoch, tuple(partition.isr), partition.partition_epoch


@story
async def test_a_smaller_set_is_written_under_the_same_leader_epoch_and_told_to_all():
    at = await desk()
    assert await answer(at, request(at, 1, 2)) == (1, 0, (1, 2), 1)
    assert at.leads() == (1, 0, (1, 2))
    assert at.told() == [f"UMR {broker} t-0 leader 1/0" for broker in (1, 2, 3, 4)]
    assert await answer(at, request(at, 1, 2, 3, version=1)) == (1, 0, (1, 2, 3), 2)


@story
async def test_a_sender_that_is_not_registered_so_is_refused_as_a_whole():
    at = await desk()
    assert await answer(at, request(at, 1, 2, sent_epoch=1)) is ErrorCode.STALE_BROKER_EPOCH
    asked = request(at, 1, 2)
    asked.broker_id = 9
    assert await answer(at, asked) is ErrorCode.STALE_BROKER_EPOCH


@pytest.mark.parametrize(
    ("epoch", "version", "error"),
    [
        (0, 1, ErrorCode.INVALID_UPDATE_VERSION),
        (0, 3, ErrorCode.NOT_CONTROLLER),
        (-1, 2, ErrorCode.FENCED_LEADER_EPOCH),
        (1, 2, ErrorCode.NOT_CONTROLLER),
    ],
)
def test_epochs_that_differ(epoch, version, error):
    @story
    async def run():
        at = await desk()
        at.state.leaderships[T0] = Leadership(1, 0, (1, 2, 3), 2, 1)
        assert await answer(at, request(at, 1, 2, epoch=epoch, version=version)) is error
        assert at.leads() == (1, 0, (1, 2, 3))

    run()


@story
async def test_a_repetition_succeeds_under_the_old_partition_epoch():
    at = await desk()
    await answer(at, request(at, 1, 2))
    assert await answer(at, request(at, 1, 2, version=0)) == (1, 0, (1, 2), 1)
    assert await answer(at, request(at, 2, 1, version=0)) is ErrorCode.INVALID_UPDATE_VERSION


@story
async def test_only_the_leader_may_ask():
    at = await desk()
    assert await answer(at, request(at, 1, 2, sender=2)) is ErrorCode.INVALID_REQUEST
    assert at.leads() == (1, 0, (1, 2, 3))


@story
async def test_the_set_is_among_the_replicas_once_and_contains_the_leader():
    at = await desk()
    for isr in ((1, 4), (2, 3), (1, 2, 2)):
        assert await answer(at, request(at, *isr)) is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("version", "error"), [(0, ErrorCode.OPERATION_NOT_ATTEMPTED), (2, ErrorCode.INELIGIBLE_REPLICA)]
)
def test_members_that_are_down_or_shut_down_are_not_fit(version, error):
    @story
    async def run():
        at = await desk()
        await answer(at, request(at, 1))
        at.state.shutting_down[2] = None
        del at.state.brokers[3]
        assert await answer(at, request(at, 1, 2, version=1), version) is error
        assert await answer(at, request(at, 1, 3, version=1), version) is error

    run()


@story
async def test_a_leader_that_shuts_down_changes_nothing():
    at = await desk()
    at.state.shutting_down[1] = None
    assert await answer(at, request(at, 1, 2)) is ErrorCode.INELIGIBLE_REPLICA


@story
async def test_a_member_of_another_life_is_not_fit():
    at = await desk()
    await answer(at, request(at, 1))
    epoch = at.state.brokers[2].epoch
    asked = request(at, 1, 2, version=1, epochs={2: epoch - 1})
    assert await answer(at, asked) is ErrorCode.INELIGIBLE_REPLICA
    assert await answer(at, request(at, 1, 2, version=1, epochs={2: epoch})) == (1, 0, (1, 2), 2)


@story
async def test_recovery_ends_by_the_leader_and_never_begins_by_it():
    at = await desk()
    assert await answer(at, request(at, 1, recovering=1)) is ErrorCode.INVALID_REQUEST
    await answer(at, request(at, 1))
    at.state.leaderships[T0] = Leadership(1, 0, (1,), 1, 1, recovering=True)
    assert await answer(at, request(at, 1, 2, version=1, recovering=1)) is ErrorCode.INVALID_REQUEST
    assert await answer(at, request(at, 1, version=1)) == (1, 0, (1,), 2)
    assert not at.stored().recovering


@story
async def test_unknown_topics_and_partitions():
    at = await desk()
    assert await answer(at, request(at, 1, topic_id=TOPIC_ID)) is ErrorCode.UNKNOWN_TOPIC_ID
    asked = request(at, 1)
    asked.topics[0].partitions[0].partition_index = 7
    assert await answer(at, asked) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    asked.topics[0].topic_name = "nobody"
    assert await answer(at, asked, version=1) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@story
async def test_before_version_two_topics_go_by_name():
    at = await desk()
    response = await alter_partition.alter(at.reign, request(at, 1, 2, topic_id=TOPIC_ID), 1)
    assert response.topics[0].topic_name == "t"
    assert response.topics[0].partitions[0].isr == [1, 2]


@story
async def test_a_state_that_somebody_else_changed_is_read_for_the_next_time():
    at = await desk()
    at.state.leaderships[T0] = Leadership(1, 0, (1, 2), 5, 1)
    assert await answer(at, request(at, 1, version=5)) is ErrorCode.INVALID_UPDATE_VERSION
    assert at.state.leaderships[T0] == Leadership(1, 0, (1, 2, 3), 0, 1)


@story
async def test_a_change_that_brings_the_target_into_sync_ends_a_reassignment():
    at = await desk()
    await at.reign.reassignments.reassign(T0, at.state.assignment(T0).towards((1, 4)))
    known = at.state.leaderships[T0]
    asked = request(at, 1, 2, 3, 4, epoch=known.leader_epoch, version=known.partition_epoch)
    assert (await answer(at, asked))[2] == (1, 2, 3, 4)
    assert T0 in at.state.reassigning
    await alter_partition.complete(at.reign, asked, 3)
    assert at.topic().assignment == {0: (1, 4)}
    assert at.stored().isr == (1, 4)
