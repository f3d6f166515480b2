"""Each breach of a transaction must be seen, or runs that end well prove nothing."""

from __future__ import annotations

import pytest

from protocol.records.batch import Record
from protocol.records.builder import build_batch
from protocol.records.control import build_end_marker
from tests.simulation.committed_reader import committed_rows
from tests.simulation.ledger import NO_OFFSET, Ledger, Outcome

P, Q = ("t", 0), ("t", 1)
A, B, C = b"a ", b"b ", b"c "


class Story:
    """A transaction of two records on two partitions, with an offset, as its producer left it."""

    def __init__(self, outcome=Outcome.OPEN, *, asked=True):
        self.failures = []
        self.ledger = Ledger(self.failures.append)
        self.txn = self.ledger.begin("w")
        self.ledger.adds(self.txn, P, [A])
        self.ledger.adds(self.txn, Q, [B])
        self.txn.offset, self.txn.outcome, self.txn.commit_asked = 1, outcome, asked

    def end(self, p=(), q=(), offset=NO_OFFSET):
        rows = {P: list(enumerate(p)), Q: list(enumerate(q))}
        self.ledger.check_end(rows, {"w": {P: offset}})
        return self.failures


@pytest.mark.parametrize(
    ("outcome", "end"),
    [
        (Outcome.COMMITTED, ([A], [B], 1)),
        (Outcome.ABORTED, ([], [], NO_OFFSET)),
        (Outcome.OPEN, ([], [], NO_OFFSET)),
        (Outcome.UNKNOWN, ([A], [B], 1)),
        (Outcome.UNKNOWN, ([], [], NO_OFFSET)),
        (Outcome.COMMITTED, ([C, A], [B], 1)),  # one record is nobody's transaction's
    ],
)
def test_an_end_as_it_should_be(outcome, end):
    assert Story(outcome).end(*end) == []


@pytest.mark.parametrize(
    ("outcome", "end", "words"),
    [
        (Outcome.COMMITTED, ([], [], NO_OFFSET), "0 of its 2 records"),
        (Outcome.COMMITTED, ([A], [], 1), "1 of its 2 records"),
        (Outcome.COMMITTED, ([A, A], [B], 1), "is there 2 times"),
        (Outcome.COMMITTED, ([A], [B], NO_OFFSET), "has committed -1 of ('t', 0), not 1"),
        (Outcome.COMMITTED, ([A, B], [], 1), "was sent to ('t', 1)"),
        (Outcome.ABORTED, ([A], [B], 1), "2 of its 2 records"),
        (Outcome.ABORTED, ([], [], 1), "has committed 1 of ('t', 0), not -1"),
        (Outcome.OPEN, ([], [B], NO_OFFSET), "1 of its 2 records"),
        (Outcome.UNKNOWN, ([A], [], 1), "1 of its 2 records"),
        (Outcome.UNKNOWN, ([], [], 1), "has committed 1 of ('t', 0), not -1"),
        (Outcome.UNKNOWN, ([A], [B], NO_OFFSET), "has committed -1 of ('t', 0), not 1"),
    ],
)
def test_a_breach_at_the_end_is_seen(outcome, end, words):
    failures = Story(outcome).end(*end)
    assert any(words in failure for failure in failures), failures


def test_the_offset_is_that_of_the_last_transaction_that_is_there():
    story = Story(Outcome.COMMITTED)
    second = story.ledger.begin("w")
    story.ledger.adds(second, P, [C])
    second.offset, second.outcome, second.commit_asked = 2, Outcome.UNKNOWN, True
    assert story.end([A], [B], 1) == []
    assert story.end([A, C], [B], 2) == []
    assert story.ledger.count(Outcome.UNKNOWN) == 1
    assert len(story.end([A, C], [B], 1)) == 1


@pytest.mark.parametrize(
    ("outcome", "asked", "breaches"),
    [
        (Outcome.OPEN, False, 1),
        (Outcome.OPEN, True, 0),
        (Outcome.ABORTED, True, 1),
        (Outcome.UNKNOWN, True, 0),
        (Outcome.COMMITTED, True, 0),
    ],
)
def test_what_a_reader_sees_too_early_or_in_spite_of_an_abort_is_told(outcome, asked, breaches):
    story = Story(outcome, asked=asked)
    story.ledger.seen("r", P, [(0, C), (1, A)])
    assert len(story.failures) == breaches
    assert (story.ledger.seen_records, story.ledger.is_transactional(C)) == (1, False)


def batch(offset, producer_id, *values):
    records = [Record(at, 0, None, value) for at, value in enumerate(values)]
    return build_batch(
        records,
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )


def marker(offset, producer_id, commit):
    made = bytearray(
        build_end_marker(commit, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, timestamp=0)
    )
    made[:8] = offset.to_bytes(8, "big")
    return made


def test_a_reader_leaves_out_what_was_aborted_up_to_its_marker():
    data = b"".join(
        (
            bytes(batch(0, 7, A, A)),
            bytes(batch(2, 8, B)),
            bytes(marker(3, 7, False)),
            bytes(batch(4, 7, C)),
            bytes(marker(5, 8, True)),
            bytes(marker(6, 7, True)),
        )
    )
    assert committed_rows(data, [(0, 7)], 0) == [(2, B), (4, C)]
    assert committed_rows(data, [(0, 7), (2, 8)], 0) == [(4, C)]
    assert committed_rows(data, [(4, 7)], 0) == [(0, A), (1, A), (2, B)]
    assert committed_rows(data, [], 1) == [(1, A), (2, B), (4, C)]
