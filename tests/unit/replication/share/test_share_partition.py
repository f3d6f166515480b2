"""The door of a share partition: phases, locks that run out, the end of sessions, aborted transactions."""

from __future__ import annotations

import pytest

from replication.share.acknowledge import Ack
from replication.share.acquire import Wish
from replication.share.log_batches import LogBatch
from replication.share.ports import Limits, ShareState, StateBatch
from replication.share.runs import ACKNOWLEDGED, ARCHIVED, AVAILABLE
from replication.share.share_partition import Phase, SharePartition
from tests.unit.replication.share.play import LIMITS, log, say, share, take


def test_only_an_active_one_gives_records() -> None:
    found = SharePartition(lambda: LIMITS)
    assert not found.can_acquire()
    assert take(found, log((0, 4))) == []
    found.load(ShareState(4, 0), 0)
    assert (found.phase, found.state_epoch) == (Phase.ACTIVE, 4)
    assert take(found, log((0, 4))) == [(0, 4, 1)]
    found.fence()
    assert not found.can_acquire()


def test_a_state_that_cannot_be_right_does_not_load() -> None:
    found = SharePartition(lambda: LIMITS)
    with pytest.raises(ValueError, match="does not follow"):
        found.load(ShareState(0, 10, [StateBatch(5, 6, AVAILABLE, 1)]), 10)
    assert found.phase is Phase.LOADING


def test_locks_run_out_at_their_time() -> None:
    found = share()
    take(found, log((0, 4)), now_ms=100)
    take(found, log((5, 9)), now_ms=300)
    assert found.next_deadline_ms() == 1100
    assert found.expire(1099) == []
    assert found.expire(1100) == [StateBatch(0, 4, AVAILABLE, 1)]
    assert found.next_deadline_ms() == 1300
    assert take(found, log((0, 9)), now_ms=1200) == [(0, 4, 2)]
    assert found.expire(1300) == [StateBatch(5, 9, AVAILABLE, 1)]
    assert found.next_deadline_ms() == 2200


def test_what_was_said_in_time_does_not_run_out() -> None:
    found = share()
    take(found, log((0, 4)))
    say(found, 0, 4, 1)
    assert found.expire(5000) == []
    assert found.next_deadline_ms() is None


def test_what_is_on_its_way_does_not_run_out_unless_it_is_not_stored() -> None:
    found = share()
    take(found, log((0, 4)))
    transition = found.acknowledge("ann", [Ack(0, 4, [1])], 0, True)
    assert found.expire(2000) == []
    found.roll_back(transition, 2000)
    assert found.next_offset() == 0
    take(found, log((0, 4)), now_ms=2000)
    transition = found.acknowledge("ann", [Ack(0, 4, [1])], 2000, True)
    found.expire(2500)
    found.roll_back(transition, 2500)
    assert found.next_deadline_ms() == 3000


def test_at_the_limit_a_lock_that_runs_out_archives() -> None:
    found = share(0, StateBatch(0, 0, AVAILABLE, 4))
    take(found, log((0, 0)))
    assert found.expire(1000) == [StateBatch(0, 0, ARCHIVED, 5)]
    assert found.advance()
    assert found.window.start_offset == 1


def test_below_the_start_a_lock_that_runs_out_archives_and_is_not_stored() -> None:
    found = share()
    take(found, log((0, 9)))
    found.move_start(4)
    assert found.expire(1000) == [StateBatch(4, 9, AVAILABLE, 1)]
    assert found.next_offset() == 4
    assert not any(run.free for batch in found.window.batches for run in batch.touching(0, 3))


def test_the_end_of_a_session_gives_back_what_its_member_holds() -> None:
    found = share()
    take(found, log((0, 4)))
    take(found, log((5, 9)), member="bob")
    say(found, 1, 1, 1)
    transition = found.release("ann")
    assert found.state_batches(transition) == [StateBatch(0, 0, AVAILABLE, 1), StateBatch(2, 4, AVAILABLE, 1)]
    found.commit(transition)
    assert take(found, log((0, 9)), member="cat") == [(0, 0, 2), (2, 4, 2)]
    assert found.state_batches(found.release("ann")) == []


def test_the_end_of_a_session_below_the_start() -> None:
    found = share()
    take(found, log((0, 9)))
    found.move_start(4)
    transition = found.release("ann")
    assert found.state_batches(transition) == [StateBatch(4, 9, AVAILABLE, 1)]
    found.commit(transition)
    assert found.next_offset() == 4


def test_settings_take_effect_at_once() -> None:
    limits = [Limits(1000, 5, 200)]
    found = SharePartition(lambda: limits[0])
    found.load(ShareState(0, 0), 0)
    take(found, log((0, 4)))
    limits[0] = Limits(50, 1, 200)
    say(found, 0, 4, 2)
    assert found.window.start_offset == 5
    take(found, log((5, 6)), now_ms=10)
    assert found.next_deadline_ms() == 60


def data(first: int, last: int, producer_id: int) -> LogBatch:
    return LogBatch(first, last, first * 10, 10, producer_id, True)


def marker(offset: int, producer_id: int, abort: bool) -> LogBatch:
    return LogBatch(offset, offset, offset * 10, 10, producer_id, True, abort)


def test_data_of_aborted_transactions_is_archived() -> None:
    found = share()
    read = [
        LogBatch(0, 1, 0, 10),
        data(2, 4, 7),
        data(5, 6, 8),
        marker(7, 7, abort=True),
        data(8, 9, 7),
        marker(10, 7, abort=False),
        marker(11, 8, abort=False),
    ]
    acquired = found.acquire(Wish("ann", 0, 500, 500), read, 0, [(7, 2)])
    assert acquired.ranges == [(0, 1, 1), (5, 11, 1)]
    assert acquired.count == 9
    assert say(found, 0, 1, 1) == [StateBatch(0, 1, ACKNOWLEDGED, 1)]
    assert found.window.start_offset == 5


def test_all_of_it_may_be_aborted() -> None:
    found = share()
    assert found.acquire(Wish("ann", 0, 500, 500), [data(0, 4, 7)], 0, [(7, 0)]).ranges == []
    assert found.next_offset() == 5
    assert found.advance()
