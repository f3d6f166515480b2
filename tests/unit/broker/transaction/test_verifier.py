"""Questions to coordinators, here and elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import pytest

from broker.transaction.verifier import Question, RetrySettings, Verifier
from coordinator.result import CoordinatorError
from coordinator.transaction.transitions import Known
from protocol import messages as m
from protocol.errors import ErrorCode as E
from tests.unit.broker.transaction.stage import HERE, NOBODY, THERE, Others, Tasks, Timer

Cell = tuple[str, int]
A0, A1 = ("a", 0), ("a", 1)
RETRY = RetrySettings(20, 100)


class Stage:
    """A `Verifier`, with a coordinator here that answers with `errors`, or raises the only one."""

    def __init__(self, coordinator: int, *errors: E) -> None:
        self.coordinator, self.errors = coordinator, list(errors)
        self.timer, self.tasks, self.others = Timer(), Tasks(), Others()
        self.answers: list[dict[Cell, E]] = []
        self.added: list[int] = []
        self.verifier = Verifier(
            HERE,
            self,  # type: ignore[arg-type]
            self.timer,
            self.tasks,  # type: ignore[arg-type]
            self.others,
            RETRY,
        )

    def coordinator_of(self, name: str) -> int:
        return self.coordinator

    def manager(self) -> Any:
        return self

    def add_partitions(
        self, name: str, known: Known, cells: Collection[Cell], version: int, done: Callable[[E, None], None]
    ) -> None:
        self.added.append(version)
        done(self.errors.pop(0) if self.errors else E.NONE, None)

    def verify(self, name: str, known: Known, cells: Collection[Cell]) -> list[E]:
        if len(self.errors) < len(cells):
            raise CoordinatorError(self.errors[0])
        return self.errors

    def ask(self, *cells: Cell, name: str = "t", add: bool = False) -> None:
        self.verifier.ask(Question(name, Known(5, 3), cells, add), self.answers.append)


def test_a_coordinator_here_is_asked_directly() -> None:
    stage = Stage(HERE, E.NONE, E.TRANSACTION_ABORTABLE)
    stage.ask(A0, A1)
    assert stage.answers == [{A0: E.NONE, A1: E.TRANSACTION_ABORTABLE}]


def test_its_refusal_is_that_of_all_partitions() -> None:
    stage = Stage(HERE, E.NOT_COORDINATOR)
    stage.ask(A0, A1)
    assert stage.answers == [dict.fromkeys((A0, A1), E.NOT_COORDINATOR)]


def test_adding_is_of_version_2() -> None:
    stage = Stage(HERE)
    stage.ask(A0, add=True)
    assert (stage.added, stage.answers) == ([2], [{A0: E.NONE}])


def test_nobody_to_ask() -> None:
    stage = Stage(NOBODY)
    stage.ask(A0)
    assert stage.answers == [{A0: E.COORDINATOR_NOT_AVAILABLE}]


@pytest.mark.parametrize(("failures", "answer"), [(3, E.NONE), (9, E.CONCURRENT_TRANSACTIONS)])
def test_adding_waits_a_little_for_the_transaction_before(failures: int, answer: E) -> None:
    """Five times at 20 ms make the 100 ms that are allowed."""
    stage = Stage(HERE, *[E.CONCURRENT_TRANSACTIONS] * failures)
    stage.ask(A0, add=True)
    while stage.timer.waiting:
        assert stage.timer.waiting[0][0] == 20
        stage.timer.ring()
    assert stage.answers == [{A0: answer}]
    assert len(stage.added) == min(failures, 5) + 1


def test_verifying_does_not_wait() -> None:
    stage = Stage(HERE, E.CONCURRENT_TRANSACTIONS)
    stage.ask(A0)
    assert stage.answers == [{A0: E.CONCURRENT_TRANSACTIONS}]


def answering(request: m.AddPartitionsToTxnRequest) -> m.AddPartitionsToTxnResponse:
    """Partition 0 is in every transaction, others are not."""
    response = m.AddPartitionsToTxnResponse
    return response(
        results_by_transaction=[
            response.AddPartitionsToTxnResult(
                transactional_id=asked.transactional_id,
                topic_results=[
                    response.AddPartitionsToTxnTopicResult(
                        name=topic.name,
                        results_by_partition=[
                            response.AddPartitionsToTxnPartitionResult(
                                partition_index=index,
                                partition_error_code=E.TRANSACTION_ABORTABLE if index else E.NONE,
                            )
                            for index in topic.partitions
                        ],
                    )
                    for topic in asked.topics
                ],
            )
            for asked in request.transactions
        ]
    )


def test_another_broker_is_asked_about_all_that_waits_in_one_request() -> None:
    stage = Stage(THERE)
    stage.others.answer = answering
    stage.ask(A0, A1, name="one")
    stage.ask(A1, name="two", add=True)
    stage.tasks.run()
    [(broker_id, request)] = stage.others.asked
    assert broker_id == THERE
    asked = {
        each.transactional_id: (each.producer_id, each.producer_epoch, each.verify_only)
        for each in request.transactions
    }
    assert asked == {"one": (5, 3, True), "two": (5, 3, False)}
    assert {A0: E.NONE, A1: E.TRANSACTION_ABORTABLE} in stage.answers
    assert {A1: E.TRANSACTION_ABORTABLE} in stage.answers


def test_one_id_stands_once_in_a_request() -> None:
    stage = Stage(THERE)
    stage.others.answer = answering
    stage.ask(A0)
    stage.ask(A1)
    stage.tasks.run()
    assert len(stage.others.asked) == 2
    assert stage.answers == [{A0: E.NONE}, {A1: E.TRANSACTION_ABORTABLE}]


def test_no_answer() -> None:
    stage = Stage(THERE)
    stage.ask(A0, A1)
    stage.tasks.run()
    assert stage.answers == [dict.fromkeys((A0, A1), E.NETWORK_EXCEPTION)]
    stage.others.answer = lambda _: m.AddPartitionsToTxnResponse(error_code=31)
    stage.ask(A0)
    stage.tasks.run()
    assert stage.answers[1:] == [{A0: E.NETWORK_EXCEPTION}]
