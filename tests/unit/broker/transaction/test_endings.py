"""Decisions carried out: where markers go, what is sent again, and when it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from broker.transaction.endings import Endings, by_topic
from broker.transaction.markers import Marker
from broker.transaction.pace import AT_ONCE, RETRY_MS
from coordinator.result import CoordinatorError
from coordinator.transaction.state import Transaction, TxnState
from protocol import messages as m
from protocol.errors import ErrorCode as E
from replication.metadata.store import StoreFailed
from tests.unit.broker.transaction.stage import HERE, NOBODY, THERE, Others, Tasks, Timer, image_of

Cell = tuple[str, int]
EPOCH = 9


class Stage:
    """An `Endings` whose local markers are answered by the test."""

    def __init__(
        self, *, alone: bool = False, stored: dict[str, int] | None = None, **leaders: list[int]
    ) -> None:
        self.stored = stored or {}
        self.store_fails = False
        self.holder = SimpleNamespace(current=image_of(**leaders))
        self.timer, self.tasks, self.others = Timer(), Tasks(), Others()
        self.local: list[tuple[Marker, list[Cell], Callable[[dict[Cell, E]], None]]] = []
        self.completed: list[tuple[int, str, Transaction]] = []
        self.complete_errors: list[E] = []
        self.coordinates = True
        self.endings = Endings(
            HERE,
            self.holder,  # type: ignore[arg-type]
            self,  # type: ignore[arg-type]
            lambda: self,  # type: ignore[arg-type, return-value]
            self.timer,
            self.tasks,  # type: ignore[arg-type]
            None if alone else self.others,
            None if alone else self.count_partitions,
        )
        self.runtime = self

    @property
    def retries(self) -> list[int]:
        """What the timer is set for, beside the next turn of those that wait."""
        return [delay_ms for delay_ms, _ in self.timer.waiting if delay_ms]

    async def count_partitions(self, topic: str) -> int:
        if self.store_fails:
            raise StoreFailed("/brokers/topics/t")
        return self.stored.get(topic, 0)

    def write(self, marker: Marker, cells: Sequence[Cell], done: Callable[[dict[Cell, E]], None]) -> None:
        self.local.append((marker, list(cells), done))

    def epoch(self, partition: int) -> int:
        if not self.coordinates:
            raise CoordinatorError(E.NOT_COORDINATOR)
        return EPOCH

    def complete(self, partition: int, name: str, txn: Transaction, done: Callable[[E, Any], None]) -> None:
        self.completed.append((partition, name, txn))
        done(self.complete_errors.pop(0) if self.complete_errors else E.NONE, True)

    def decide(self, *cells: Cell, commit: bool = True, name: str = "t") -> Transaction:
        state = TxnState.PREPARE_COMMIT if commit else TxnState.PREPARE_ABORT
        txn = Transaction(5, 3, 100, state, frozenset(cells), version=2)
        self.endings.decided(4, name, txn)
        return txn

    def answer(self, *errors: E) -> None:
        """The oldest local write is over."""
        _, cells, done = self.local.pop(0)
        done(dict(zip(cells, errors, strict=True)))


def answering(*errors: E) -> Callable[[m.WriteTxnMarkersRequest], m.WriteTxnMarkersResponse]:
    """Another broker's answer: these errors for the partitions of each marker."""
    response = m.WriteTxnMarkersResponse

    def answer(request: m.WriteTxnMarkersRequest) -> m.WriteTxnMarkersResponse:
        return response(
            markers=[
                response.WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=[
                        response.WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=[
                                response.WritableTxnMarkerPartitionResult(
                                    partition_index=index, error_code=error
                                )
                                for index, error in zip(topic.partition_indexes, errors, strict=True)
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
                for marker in request.markers
            ]
        )

    return answer


@pytest.mark.parametrize("commit", [True, False])
def test_partitions_of_this_broker_are_written_to_and_then_it_is_complete(commit: bool) -> None:
    stage = Stage(a=[HERE, HERE])
    txn = stage.decide(("a", 1), ("a", 0), commit=commit)
    [(marker, cells, _)] = stage.local
    assert marker == Marker(5, 3, EPOCH, commit, 2)
    assert cells == [("a", 0), ("a", 1)]
    assert stage.completed == []
    stage.answer(E.NONE, E.NONE)
    assert stage.completed == [(4, "t", txn)]


def test_what_is_left_are_the_partitions_without_a_marker() -> None:
    stage = Stage(a=[HERE, HERE])
    assert stage.endings.left(4, "t") is None
    stage.decide(("a", 0), ("a", 1))
    assert list(stage.endings.left(4, "t") or ()) == [("a", 0), ("a", 1)]
    stage.answer(E.NONE, E.NOT_ENOUGH_REPLICAS)
    assert list(stage.endings.left(4, "t") or ()) == [("a", 1)]
    stage.timer.ring()
    stage.answer(E.NONE)
    assert stage.endings.left(4, "t") is None


def test_a_transaction_without_partitions_is_complete_at_once() -> None:
    stage = Stage()
    stage.decide()
    assert len(stage.completed) == 1


def test_other_brokers_get_one_request_with_all_that_waits() -> None:
    stage = Stage(a=[THERE, HERE], b=[THERE])
    stage.others.answer = answering(E.NONE)
    stage.decide(("a", 0), ("a", 1), ("b", 0))
    stage.decide(("b", 0), commit=False, name="u")
    stage.tasks.run()
    [(broker_id, request)] = stage.others.asked
    assert broker_id == THERE
    assert [
        (k.producer_id, k.producer_epoch, k.transaction_result, k.coordinator_epoch, k.transaction_version)
        for k in request.markers
    ] == [(5, 3, True, EPOCH, 2), (5, 3, False, EPOCH, 2)]
    assert [[(t.name, t.partition_indexes) for t in k.topics] for k in request.markers] == [
        [("a", [0]), ("b", [0])],
        [("b", [0])],
    ]
    assert [txn.state for _, _, txn in stage.completed] == [TxnState.PREPARE_ABORT]  # one waits for its own
    stage.answer(E.NONE)
    assert len(stage.completed) == 2


@pytest.mark.parametrize(
    "error",
    [
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.NOT_LEADER_OR_FOLLOWER,
        E.NOT_ENOUGH_REPLICAS,
        E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        E.REQUEST_TIMED_OUT,
        E.KAFKA_STORAGE_ERROR,
    ],
)
def test_what_may_be_better_later_is_sent_again(error: E) -> None:
    stage = Stage(a=[HERE, HERE])
    stage.decide(("a", 0), ("a", 1))
    stage.answer(E.NONE, error)
    assert (stage.local, stage.completed) == ([], [])
    assert stage.retries == [RETRY_MS]
    stage.timer.ring()
    assert stage.local[0][1] == [("a", 1)]
    stage.answer(E.NONE)
    assert len(stage.completed) == 1


def test_markers_of_very_many_partitions_are_sent_some_at_a_time() -> None:
    """And none in the pass that has written so long a decision."""
    stage = Stage(a=[HERE] * (AT_ONCE * 2 + 1))
    stage.decide(*(("a", index) for index in range(AT_ONCE * 2 + 1)))
    assert stage.local == []
    for count in (AT_ONCE, AT_ONCE, 1):
        stage.timer.ring()
        assert stage.completed == []
        assert [len(cells) for _, cells, _ in stage.local] == [count]
        stage.answer(*[E.NONE] * count)
    assert len(stage.completed) == 1


def test_it_is_sent_to_who_leads_then() -> None:
    stage = Stage(a=[NOBODY])
    stage.decide(("a", 0))
    stage.timer.ring()
    assert (stage.local, stage.others.asked) == ([], [])
    stage.holder.current = image_of(a=[THERE])
    stage.timer.ring()
    stage.tasks.run()  # the connection is lost
    assert len(stage.others.asked) == 1
    stage.holder.current = image_of(a=[HERE])
    stage.timer.ring()
    stage.answer(E.NONE)
    assert len(stage.completed) == 1


def test_a_partition_that_is_gone_needs_no_marker() -> None:
    stage = Stage(a=[HERE])
    stage.decide(("a", 0), ("gone", 0), ("a", 7))
    stage.tasks.run()
    stage.answer(E.NOT_LEADER_OR_FOLLOWER)
    stage.holder.current = image_of()
    stage.timer.ring()
    assert stage.completed == [], "the store has not been asked yet"
    stage.tasks.run()
    assert (len(stage.completed), stage.retries) == (1, [])


def test_a_broker_alone_knows_by_itself_which_partitions_are_gone() -> None:
    stage = Stage(alone=True, a=[HERE])
    stage.decide(("gone", 0), ("a", 7))
    assert len(stage.completed) == 1


def test_a_partition_of_which_the_broker_was_not_told_yet_gets_its_marker() -> None:
    stage = Stage(stored={"a": 2, "late": 1}, a=[HERE])
    stage.decide(("a", 1), ("late", 0), ("gone", 0))
    stage.tasks.run()
    assert stage.completed == []
    stage.timer.ring()  # nothing new
    stage.tasks.run()
    stage.holder.current = image_of(a=[HERE, HERE], late=[HERE])
    stage.timer.ring()
    assert stage.local[0][1] == [("a", 1), ("late", 0)]
    stage.answer(E.NONE, E.NONE)
    assert len(stage.completed) == 1


def test_a_store_that_does_not_answer_is_asked_again() -> None:
    stage = Stage()
    stage.store_fails = True
    stage.decide(("gone", 0))
    stage.tasks.run()
    assert (stage.completed, len(stage.retries)) == ([], 1)
    stage.store_fails = False
    stage.timer.ring()
    stage.tasks.run()
    assert len(stage.completed) == 1


@pytest.mark.parametrize("error", [E.INVALID_PRODUCER_EPOCH, E.TRANSACTION_COORDINATOR_FENCED])
def test_it_ends_where_somebody_else_owns_the_transaction(error: E) -> None:
    stage = Stage(a=[HERE, THERE])
    stage.others.answer = answering(E.NOT_LEADER_OR_FOLLOWER)
    stage.decide(("a", 0), ("a", 1))
    stage.answer(error)
    stage.tasks.run()
    assert (stage.retries, stage.completed) == ([], [])


def test_logs_of_old_formats_count_as_done() -> None:
    stage = Stage(a=[HERE])
    stage.decide(("a", 0))
    stage.answer(E.UNSUPPORTED_FOR_MESSAGE_FORMAT)
    assert len(stage.completed) == 1


def test_who_coordinates_no_more_lets_it_be() -> None:
    stage = Stage(a=[HERE])
    stage.decide(("a", 0))
    stage.answer(E.NOT_LEADER_OR_FOLLOWER)
    stage.coordinates = False
    stage.timer.ring()
    assert (stage.local, stage.retries, stage.completed) == ([], [], [])


def test_the_record_of_completion_is_tried_again_and_again() -> None:
    stage = Stage(a=[HERE])
    stage.complete_errors = [E.COORDINATOR_NOT_AVAILABLE, E.COORDINATOR_NOT_AVAILABLE]
    stage.decide(("a", 0))
    stage.answer(E.NONE)
    stage.timer.ring()
    stage.timer.ring()
    assert (len(stage.completed), stage.retries) == (3, [])


def test_it_is_over_where_completion_finds_no_coordinator() -> None:
    stage = Stage(a=[HERE])
    stage.complete_errors = [E.NOT_COORDINATOR]
    stage.decide(("a", 0))
    stage.answer(E.NONE)
    assert stage.retries == []


def test_a_decision_that_is_found_again_is_carried_out_once() -> None:
    """The partition of the topic was lost and won back meanwhile."""
    stage = Stage(a=[HERE])
    stage.decide(("a", 0))
    stage.decide(("a", 0))
    stage.answer(E.NOT_LEADER_OR_FOLLOWER)  # of the first, which is nobody's any more
    assert stage.retries == []
    stage.answer(E.NONE)
    assert len(stage.completed) == 1


def test_what_was_under_way_in_an_earlier_reign_ends_no_later_transaction() -> None:
    """Another broker has ended it meanwhile, and the producer has begun the next one under the same epoch."""
    stage = Stage(a=[HERE, THERE, HERE])
    stage.decide(("a", 0), ("a", 1), ("a", 2))  # the letter to the other broker is not sent yet
    stage.endings.unloaded(3)  # of another partition
    stage.answer(E.NOT_LEADER_OR_FOLLOWER, E.NOT_LEADER_OR_FOLLOWER)
    assert len(stage.retries) == 1
    stage.endings.unloaded(4)
    stage.timer.ring()  # this broker coordinates the partition again
    stage.tasks.run()  # the letter gets lost
    asked = len(stage.others.asked)
    stage.timer.ring()
    stage.tasks.run()
    assert (stage.local, len(stage.others.asked), stage.completed) == ([], asked, [])


def test_a_partition_that_is_loading_anew_completes_it_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage(a=[HERE])
    stage.complete_errors = [E.COORDINATOR_LOAD_IN_PROGRESS]
    stage.decide(("a", 0))
    stage.answer(E.NONE)
    assert (stage.retries, caplog.records) == ([], [])


def test_a_completion_that_fails_for_good_is_told(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage(a=[HERE])
    stage.complete_errors = [E.UNKNOWN_SERVER_ERROR]
    stage.decide(("a", 0))
    stage.answer(E.NONE)
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_a_broker_alone_waits_for_its_image() -> None:
    stage = Stage(alone=True, a=[THERE])
    stage.decide(("a", 0))
    assert len(stage.retries) == 1


def test_partitions_by_topic() -> None:
    assert by_topic([("b", 1), ("a", 0), ("b", 0)]) == {"b": [1, 0], "a": [0]}
