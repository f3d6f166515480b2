import pytest

from protocol.errors import ErrorCode
from storage.errors import AppendRefused
from storage.producers.entry import SEQUENCE_MAX, ProducerEntry, advance, check_sequence, retreat


def entry_after(*sequences, epoch=0):
    """A producer that wrote batches (first, last), one record each offset."""
    entry = ProducerEntry(7, epoch)
    offset = 0
    for first, last in sequences:
        delta = (last - first) % (SEQUENCE_MAX + 1)
        offset += delta
        entry.add(epoch, first, last, offset, delta, 100)
        offset += 1
    return entry


def refusal(entry, epoch, first, last):
    with pytest.raises(AppendRefused) as caught:
        check_sequence(entry, epoch, first, last, True)
    return caught.value.error


def test_sequences_go_round_at_two_to_the_31():
    assert advance(SEQUENCE_MAX, 1) == 0
    assert advance(SEQUENCE_MAX - 1, 5) == 3
    assert retreat(3, 5) == SEQUENCE_MAX - 1


def test_after_the_greatest_sequence_comes_zero_and_not_one():
    """storage.md 72."""
    entry = entry_after((SEQUENCE_MAX, SEQUENCE_MAX))
    assert check_sequence(entry, 0, 0, 0, True) is None
    assert refusal(entry, 0, 1, 1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_batch_may_wrap_inside():
    """storage.md 72."""
    entry = entry_after((SEQUENCE_MAX - 1, 3))
    assert check_sequence(entry, 0, 4, 4, True) is None
    assert check_sequence(entry, 0, SEQUENCE_MAX - 1, 3, True) == (SEQUENCE_MAX - 1, 3, 5, 5, 100)


def test_the_last_five_batches_are_duplicates_older_and_partial_ones_are_out_of_order():
    """storage.md 75."""
    entry = entry_after((0, 2), (3, 3), (4, 6), (7, 7), (8, 9), (10, 10))
    for first, last, offset in ((10, 10, 10), (8, 9, 9), (7, 7, 7), (4, 6, 6), (3, 3, 3)):
        assert check_sequence(entry, 0, first, last, True)[2] == offset
    assert refusal(entry, 0, 0, 2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(entry, 0, 4, 5) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refusal(entry, 0, 12, 12) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert check_sequence(entry, 0, 11, 20, True) is None


def test_an_older_epoch_is_fenced_and_a_newer_one_begins_at_zero():
    entry = entry_after((0, 4), epoch=3)
    assert refusal(entry, 2, 5, 5) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal(entry, 4, 5, 5) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert check_sequence(entry, 4, 0, 0, True) is None
    entry.add(4, 0, 0, 5, 0, 100)
    assert [b[0] for b in entry.batches] == [0]


def test_a_producer_known_by_a_marker_only_begins_at_zero():
    """storage.md 73."""
    entry = ProducerEntry(7, 2)
    assert refusal(entry, 2, 17, 17) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert check_sequence(entry, 2, 0, 0, True) is None
    assert refusal(entry, 1, 0, 0) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_the_coordinators_batches_are_checked_for_their_epoch_only():
    entry = entry_after((0, 4), epoch=3)
    assert check_sequence(entry, 3, -1, -1, False) is None
    with pytest.raises(AppendRefused):
        check_sequence(entry, 2, -1, -1, False)
