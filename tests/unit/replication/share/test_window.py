"""The window of records in flight: loading, gaps, moving on."""

from __future__ import annotations

import pytest

from replication.share.ports import StateBatch
from replication.share.runs import ACKNOWLEDGED, ACQUIRED, ARCHIVED, AVAILABLE, FlightBatch, Run, Transition
from replication.share.window import Window


def test_an_empty_window_reads_at_its_start() -> None:
    window = Window(7)
    assert (window.start_offset, window.end_offset, window.next_offset(), window.in_flight) == (7, 7, 7, 0)


def test_what_was_stored_is_loaded_and_what_is_done_is_passed() -> None:
    window = Window(
        10,
        [
            StateBatch(10, 14, ACKNOWLEDGED, 1),
            StateBatch(15, 19, AVAILABLE, 2),
            StateBatch(20, 24, ARCHIVED, 5),
        ],
    )
    assert (window.start_offset, window.end_offset) == (15, 24)
    assert (window.complete_count, window.in_flight) == (5, 10)
    assert window.next_offset() == 15
    assert not window.gap_is_open


def test_all_done_is_an_empty_window_behind_it() -> None:
    window = Window(10, [StateBatch(10, 14, ACKNOWLEDGED, 1)])
    assert (window.start_offset, window.end_offset, window.next_offset()) == (15, 15, 15)
    assert (window.batches, window.complete_count) == ([], 0)


def test_unknown_offsets_between_stored_ones_are_read() -> None:
    window = Window(10, [StateBatch(21, 30, ACKNOWLEDGED, 1)])
    assert window.gap_is_open
    assert (window.start_offset, window.end_offset, window.next_offset()) == (10, 30, 10)
    window.insert(FlightBatch([Run(10, 15, ACQUIRED, 1, "ann", 1)]))
    window.moved_gap(16)
    assert window.next_offset() == 16
    window.moved_gap(31)
    assert not window.gap_is_open
    assert window.next_offset() == 31


def test_the_start_does_not_pass_unknown_offsets() -> None:
    window = Window(0, [StateBatch(0, 10, ACKNOWLEDGED, 1), StateBatch(31, 40, ACKNOWLEDGED, 1)])
    assert window.start_offset == 11
    assert window.next_offset() == 11


@pytest.mark.parametrize(
    "batches",
    [
        [StateBatch(4, 6, AVAILABLE, 1)],
        [StateBatch(5, 6, AVAILABLE, 1), StateBatch(6, 7, AVAILABLE, 1)],
        [StateBatch(6, 5, AVAILABLE, 1)],
        [StateBatch(5, 6, ACQUIRED, 1)],
        [StateBatch(5, 6, 9, 1)],
    ],
)
def test_what_cannot_have_been_stored_is_refused(batches: list[StateBatch]) -> None:
    with pytest.raises(ValueError, match="Batch"):
        Window(5, batches)


def test_what_was_being_archived_is_archived() -> None:
    assert Window(0, [StateBatch(0, 1, AVAILABLE, 1), StateBatch(2, 3, 3, 5)]).complete_count == 2


def acquired(*spans: tuple[int, int]) -> Window:
    window = Window(spans[0][0])
    for first, last in spans:
        window.insert(FlightBatch([Run(first, last, ACQUIRED, 1, "ann", 100)]))
        window.end_offset = last
    return window


def accept(window: Window, first: int, last: int) -> Transition:
    transition = Transition()
    for batch in window.batches:
        for run in batch.within(first, last):
            window.stage(run, ACKNOWLEDGED, transition)
    return transition


def test_the_start_moves_when_it_is_stored() -> None:
    window = acquired((0, 4), (5, 9))
    transition = accept(window, 0, 6)
    assert (window.start_offset, window.complete_count) == (0, 7)
    assert window.commit(transition)
    assert (window.start_offset, window.complete_count, len(window.batches)) == (7, 0, 1)
    assert not window.advance()


def test_the_start_passes_offsets_without_records() -> None:
    window = acquired((0, 4), (10, 14))
    window.commit(accept(window, 0, 4))
    assert window.start_offset == 10


def test_later_records_wait_for_earlier_ones() -> None:
    window = acquired((0, 4), (5, 9))
    assert not window.commit(accept(window, 5, 9))
    assert (window.start_offset, window.complete_count) == (0, 5)
    assert window.commit(accept(window, 0, 4))
    assert (window.start_offset, window.end_offset, window.batches) == (10, 10, [])


def test_what_is_not_stored_is_taken_back() -> None:
    window = acquired((0, 4))
    transition = accept(window, 1, 2)
    window.roll_back(transition, 50, 5)
    assert [(run.state, run.member) for run in window.batches[0].runs] == [(ACQUIRED, "ann")] * 3
    assert window.complete_count == 0


def test_what_is_not_stored_is_free_if_its_lock_ran_out() -> None:
    window = acquired((0, 4))
    window.roll_back(accept(window, 0, 4), 100, 5)
    assert window.next_offset() == 0
    window = acquired((0, 4))
    window.roll_back(accept(window, 0, 4), 100, 1)
    assert window.batches[0].runs[0].state == ARCHIVED


def test_the_log_begins_later() -> None:
    window = Window(0, [StateBatch(0, 4, AVAILABLE, 1), StateBatch(5, 9, AVAILABLE, 1)])
    window.insert(FlightBatch([Run(10, 14, ACQUIRED, 1, "ann", 100)]))
    window.end_offset = 14
    assert window.move_start(7)
    assert not window.move_start(7)
    assert (window.start_offset, window.next_offset(), window.complete_count) == (7, 7, 0)
    assert window.move_start(12)
    assert [run.state for run in window.batches[-1].runs] == [ACQUIRED]  # until it comes back
    assert window.next_offset() == 15
    assert window.move_start(20)
    assert (window.start_offset, window.end_offset, window.next_offset()) == (20, 20, 20)


def test_an_empty_window_just_moves() -> None:
    window = Window(3)
    window.move_start(9)
    assert (window.start_offset, window.end_offset, window.next_offset()) == (9, 9, 9)


def test_who_holds_what() -> None:
    window = acquired((0, 4), (5, 9))
    window.batches[1].runs[0].member = "bob"
    assert [batch.first for batch in window.held("bob")] == [5]
    assert window.held("cat") == []
