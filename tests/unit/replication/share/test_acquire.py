"""How much an acquisition takes (the numbers are Apache Kafka's)."""

from __future__ import annotations

import pytest

from replication.share.acquire import RECORD_LIMIT
from replication.share.ports import Limits, StateBatch
from replication.share.runs import ACKNOWLEDGED, AVAILABLE
from tests.unit.replication.share.play import LIMITS, log, say, share, take


def test_nothing_read_gives_nothing() -> None:
    found = share()
    assert take(found, []) == []
    assert take(found, log((0, 9)), max_records=0) == []
    assert take(share(20), log((0, 9))) == []


def test_whole_batches_up_to_the_one_that_has_enough() -> None:
    found = share()
    batches = log((0, 4), (5, 9), (10, 14))
    assert take(found, batches, max_records=6) == [(0, 9, 1)]
    assert take(found, batches[2:], max_records=5) == [(10, 14, 1)]


def test_pieces_of_about_a_size() -> None:
    assert take(share(), log((0, 3), (4, 7), (8, 20), (21, 21)), batch_size=5) == [
        (0, 7, 1),
        (8, 20, 1),
        (21, 21, 1),
    ]
    assert take(share(), log((0, 3), (4, 7)), batch_size=8) == [(0, 7, 1)]


def test_a_limit_of_records_cuts_a_batch() -> None:
    found = share()
    batches = log((0, 9), (10, 19))
    assert take(found, batches, max_records=4, mode=RECORD_LIMIT) == [(0, 3, 1)]
    assert found.next_offset() == 4
    assert take(found, batches, max_records=8, mode=RECORD_LIMIT) == [(4, 9, 1), (10, 11, 1)]
    assert take(found, batches, max_records=1) == [(12, 19, 1)]


def test_with_a_limit_pieces_have_no_size() -> None:
    assert take(share(), log((0, 3), (4, 7)), batch_size=2, max_records=8, mode=RECORD_LIMIT) == [(0, 7, 1)]


def test_what_is_free_again_comes_with_its_count() -> None:
    found = share()
    batches = log((0, 4), (5, 9))
    take(found, batches)
    say(found, 2, 3, 2)
    assert take(found, batches, member="bob") == [(2, 3, 2)]
    say(found, 0, 1, 2)
    say(found, 4, 9, 2)
    assert take(found, [*batches, *log((10, 12))], member="bob") == [(0, 1, 2), (4, 9, 2), (10, 12, 1)]


def test_a_read_from_the_middle_takes_what_it_covers() -> None:
    found = share(0, StateBatch(0, 9, AVAILABLE, 1))
    assert take(found, log((5, 9)), fetch_offset=5) == [(5, 9, 2)]
    assert found.next_offset() == 0


def test_the_window_is_bounded_but_gives_what_is_free_in_it() -> None:
    found = share(limits=LIMITS._replace(max_record_locks=10))
    batches = log((0, 7), (8, 15), (16, 23))
    assert take(found, batches) == [(0, 15, 1)]  # the batch with the tenth record is the last
    assert not found.can_acquire()
    assert take(found, batches[2:]) == []
    say(found, 3, 4, 2)
    assert found.can_acquire()
    assert take(found, batches, max_records=20) == [(3, 4, 2)]
    say(found, 0, 2, 1)
    assert not found.can_acquire()
    say(found, 3, 10, 1)
    assert take(found, batches) == [(16, 23, 1)]


def test_unknown_offsets_are_acquired_between_stored_ones() -> None:
    found = share(10, StateBatch(15, 19, ACKNOWLEDGED, 1), StateBatch(25, 29, AVAILABLE, 2))
    assert take(found, log((10, 29))) == [(10, 14, 1), (20, 24, 1), (25, 29, 3)]
    assert found.next_offset() == 30


def test_an_unknown_gap_ends_with_the_window() -> None:
    found = share(10, StateBatch(15, 19, AVAILABLE, 1))
    assert take(found, log((10, 30)), max_records=1) == [(10, 14, 1)]
    assert found.next_offset() == 15
    assert take(found, log((10, 30)), fetch_offset=15) == [(15, 19, 2), (20, 30, 1)]


def test_what_compaction_took_is_archived() -> None:
    found = share()
    batches = log((0, 4), (5, 9), (10, 14))
    assert take(found, batches, batch_size=1) == [(0, 4, 1), (5, 9, 1), (10, 14, 1)]
    say(found, 0, 14, 2)
    assert take(found, batches[2:], fetch_offset=0) == [(10, 14, 2)]
    assert found.next_offset() == 15
    found.advance()
    assert found.window.start_offset == 10


def test_a_batch_that_begins_below_the_start_is_taken_from_the_start() -> None:
    found = share(3)
    assert take(found, log((0, 9))) == [(3, 9, 1)]
    assert found.window.start_offset == 3


def test_the_first_records_may_lie_behind_the_start() -> None:
    found = share(0)
    assert take(found, log((20, 24))) == [(20, 24, 1)]
    assert found.window.start_offset == 20


@pytest.mark.parametrize(
    ("limit", "parts"),
    [
        (5, {3: [(0, 7)], 4: [(0, 3), (4, 7)], 5: [(0, 0), (1, 1)]}),
        (6, {3: [(0, 7)], 4: [(0, 3), (4, 7)], 5: [(0, 1), (2, 3), (4, 5)], 6: [(0, 0), (1, 1)]}),
        (2, {2: [(0, 7)]}),
        (3, {2: [(0, 7)], 3: [(0, 0), (1, 1)]}),
    ],
)
def test_what_fails_often_comes_in_smaller_parts(limit: int, parts: dict[int, list[tuple[int, int]]]) -> None:
    found = share(limits=Limits(1000, limit, 200))
    batches = log((0, 7))
    for count in range(1, limit + 1):
        expected = parts.get(count, [(0, 7)])
        for first, last in expected:
            assert take(found, batches) == [(first, last, count)]
        while found.next_offset() < 8:
            take(found, batches)
        say(found, 0, 7, 2)
    assert found.window.batches == []  # archived at the limit


def test_a_part_that_fails_often_does_not_come_with_others() -> None:
    found = share(0, StateBatch(0, 3, AVAILABLE, 1), StateBatch(4, 7, AVAILABLE, 3))
    batches = log((0, 3), (4, 7), (8, 9))
    assert take(found, batches) == [(0, 3, 2)]
    assert take(found, batches) == [(4, 5, 4)]
    assert take(found, batches) == [(6, 7, 4)]
    assert take(found, batches) == [(8, 9, 1)]


def test_a_record_in_its_last_delivery_is_alone() -> None:
    found = share(0, StateBatch(0, 1, AVAILABLE, 1), StateBatch(2, 3, AVAILABLE, 4))
    batches = log((0, 5))
    assert take(found, batches) == [(0, 1, 2)]
    assert take(found, batches) == [(2, 2, 5)]
    assert take(found, batches) == [(3, 3, 5)]
    assert take(found, batches) == [(4, 5, 1)]
