"""Runs and the batches that they fill."""

from __future__ import annotations

from replication.share.ports import StateBatch
from replication.share.runs import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    AVAILABLE,
    FlightBatch,
    Run,
    Transition,
    joined,
)


def spans(batch: FlightBatch) -> list[tuple[int, int]]:
    return [(run.first, run.last) for run in batch.runs]


def test_a_batch_is_one_run_until_parts_of_it_differ() -> None:
    batch = FlightBatch([Run(10, 19, ACQUIRED, 2, "ann", 500)])
    assert not batch.split
    assert [(run.first, run.last) for run in batch.within(0, 99)] == [(10, 19)]
    assert not batch.split
    assert [(run.first, run.last) for run in batch.within(12, 15)] == [(12, 15)]
    assert spans(batch) == [(10, 11), (12, 15), (16, 19)]
    assert batch.split
    assert {(run.state, run.count, run.member, run.deadline_ms) for run in batch.runs} == {
        (ACQUIRED, 2, "ann", 500)
    }


def test_looking_does_not_split() -> None:
    batch = FlightBatch([Run(10, 19, AVAILABLE, 0)])
    assert [run.first for run in batch.touching(15, 30)] == [10]
    assert list(batch.touching(20, 30)) == []
    assert spans(batch) == [(10, 19)]


def test_a_staged_run_that_is_cut_stays_in_its_transition() -> None:
    batch = FlightBatch([Run(0, 9, ACKNOWLEDGED, 1)])
    transition = Transition()
    batch.runs[0].staged = transition
    transition.runs.append(batch.runs[0])
    batch.cut(0, 4)
    assert [(run.first, run.last) for run in transition.runs] == [(0, 3), (4, 9)]
    assert all(run.staged is transition for run in batch.runs)


def test_only_what_is_available_and_settled_is_free() -> None:
    run = Run(0, 0, AVAILABLE, 0)
    assert run.free
    run.staged = Transition()
    assert not run.free
    assert not Run(0, 0, ACQUIRED, 1, "ann").free


def test_what_is_stored_is_joined_and_begins_at_the_start() -> None:
    batches = [
        StateBatch(0, 1, AVAILABLE, 1),
        StateBatch(2, 4, ACKNOWLEDGED, 1),
        StateBatch(5, 5, ACKNOWLEDGED, 1),
        StateBatch(6, 6, ACKNOWLEDGED, 2),
        StateBatch(8, 8, ARCHIVED, 2),
    ]
    assert joined(batches, 3) == [
        StateBatch(3, 5, ACKNOWLEDGED, 1),
        StateBatch(6, 6, ACKNOWLEDGED, 2),
        StateBatch(8, 8, ARCHIVED, 2),
    ]


def test_many_cuts_in_one_pass() -> None:
    batch = FlightBatch([Run(0, 4, ACQUIRED, 1, "ann", 9), Run(5, 9, AVAILABLE, 0)])
    batch.cut_at([0, 2, 3, 5, 8, 10, 20])
    assert spans(batch) == [(0, 1), (2, 2), (3, 4), (5, 7), (8, 9)]
    whole = FlightBatch([Run(0, 4, ACQUIRED, 1)])
    whole.cut_at([0, 5])
    assert not whole.split
