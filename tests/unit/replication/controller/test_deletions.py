"""Topics are deleted, also when brokers are down, fail to, or controllers die in between."""

from __future__ import annotations

from protocol.errors import ErrorCode
from replication.controller.cluster_state import Replica
from replication.controller.states import ReplicaState
from replication.metadata import paths, payloads
from replication.metadata.configs import ConfigResource, ConfigType
from replication.metadata.store import Create, Put
from tests.unit.replication.controller.desk import T0, Desk, story

MARKER = f"{paths.DELETE_TOPICS}/t"
CONFIG = ConfigResource(ConfigType.TOPIC, "t").path


async def marked(topics=None, **options) -> Desk:
    """A topic with overrides, marked for deletion; the controller has not looked yet."""
    at = await Desk.with_topics(topics or {"t": [(1, 2)]}, **options)
    await at.store.multi([Create(CONFIG, payloads.encode_config({"a": "b"})), Create(MARKER, b"")])
    return at


def gone(at: Desk) -> bool:
    return not any(at.exists(path) for path in (paths.topic("t"), CONFIG, MARKER)) and (
        "t" not in at.state.assignments
    )


@story
async def test_a_deletion_stops_tells_and_removes():
    at = await marked()
    await at.reign.deletions.on_markers()
    assert at.told() == [
        "UMR 1 t-0 leader -2/0",
        "UMR 2 t-0 leader -2/0",
        "UMR 3 t-0 leader -2/0",
        "SR 1 t-0 -2",
        "SR 2 t-0 -2",
        "SR 1 t-0 -2 delete",
        "SR 2 t-0 -2 delete",
    ]
    await at.reign.deletions.succeeded([at.replica(1)])
    assert at.exists(paths.topic("t"))
    await at.reign.deletions.succeeded([at.replica(2)])
    assert gone(at)


@story
async def test_a_marker_of_an_unknown_topic_is_taken_away():
    at = await Desk.with_topics({"t": [(1, 2)]})
    await at.store.create(f"{paths.DELETE_TOPICS}/nobody", b"")
    await at.reign.deletions.on_markers()
    assert not at.exists(f"{paths.DELETE_TOPICS}/nobody")
    assert at.told() == []


@story
async def test_markers_do_nothing_where_deletion_is_off():
    at = await marked(delete_topics=False)
    await at.reign.deletions.on_markers()
    assert not at.exists(MARKER)
    assert at.exists(paths.topic("t"))
    await at.store.create(MARKER, b"")
    await at.next_epoch(delete_topics=False)
    assert not at.exists(MARKER)
    assert at.leads() == (1, 0, (1, 2))


@story
async def test_a_deletion_waits_for_a_broker_that_is_down():
    at = await marked()
    await at.goes(2)
    at.told()
    await at.reign.deletions.on_markers()
    assert "SR 1 t-0 -2 delete" in at.told()
    await at.reign.deletions.succeeded([at.replica(1)])
    assert at.exists(MARKER)
    assert at.state.deletion_ineligible == {"t": None}
    await at.comes(2)
    assert "SR 2 t-0 -2 delete" in at.told()
    await at.reign.deletions.succeeded([at.replica(2)])
    assert gone(at)


@story
async def test_a_broker_that_dies_during_the_deletion_deletes_when_it_is_back():
    at = await marked()
    await at.reign.deletions.on_markers()
    await at.reign.deletions.succeeded([at.replica(1)])
    await at.goes(2)
    await at.reign.deletions.succeeded([at.replica(2)])  # an answer that was under way
    assert not gone(at)
    at.told()
    await at.comes(2)
    assert at.told()[-1] == "SR 2 t-0 -2 delete"
    await at.reign.deletions.succeeded([at.replica(2)])
    assert gone(at)


@story
async def test_a_broker_whose_replica_is_gone_already_may_die():
    at = await marked()
    await at.reign.deletions.on_markers()
    await at.reign.deletions.succeeded([at.replica(2)])
    await at.goes(2)
    await at.reign.deletions.succeeded([at.replica(1)])
    assert gone(at)


@story
async def test_a_failed_deletion_is_tried_again_when_a_broker_comes():
    at = await marked()
    await at.reign.deletions.on_markers()
    await at.reign.deletions.succeeded([at.replica(1)])
    await at.reign.deletions.failed([at.replica(2)])
    assert at.state.deletion_ineligible == {"t": None}
    at.told()
    await at.comes(4)
    assert not any("delete" in line for line in at.told())
    await at.goes(2)
    await at.comes(2)
    assert "SR 2 t-0 -2 delete" in at.told()


@story
async def test_the_next_controller_finishes_what_was_begun():
    at = await marked()
    await at.reign.deletions.on_markers()
    at.told()
    await at.next_epoch()
    assert "SR 2 t-0 -2 delete" in at.told()
    await at.reign.deletions.succeeded([at.replica(1), at.replica(2)])
    assert gone(at)


@story
async def test_the_next_controller_takes_a_marker_away_whose_topic_is_gone():
    at = await marked()
    for path in sorted((p for p in at.tree.nodes if p.startswith(paths.topic("t"))), reverse=True):
        await at.store.delete(path)
    await at.next_epoch()
    assert gone(at)


@story
async def test_the_next_controller_finishes_with_half_of_the_nodes():
    at = await marked({"t": [(1, 2), (2, 1)]})
    await at.store.delete(paths.partition_state("t", 1))
    await at.store.delete(paths.partition("t", 1))
    await at.next_epoch()
    replicas = at.state.replicas_of_topic("t")
    await at.reign.deletions.succeeded(replicas)
    assert gone(at)


@story
async def test_a_topic_that_is_reassigned_is_deleted_when_that_has_ended():
    at = await marked({"t": [(1, 2), (1, 2)]})
    for partition in at.state.partitions_of("t"):
        await at.reign.reassignments.reassign(partition, at.state.assignment(partition).towards((3,)))
    await at.reign.deletions.on_markers()
    assert not any("-2" in line for line in at.told())
    await at.in_sync(1, 2, 3)
    assert not any("UMR" in line and "-2" in line for line in at.told())
    await at.in_sync(1, 2, 3, partition=at.state.partitions_of("t")[1])
    assert "UMR 1 t-0 leader -2/0, t-1 leader -2/0" in at.told()
    await at.reign.deletions.succeeded([Replica(p, 3) for p in at.state.partitions_of("t")])
    assert gone(at)


@story
async def test_a_topic_that_is_still_reassigned_gets_leaders_though_it_is_marked():
    at = await marked({"t": [(1, 2)]})
    await at.reign.reassignments.reassign(T0, at.state.assignment(T0).towards((3,)))
    await at.reign.deletions.on_markers()
    await at.goes(1)
    assert at.stored().leader == 2
    await at.goes(2)
    assert at.stored().leader == -1
    await at.comes(2)
    assert at.stored().leader == 2
    at.told()
    await at.in_sync(2, 3)
    assert "UMR 2 t-0 leader -2/0" in at.told()


@story
async def test_a_topic_made_anew_begins_anew():
    at = await marked()
    await at.reign.deletions.on_markers()
    await at.reign.deletions.succeeded([at.replica(1), at.replica(2)])
    at.told()
    await at.add_topic("t", [(2, 1)])
    assert await at.reign.topics.on_topics() == ["t"]
    assert at.leads() == (2, 0, (2, 1))
    assert "LISR 1 t-0 leader 2/0 isr 2,1 new" in at.told()


@story
async def test_answers_decide_over_each_replica():
    from protocol import messages as m

    at = await marked()
    await at.reign.deletions.on_markers()
    stops = [request for request in at.take() if request.deletions]
    kind = m.StopReplicaResponse
    for stop, error in zip(stops, (ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR), strict=True):
        answer = kind.StopReplicaPartitionError(topic_name="t", partition_index=0, error_code=error)
        await at.reign.on_answer(stop, kind(partition_errors=[answer]))
    assert at.state.replica_state(at.replica(1)) is ReplicaState.DELETION_SUCCESSFUL
    assert at.state.deletion_ineligible == {"t": None}


@story
async def test_a_refused_request_counts_as_failed():
    from protocol import messages as m

    at = await marked()
    await at.reign.deletions.on_markers()
    stop = next(request for request in at.take() if request.deletions)
    await at.reign.on_answer(stop, m.StopReplicaResponse(error_code=ErrorCode.STALE_BROKER_EPOCH))
    assert at.state.deletion_ineligible == {"t": None}


@story
async def test_partitions_cannot_be_added_any_more():
    at = await marked()
    await at.reign.deletions.on_markers()
    topic = at.topic()
    grown = payloads.TopicPayload(topic.topic_id, {0: (1, 2), 1: (2, 3)}, {}, {})
    await at.store.multi([Put(paths.topic("t"), payloads.encode_topic(grown))])
    await at.reign.topics.on_partitions("t")
    assert at.topic().assignment == {0: (1, 2)}
    assert list(at.state.assignments["t"]) == [0]
    assert T0 in at.state.leaderships
