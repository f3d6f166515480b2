"""Ownership, parked responses, rollback: what clients see while the log decides."""

import pytest

from coordinator.group.offsets import Commit
from coordinator.ports import ReadFailed
from coordinator.result import CoordinatorError, Producer, Result
from coordinator.runtime import State
from protocol.errors import ErrorCode as E
from tests.unit.coordinator.memory_topic import MemoryTopic
from tests.unit.coordinator.offset_shard import Answers, Coordinator, OffsetShard


def error_of(coordinator: Coordinator) -> E:
    with pytest.raises(CoordinatorError) as refused:
        coordinator.runtime.read(0, lambda shard: shard)
    (answer,) = coordinator.commit("g", 1)
    assert answer == (refused.value.error, None)
    return refused.value.error


def test_ownership_errors_follow_the_life_of_a_partition() -> None:
    coordinator = Coordinator(load=False)
    assert error_of(coordinator) is E.NOT_COORDINATOR
    coordinator.runtime.load(0, 3)
    assert coordinator.runtime.state(0) is State.LOADING
    assert error_of(coordinator) is E.COORDINATOR_LOAD_IN_PROGRESS
    coordinator.tasks.run()
    assert coordinator.runtime.active_partitions() == [0]
    assert coordinator.fetched("g") == -1
    coordinator.runtime.unload(0, 4)
    assert error_of(coordinator) is E.NOT_COORDINATOR
    coordinator.runtime.close()
    assert error_of(coordinator) is E.COORDINATOR_NOT_AVAILABLE
    with pytest.raises(CoordinatorError):
        coordinator.runtime.partition_for("g")


def test_what_is_loaded_goes_on_while_it_is_not_known_over_how_many_partitions_keys_are_spread() -> None:
    coordinator = Coordinator()
    coordinator.runtime.start(0)
    assert coordinator.runtime.partition_count == 0
    with pytest.raises(CoordinatorError) as refused:
        coordinator.runtime.partition_for("g")
    assert refused.value.error is E.COORDINATOR_NOT_AVAILABLE
    assert (coordinator.runtime.epoch(0), coordinator.runtime.active_partitions()) == (3, [0])
    assert coordinator.fetched("g") == -1
    assert len(coordinator.runtime.read_all(lambda shard: shard)) == 1


def test_a_response_leaves_when_its_records_are_committed() -> None:
    coordinator = Coordinator()
    answers = coordinator.commit("g", 5)
    assert answers == []
    assert coordinator.fetched("g") == -1
    coordinator.topic.commit()
    assert answers == [(E.NONE, "g=5")]
    assert coordinator.fetched("g") == 5
    assert coordinator.topic.epochs == [3]


def test_a_failed_append_leaves_the_previous_offset() -> None:
    coordinator = Coordinator()
    coordinator.commit("g", 5)
    coordinator.topic.commit()
    answers = coordinator.commit("g", 6)
    coordinator.topic.fail(E.NOT_ENOUGH_REPLICAS)
    assert answers == [(E.COORDINATOR_NOT_AVAILABLE, None)]
    assert coordinator.fetched("g") == 5
    assert coordinator.offsets.committed.get("g", ("t", 0))[0] == 5


def test_a_refused_append_changes_nothing() -> None:
    coordinator = Coordinator()
    coordinator.topic.refuse = E.MESSAGE_TOO_LARGE
    assert coordinator.commit("g", 5) == [(E.UNKNOWN_SERVER_ERROR, None)]
    assert coordinator.offsets.committed.get("g", ("t", 0)) is None


def test_a_failure_takes_later_batches_along_and_spares_earlier_ones() -> None:
    coordinator = Coordinator()
    first = coordinator.commit("g", 1)
    second = coordinator.commit("g", 2)
    third = coordinator.commit("h", 3)
    coordinator.topic.commit()
    coordinator.topic.fail(E.KAFKA_STORAGE_ERROR)
    assert first == [(E.NONE, "g=1")]
    assert second == third == [(E.NOT_COORDINATOR, None)]
    assert coordinator.fetched("g") == 1
    assert coordinator.offsets.groups() == ["g"]


def test_a_write_that_follows_a_failure_at_once_is_not_taken_for_a_failed_one() -> None:
    coordinator = Coordinator()
    retried: list[Answers] = []

    def retry(error: E, response: object) -> None:
        retried.append(coordinator.commit("g", 9))

    coordinator.runtime.write(0, lambda shard: Result([*one_record(shard)], None), retry)
    second = coordinator.commit("h", 2)
    coordinator.topic.fail(E.KAFKA_STORAGE_ERROR)
    assert second == [(E.NOT_COORDINATOR, None)]
    assert retried == [[]]
    coordinator.topic.commit()
    assert retried == [[(E.NONE, "g=9")]]
    assert coordinator.fetched("g") == 9


def one_record(shard: OffsetShard) -> list:
    return shard.offsets.commit("g", [Commit("t", 0, 8)], 0)[0]


def test_an_operation_without_records_waits_for_what_it_saw() -> None:
    coordinator = Coordinator()
    answers: Answers = []
    coordinator.runtime.write(0, lambda _: Result([], "idle"), lambda *got: answers.append(got))
    assert answers == [(E.NONE, "idle")]
    coordinator.commit("g", 1)
    for response in ("one", "two"):
        coordinator.runtime.write(0, lambda _, r=response: Result([], r), lambda *got: answers.append(got))
    assert len(answers) == 1
    coordinator.topic.commit()
    assert answers[1:] == [(E.NONE, "one"), (E.NONE, "two")]
    coordinator.commit("g", 2)
    coordinator.runtime.write(0, lambda _: Result([], "three"), lambda *got: answers.append(got))
    coordinator.topic.fail(E.NOT_ENOUGH_REPLICAS)
    assert answers[3:] == [(E.COORDINATOR_NOT_AVAILABLE, None)]


def test_an_operation_may_refuse() -> None:
    coordinator = Coordinator()
    answers: Answers = []

    def refuse(shard: OffsetShard) -> Result[None]:
        raise CoordinatorError(E.ILLEGAL_GENERATION)

    coordinator.runtime.write(0, refuse, lambda *got: answers.append(got))
    assert answers == [(E.ILLEGAL_GENERATION, None)]


def test_an_undecided_write_is_answered_after_its_time_and_keeps_its_state() -> None:
    coordinator = Coordinator()
    answers = coordinator.commit("g", 5)
    coordinator.time.advance(4999)
    assert answers == []
    coordinator.time.advance(1)
    assert answers == [(E.COORDINATOR_NOT_AVAILABLE, None)]
    coordinator.topic.commit()
    assert len(answers) == 1
    assert coordinator.fetched("g") == 5


def test_all_writes_of_a_partition_share_a_timer_that_ends_by_itself() -> None:
    coordinator = Coordinator()
    for offset in range(5):
        coordinator.commit("g", offset)
        coordinator.topic.commit()
        coordinator.time.advance(100)
    assert coordinator.time.wheel.size == 1
    coordinator.time.advance(4500)
    assert coordinator.time.wheel.size == 0


def test_each_write_has_its_own_time() -> None:
    coordinator = Coordinator()
    coordinator.commit("g", 0)
    coordinator.topic.commit()
    coordinator.time.advance(2000)
    second = coordinator.commit("g", 1)
    coordinator.time.advance(1000)
    third = coordinator.commit("g", 2)
    soon: Answers = []
    operation = Result([], "soon")
    coordinator.runtime.write(0, lambda _: operation, lambda *got: soon.append(got), timeout_ms=10)
    late = (E.COORDINATOR_NOT_AVAILABLE, None)
    for ms, answered in [(9, 0), (1, 1), (3989, 1), (1, 2), (999, 2), (1, 3)]:
        coordinator.time.advance(ms)
        assert [*soon, *second, *third] == [late] * answered
    coordinator.topic.commit(2)
    assert coordinator.fetched("g") == 2
    assert coordinator.time.wheel.size == 0


def test_unloading_takes_the_timer_back() -> None:
    coordinator = Coordinator()
    coordinator.commit("g", 5)
    coordinator.runtime.unload(0)
    assert coordinator.time.wheel.size == 0


def test_unloading_answers_what_is_parked_and_ignores_what_comes_later() -> None:
    coordinator = Coordinator()
    answers = coordinator.commit("g", 5)
    coordinator.shards[0].context.timers.set("session", 10, lambda: answers.append((E.NONE, "rang")))
    coordinator.runtime.unload(0, 4)
    assert answers == [(E.NOT_COORDINATOR, None)]
    assert coordinator.shards[0].unloaded == 1
    coordinator.topic.commit()
    coordinator.time.advance(10_000)
    assert len(answers) == 1


def test_a_late_resignation_is_ignored() -> None:
    coordinator = Coordinator()
    coordinator.runtime.unload(0, 3)
    coordinator.runtime.unload(0, 2)
    assert coordinator.runtime.state(0) is State.ACTIVE
    coordinator.runtime.load(0, 2)
    coordinator.runtime.load(0, 5)
    assert len(coordinator.shards) == 1
    coordinator.commit("g", 1)
    assert coordinator.topic.epochs == [5]
    coordinator.runtime.unload(0, 6)
    assert coordinator.runtime.state(0) is State.CLOSED


def test_a_load_that_is_no_longer_wanted_ends() -> None:
    topic = MemoryTopic()
    first = Coordinator(topic)
    first.commit("g", 5)
    coordinator = Coordinator(topic, load=False)
    coordinator.runtime.load(0, 3)
    coordinator.runtime.unload(0, 4)
    coordinator.tasks.run()
    assert coordinator.runtime.state(0) is State.CLOSED
    assert coordinator.shards[0].loaded_ms is None


def test_a_failed_load_answers_not_coordinator_until_the_next_election(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    coordinator = Coordinator(load=False)

    def unreadable(partition: int) -> tuple[int, int]:
        raise ReadFailed("the disk is gone")

    with monkeypatch.context() as patched:
        patched.setattr(coordinator.topic, "bounds", unreadable)
        coordinator.load(3)
    assert coordinator.runtime.state(0) is State.FAILED
    assert "the disk is gone" in caplog.text
    assert error_of(coordinator) is E.NOT_COORDINATOR
    coordinator.load(3)
    assert coordinator.runtime.state(0) is State.FAILED
    coordinator.load(4)
    assert coordinator.runtime.state(0) is State.ACTIVE


def test_a_failure_that_nobody_foresaw_is_a_failed_load_too(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told with its trace by who runs the load; the partition does not stay loading for ever."""
    first = Coordinator()
    first.commit("g", 5)
    coordinator = Coordinator(first.topic, load=False)

    def broken(*_: object) -> None:
        raise KeyError("a state machine that does not know its own state")

    with monkeypatch.context() as patched:
        patched.setattr(OffsetShard, "replay", broken)
        with pytest.raises(KeyError):
            coordinator.load(3)
    assert coordinator.runtime.state(0) is State.FAILED
    assert "can't be loaded" in caplog.text
    assert error_of(coordinator) is E.NOT_COORDINATOR


def test_read_all_skips_what_is_not_served_and_refuses_while_loading() -> None:
    coordinator = Coordinator()
    assert coordinator.runtime.read_all(lambda shard: shard.context.partition) == [0]
    coordinator.runtime.load(7, 1)
    with pytest.raises(CoordinatorError) as refused:
        coordinator.runtime.read_all(lambda shard: shard)
    assert refused.value.error is E.COORDINATOR_LOAD_IN_PROGRESS
    coordinator.tasks.run()
    assert coordinator.runtime.read_all(lambda shard: shard.context.partition) == [0, 7]
    coordinator.runtime.close()
    with pytest.raises(CoordinatorError) as refused:
        coordinator.runtime.read_all(lambda shard: shard)
    assert refused.value.error is E.COORDINATOR_NOT_AVAILABLE


def test_a_failed_end_marker_leaves_the_transaction_open() -> None:
    coordinator = Coordinator()
    coordinator.commit("g", 5, producer=Producer(7, 0))
    coordinator.topic.commit()
    answers = coordinator.end(7, True)
    coordinator.topic.fail(E.NOT_ENOUGH_REPLICAS)
    assert answers == [(E.COORDINATOR_NOT_AVAILABLE, None)]
    assert coordinator.fetched("g", stable=True) is E.UNSTABLE_OFFSET_COMMIT
    assert coordinator.fetched("g") == -1
    answers = coordinator.end(7, True)
    coordinator.topic.commit()
    assert answers == [(E.NONE, None)]
    assert coordinator.fetched("g", stable=True) == 5
