from protocol.records.batch import read_header
from storage.cleaner.transactions import CleanedTransactions
from storage.scan import BatchFacts, facts_at
from storage.txn_index import AbortedTxn
from tests.support.logs import batch, marker


def facts(data: bytearray) -> BatchFacts:
    return facts_at(bytes(data), 0, 0)


def data(base: int, producer: int, count: int = 1) -> bytearray:
    return batch(count, base=base, producer=producer, epoch=0, sequence=0, transactional=True)


def test_batches_of_an_aborted_transaction_are_known_up_to_its_marker() -> None:
    entry = AbortedTxn(1, 5, 9, 5)
    known = CleanedTransactions([entry])
    assert not known.sees_aborted(facts(data(4, 1)))
    known._committed.clear()
    assert known.sees_aborted(facts(data(5, 1, 2)))
    assert not known.sees_aborted(facts(data(7, 2)))
    assert not known.sees_aborted(facts(batch(1, base=8, producer=1, epoch=0, sequence=0)))
    end = marker(1, 0, commit=False, base=9)
    assert not known.sees_useless_marker(facts(end), bytes(end))
    assert known.kept == [entry]
    assert not known.sees_aborted(facts(data(10, 1)))


def test_an_abort_marker_is_useless_once_its_batches_are_gone_and_so_is_the_index_entry() -> None:
    known = CleanedTransactions([AbortedTxn(1, 5, 9, 5)])
    end = marker(1, 0, commit=False, base=9)
    assert known.sees_useless_marker(facts(end), bytes(end))
    assert known.kept == []


def test_a_commit_marker_is_useless_without_batches_before_it() -> None:
    known = CleanedTransactions([])
    first, second = marker(1, 0, commit=True, base=3), marker(1, 0, commit=True, base=6)
    assert not known.sees_aborted(facts(data(2, 1)))
    assert not known.sees_useless_marker(facts(first), bytes(first))
    assert known.sees_useless_marker(facts(second), bytes(second))


def test_an_emptied_control_batch_is_useless() -> None:
    end = marker(1, 0, commit=True)[:61]
    end[57:61] = bytes(4)
    assert read_header(end).record_count == 0
    assert CleanedTransactions([]).sees_useless_marker(facts(end), bytes(end))
