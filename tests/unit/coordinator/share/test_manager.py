"""What handlers get from the share coordinator."""

from __future__ import annotations

from coordinator.share.records import ShareKey
from coordinator.share.shard import Answer
from protocol.errors import ErrorCode as E
from tests.unit.coordinator.share.coordinator import KEY, TOPIC_ID, Coordinator

OTHER_TOPIC = b"other-topic-16-b"


def test_operations_reach_the_shard() -> None:
    coordinator = Coordinator()
    assert coordinator.ask("initialize", 2, 10) == Answer()
    assert coordinator.write((10, 14, 2, 1), start=10, state_epoch=2, complete=5) == Answer()
    found = coordinator.ask("read", 0)
    assert found.state is not None
    assert (found.state.start_offset, found.state.batches) == (10, ((10, 14, 2, 1),))
    shown = coordinator.ask("summary").state
    assert shown is not None
    assert (shown.state_epoch, shown.complete_count) == (2, 5)
    assert coordinator.ask("delete") == Answer()
    assert coordinator.states() == {}


def test_the_coordinators_own_errors_have_no_text() -> None:
    coordinator = Coordinator()
    coordinator.runtime.unload(0)
    assert coordinator.ask("summary") == Answer(E.NOT_COORDINATOR)
    coordinator.runtime.load(0, 2)
    assert coordinator.ask("summary") == Answer(E.COORDINATOR_LOAD_IN_PROGRESS)
    coordinator.tasks.run()
    coordinator.runtime.close()
    assert coordinator.ask("delete") == Answer(E.COORDINATOR_NOT_AVAILABLE)


def test_refused_appends_are_told_as_kafka_does() -> None:
    coordinator = Coordinator()
    for refused, told in (
        (E.NOT_ENOUGH_REPLICAS, E.COORDINATOR_NOT_AVAILABLE),
        (E.NOT_LEADER_OR_FOLLOWER, E.NOT_COORDINATOR),
        (E.MESSAGE_TOO_LARGE, E.UNKNOWN_SERVER_ERROR),
    ):
        coordinator.topic.refuse = refused
        assert coordinator.ask("initialize", 0, 0) == Answer(told)
    assert coordinator.states() == {}


def test_share_partitions_of_deleted_topics_end() -> None:
    coordinator = Coordinator()
    coordinator.partition_counts[OTHER_TOPIC] = 1
    kept = ShareKey("g", OTHER_TOPIC, 0)
    for key in (KEY, ShareKey("h", TOPIC_ID, 3), kept):
        coordinator.ask("initialize", 0, 0, key=key)
    coordinator.manager.topics_deleted([TOPIC_ID])
    coordinator.commit()
    assert list(coordinator.states()) == [kept]
    assert list(coordinator.again().states()) == [kept]


def test_upkeep_that_fails_ends_until_the_next_time() -> None:
    coordinator = Coordinator()
    coordinator.ask("initialize", 0, 0)
    coordinator.topic.refuse = E.KAFKA_STORAGE_ERROR
    coordinator.manager.topics_deleted([TOPIC_ID])
    assert list(coordinator.states()) == [KEY]


def test_only_partitions_that_are_served_are_pruned() -> None:
    coordinator = Coordinator()
    assert coordinator.manager.needed_from() == []
    coordinator.ask("initialize", 0, 0)
    coordinator.ask("initialize", 0, 0)
    assert coordinator.manager.needed_from() == [(0, 1)]
    coordinator.runtime.unload(0)
    assert coordinator.manager.needed_from() == []
