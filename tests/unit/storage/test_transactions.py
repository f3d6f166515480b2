"""Transactions in a log: last stable offset, aborted lists, fencing, and what outlives restarts and cuts."""

import errno

import pytest

from protocol.errors import ErrorCode
from storage.errors import StorageFailed
from storage.log_config import LogConfig
from storage.txn_index import AbortedTxn
from tests.support.logs import START_MS, batch, marker
from tests.unit.storage.txn_log import Log, refused

# --- the last stable offset


def test_an_open_transaction_holds_the_last_stable_offset():
    log = Log()
    log.plain(2)
    assert log.data(1, 2) == 2
    log.plain(1)
    log.replicate()
    assert (log.log.high_watermark, log.log.last_stable_offset) == (5, 2)
    assert log.log.first_unstable_offset == 2
    log.commit(1)
    assert log.log.last_stable_offset == 2  # the marker is not replicated yet
    log.replicate()
    assert log.log.last_stable_offset == 6
    assert log.log.first_unstable_offset is None


def test_a_transaction_is_undecided_until_its_marker_is_below_the_high_watermark():
    """storage.md 81."""
    log = Log()
    log.plain(99)
    assert log.data(1, 6) == 99
    assert log.data(2, 4) == 105
    log.replicate(100)
    assert log.log.first_unstable_offset == 99
    assert log.commit(1) == 109
    assert log.log.first_unstable_offset == 99
    log.replicate(110)
    assert log.log.first_unstable_offset == 105
    log.plain(2)
    assert log.abort(2) == 112
    assert log.log.first_unstable_offset == 105
    log.replicate(113)
    assert log.log.first_unstable_offset is None


def test_a_staged_batch_or_marker_changes_nothing_for_readers():
    log = Log()
    log.data(1)
    log.replicate()
    log.stage(marker(1, 0, commit=True))
    log.replicate()
    assert log.log.last_stable_offset == 0
    log.log.write_pending()
    log.replicate()
    assert log.log.last_stable_offset == 2
    log.stage(batch(1, producer=1, epoch=0, sequence=1, transactional=True))
    assert log.log.first_unstable_offset is None
    log.log.write_pending()
    assert log.log.first_unstable_offset == 2


def test_the_first_unstable_offset_is_never_below_the_start():
    log = Log()
    log.data(1, 5)
    log.plain(5)
    log.replicate()
    log.log.delete_records(3)
    assert log.log.first_unstable_offset == 3
    assert log.log.last_stable_offset == 3
    log.commit(1)
    log.replicate()
    assert log.log.last_stable_offset == 11


def test_a_mixed_append_of_a_follower():
    """storage.md 84: one transaction completed, three empty markers, one aborted whole, one left open."""
    log = Log()
    log.data(1, 5)
    log.replicate()
    fetched, at = bytearray(), 5

    def take(data):
        nonlocal at, fetched
        fetched += data
        at += 1

    take(marker(1, 0, commit=True, base=at))
    for producer in (2, 3, 4):
        take(marker(producer, 0, commit=True, base=at))
    take(batch(1, producer=5, epoch=0, sequence=0, base=at, transactional=True))
    take(marker(5, 0, commit=False, base=at))
    take(batch(1, producer=6, epoch=0, sequence=0, base=at, transactional=True, leader_epoch=0))
    log.log.append_as_follower(fetched, START_MS)
    assert log.log.first_unstable_offset == 0  # its marker is not below the high watermark
    log.replicate()
    assert log.log.first_unstable_offset == 11
    assert log.log.aborted(0, 100) == [AbortedTxn(5, 9, 10, 11)]
    assert set(log.log.producers.entries) == {1, 2, 3, 4, 5, 6}


# --- aborted transactions


def test_what_was_aborted_is_listed_for_the_range_that_was_read():
    log = Log()
    log.data(1)
    log.abort(1)
    log.data(2)
    log.data(3)
    log.commit(3)
    log.abort(2)
    log.plain(1)
    log.replicate()
    assert log.log.aborted(0, 100) == [AbortedTxn(1, 0, 1, 2), AbortedTxn(2, 2, 5, 6)]
    assert log.log.aborted(0, 2) == [AbortedTxn(1, 0, 1, 2)]
    assert log.log.aborted(2, 4) == [AbortedTxn(2, 2, 5, 6)]
    assert log.log.aborted(6, 100) == []
    assert log.fetched_aborted(0) == [(1, 0), (2, 2)]
    assert log.fetched_aborted(6) == []
    assert log.fetched_aborted(7) == []


def test_the_stable_offset_in_the_index_is_that_of_the_other_open_transactions():
    log = Log()
    log.data(1)
    log.data(2)
    log.data(3)
    log.abort(2)
    log.abort(1)
    assert log.log.aborted(0, 100) == [AbortedTxn(2, 1, 3, 0), AbortedTxn(1, 0, 4, 2)]


def test_an_aborted_transaction_over_several_segments_is_found_from_its_first_offset():
    """storage.md 85."""
    log = Log(LogConfig(segment_bytes=300))
    log.data(1, 2)
    for _ in range(6):
        log.plain(2)
    assert len(log.log.local.segments) > 2
    log.data(1, 1)
    log.abort(1)
    log.replicate()
    assert log.fetched_aborted(0, max_bytes=1) == [(1, 0)]
    assert [segment.base_offset for segment in log.log.local.segments if len(segment.txn_index)] == [
        log.log.active.base_offset
    ]
    names = log.files.list_dir("/logs/t-0")
    assert [n for n in names if n.endswith(".txnindex")] == [f"{log.log.active.base_offset:020d}.txnindex"]


def test_what_is_aborted_in_the_next_segment_is_not_told_with_this_one():
    log = Log(LogConfig(segment_bytes=300))
    log.plain()
    while len(log.log.local.segments) == 1:
        log.plain()
    log.data(1)
    log.abort(1)
    log.replicate()
    assert log.fetched_aborted(0) == []
    assert log.fetched_aborted(log.log.active.base_offset) == [(1, log.log.end_offset - 2)]


def test_a_segment_that_goes_takes_its_aborted_transactions_along():
    log = Log(LogConfig(segment_bytes=300, file_delete_delay_ms=100))
    log.data(1)
    log.abort(1)
    for _ in range(6):
        log.plain(2)
    log.replicate()
    log.log.delete_records(12)
    log.log.delete_old_segments(START_MS)
    assert log.log.aborted(12, 100) == []
    assert "00000000000000000000.txnindex.deleted" in log.files.list_dir("/logs/t-0")
    log.clock.ms += 100
    for remove in log.manager.take_doomed():
        remove()
    assert not [n for n in log.files.list_dir("/logs/t-0") if n.endswith(".deleted")]


# --- fencing


def test_a_batch_outside_of_its_open_transaction_is_refused():
    log = Log()
    log.data(1)
    with refused(ErrorCode.INVALID_TXN_STATE):
        log.stage(batch(1, producer=1, epoch=0, sequence=1))
    log.commit(1)
    assert log.write(batch(1, producer=1, epoch=0, sequence=1)) == 2


def test_markers_fence_producers_and_older_coordinators():
    """storage.md 73, 74, 83."""
    log = Log()
    log.data(1, 3)
    log.abort(1, epoch=4, coordinator_epoch=7)
    assert not log.log.producers.entries[1].batches
    assert not log.log.producers.has_ongoing_transaction(1, 4)
    for clean in (None, True, False):
        if clean is not None:
            log.restart(clean=clean)
        with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
            log.stage(batch(1, producer=1, epoch=3, sequence=0, transactional=True))
        with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
            log.abort(1, epoch=3, coordinator_epoch=7)
        with refused(ErrorCode.TRANSACTION_COORDINATOR_FENCED):
            log.abort(1, epoch=4, coordinator_epoch=6)
        with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
            log.stage(batch(1, producer=1, epoch=4, sequence=17, transactional=True))
        assert not log.log.staged
    log.commit(1, epoch=4, coordinator_epoch=7)  # of an empty transaction, an equal epoch
    log.commit(1, epoch=4, coordinator_epoch=8)
    assert log.write(batch(1, producer=1, epoch=4, sequence=0, transactional=True)) == 6


def test_an_empty_transaction_leaves_no_trace_in_the_index():
    log = Log()
    log.abort(1)
    log.abort(1)
    log.replicate()
    assert log.log.aborted(0, 100) == []
    assert log.log.last_stable_offset == 2


def test_a_coordinator_may_append_any_sequence():
    log = Log()
    first = batch(1, producer=1, epoch=0, sequence=-1, transactional=True)
    assert log.write(first, check_order=False) == 0
    assert log.write(batch(1, producer=1, epoch=0, transactional=True), check_order=False) == 1
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        log.abort(1, epoch=-1)
    log.commit(1)
    log.replicate()
    assert log.log.last_stable_offset == 3


# --- restarts, cuts, failures


@pytest.mark.parametrize("clean", [True, False])
def test_open_and_aborted_transactions_outlive_a_restart(clean):
    """storage.md 77."""
    log = Log()
    log.plain(3)
    log.data(1, 2)
    log.data(2)
    log.data(3)
    log.abort(2)
    log.commit(3)
    log.replicate()
    aborted = log.log.aborted(0, 100)
    assert aborted == [AbortedTxn(2, 5, 7, 3)]
    for _ in range(2):
        log.restart(clean=clean)
        assert log.log.last_stable_offset == 3
        assert log.log.aborted(0, 100) == aborted
        assert log.log.producers.has_ongoing_transaction(1, 0)
        assert not log.log.producers.has_ongoing_transaction(3, 0)
    log.commit(1)
    log.replicate()
    assert log.log.last_stable_offset == log.log.end_offset


def test_expiry_spares_open_transactions_and_an_expired_producer_starts_anew():
    """storage.md 82."""
    log = Log()
    log.data(1)
    log.write(batch(1, producer=2, epoch=0, sequence=0))
    log.clock.ms += 86_400_000
    assert sum(log.manager.expire_producers()) == 1
    assert list(log.log.producers.entries) == [1]
    assert log.write(batch(1, producer=2, epoch=0, sequence=1)) == 2
    log.clock.ms += 86_400_000
    log.restart()
    assert list(log.log.producers.entries) == [1]  # expired entries of a snapshot are not taken over


@pytest.mark.parametrize("snapshots", [True, False])
def test_lost_indexes_are_rebuilt_with_the_same_aborted_transactions(snapshots):
    """storage.md 15, 68: the transaction began in an earlier segment, another one is open."""
    log = Log(LogConfig(segment_bytes=400))
    log.data(1, 2)
    for _ in range(5):
        log.plain(2)
    log.data(2)
    log.data(1, 1)
    log.abort(1)
    log.abort(2)
    log.data(3)
    log.data(4)
    log.abort(4)
    for _ in range(4):
        log.plain(2)
    log.replicate()
    log.log.flush()
    before = log.log.aborted(0, 1000)
    assert [entry.producer_id for entry in before] == [1, 2, 4]
    log.manager.close()
    directory = "/logs/t-0"
    for name in log.files.list_dir(directory):
        gone = name.endswith((".index", ".txnindex")) or (not snapshots and name.endswith(".snapshot"))
        if gone:
            log.files.remove(f"{directory}/{name}")
    log.open()
    log.replicate()
    assert log.log.aborted(0, 1000) == before
    assert log.log.producers.has_ongoing_transaction(3, 0)


def test_truncation_reopens_what_a_marker_had_closed():
    log = Log(LogConfig(segment_bytes=300))
    log.data(1)
    log.data(2)
    log.replicate()
    log.abort(1)
    log.commit(2)
    assert log.log.aborted(0, 100)
    log.log.truncate_to(2, START_MS)
    assert log.log.aborted(0, 100) == []
    assert log.log.first_unstable_offset == 0
    assert log.log.producers.has_ongoing_transaction(1, 0)
    log.commit(1)
    log.abort(2)
    log.replicate()
    assert log.log.aborted(0, 100) == [AbortedTxn(2, 1, 3, 4)]
    log.log.truncate_fully(7, START_MS)
    assert log.log.first_unstable_offset is None
    assert log.log.aborted(7, 100) == []


@pytest.mark.parametrize("kind", ["data", "marker"])
def test_a_failed_write_takes_transactions_back(kind):
    log = Log()
    if kind == "marker":
        log.data(1)
    log.replicate()
    stable = log.log.last_stable_offset
    log.files.fail_next("append", errno.ENOSPC, ".log")
    write = log.data if kind == "data" else log.abort
    with pytest.raises(StorageFailed):
        write(1)
    assert log.log.last_stable_offset == stable
    assert log.log.producers.has_ongoing_transaction(1, 0) == (kind == "marker")
    assert log.log.aborted(0, 100) == []
    if kind == "data":
        log.data(1)
    log.abort(1)
    log.replicate()
    assert log.log.aborted(0, 100) == [AbortedTxn(1, 0, 1, 2)]


def test_a_follower_takes_back_what_it_replayed_when_its_write_fails():
    log = Log()
    log.files.fail_next("append", errno.ENOSPC, ".log")
    first = batch(1, producer=1, epoch=0, sequence=0, transactional=True, leader_epoch=0)
    with pytest.raises(StorageFailed):
        log.log.append_as_follower(first, START_MS)
    assert not log.log.producers.entries
    log.log.append_as_follower(first, START_MS)
    assert log.log.first_unstable_offset == 0


def test_a_full_disk_does_not_lose_an_index_entry():
    log = Log()
    log.data(1)
    log.files.fail_next("append", errno.ENOSPC, ".txnindex", 7)
    log.abort(1)
    log.replicate()
    assert log.log.last_stable_offset == 2
    assert log.log.aborted(0, 2) == [AbortedTxn(1, 0, 1, 2)]
    log.restart()
    assert log.log.aborted(0, 2) == [AbortedTxn(1, 0, 1, 2)]


def test_a_failing_disk_stops_the_last_stable_offset_and_recovery_makes_the_index_whole():
    log = Log()
    log.data(1)
    log.files.fail_next("append", errno.EIO, ".txnindex")
    log.abort(1)
    log.replicate()
    assert log.log.directory.offline
    assert log.log.last_stable_offset == 0
    log.restart(clean=False)
    log.replicate()
    assert log.log.last_stable_offset == 2
    assert log.log.aborted(0, 2) == [AbortedTxn(1, 0, 1, 2)]


def test_the_index_of_a_closed_segment_is_not_lost_by_a_power_cut_after_a_flush():
    log = Log()
    log.data(1)
    log.log.flush()
    log.abort(1)
    log.log.roll(START_MS)
    log.log.flush()
    log.log.directory.write_recovery_points()
    log.files = log.files.crash(lambda path, unsynced: 0)
    log.open()
    log.replicate()
    assert log.log.recovery_point == 2
    assert log.log.aborted(0, 2) == [AbortedTxn(1, 0, 1, 2)]


def test_a_log_closed_without_producers_is_opened_without_loading_any():
    log = Log()
    log.plain(5)
    log.restart()
    log.replicate()
    assert log.log.last_stable_offset == 5
    assert not log.log.has_producers


def test_an_open_transaction_is_not_forgotten_with_the_last_of_its_records():
    log = Log(LogConfig(retention_ms=0))
    log.data(1, 2)
    log.replicate()
    assert log.log.delete_old_segments(START_MS + 1) == 1
    for clean in (True, False, True):
        log.restart(clean=clean)
        assert (log.log.start_offset, log.log.end_offset) == (2, 2)
        assert log.log.first_unstable_offset == 2
    log.plain()
    log.replicate()
    assert log.log.last_stable_offset == 2
    log.abort(1)
    log.replicate()
    assert log.log.last_stable_offset == 4
    assert log.fetched_aborted(2) == [(1, 0)]


def test_retention_takes_segments_under_an_open_transaction():
    """Time does not wait for who does not end; what is left of the transaction is still undecided."""
    log = Log(LogConfig(segment_bytes=300, retention_ms=10))
    log.data(1)
    for _ in range(6):
        log.plain(2)
    log.data(1)
    log.replicate()
    assert log.log.last_stable_offset == 0
    assert log.log.delete_old_segments(START_MS + 1000) > 1
    start = log.log.start_offset
    assert start > 1
    assert log.log.last_stable_offset == start
    log.restart(clean=False)
    assert log.log.last_stable_offset == start
    log.abort(1)
    log.replicate()
    assert log.log.last_stable_offset == log.log.end_offset == 15
    assert log.fetched_aborted(14) == [(1, 0)]


def test_a_marker_of_version_2_raises_the_epoch():
    """KIP-890: one of the same epoch is refused, unless it is sent again or no epoch is left."""
    log = Log()

    def end(epoch, version=2):
        return log.write(marker(1, epoch, commit=True), transaction_version=version)

    log.data(1)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        end(0)
    assert end(1) == 1
    assert end(1) == 2, "the transaction is closed: the coordinator asks again"
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        end(0)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        log.data(1)
    log.data(1, epoch=1)
    assert end(1, version=1) == 4
    log.data(1, epoch=0x7FFF)
    assert end(0x7FFF) == 6
