"""What each kind of row does to a partition that is followed."""

from __future__ import annotations

import errno

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.cluster.followed import Followed, Outcome
from tests.simulation.files import SimFileSystem
from tests.support.logs import batch
from tests.unit.replication.cluster import Parked
from tests.unit.replication.leading import Led


def following(count=0, epoch=0, files=None):
    """A follower whose log has `count` records of `epoch`."""
    led = Led(files)
    for _ in range(count):
        led.partition.log.append_as_follower(batch(base=led.partition.log.end_offset, leader_epoch=epoch), 0)
    return Followed(led.partition)


def row(records=b"", error=0, mark=0, start=0, diverging=None):
    answer = m.FetchResponse.PartitionData(
        error_code=error, high_watermark=mark, log_start_offset=start, records=bytes(records)
    )
    if diverging is not None:
        answer.diverging_epoch.epoch, answer.diverging_epoch.end_offset = diverging
    return answer


def test_records_are_appended_and_then_the_mark_and_the_start_are_taken():
    followed = following(2)
    log = followed.partition.log
    waiting = Parked()
    followed.partition.waiters[waiting] = None
    answer = row(batch(3, base=2, leader_epoch=4), mark=4, start=1)
    assert followed.take(answer, 0) is Outcome.GO_ON
    assert (followed.offset, log.end_offset, log.high_watermark, log.start_offset) == (5, 5, 4, 1)
    assert log.leader_epochs.entries == [(0, 1), (4, 2)]
    assert waiting.woken == 1
    assert followed.in_sync


def test_the_mark_stays_within_the_log_and_may_go_down():
    followed = following(2)
    log = followed.partition.log
    followed.take(row(mark=9), 0)
    assert (log.high_watermark, followed.lag) == (2, 7)
    followed.take(row(mark=1), 0)
    assert log.high_watermark == 1


def test_the_start_never_passes_the_mark():
    followed = following(3)
    followed.take(row(mark=2, start=3), 0)
    assert followed.partition.log.start_offset == 2


def test_divergence_cuts_and_takes_nothing_else():
    followed = following(4, epoch=1)
    log = followed.partition.log
    followed.take(row(mark=3), 0)
    answer = row(mark=1, start=1, diverging=(1, 2))
    assert followed.take(answer, 0) is Outcome.GO_ON
    assert (followed.offset, log.high_watermark, log.start_offset) == (2, 2, 0)


def test_a_cut_within_a_batch_takes_the_whole_of_it():
    followed = following(2, epoch=1)
    log = followed.partition.log
    log.append_as_follower(batch(5, base=2, leader_epoch=1), 0)
    followed.offset = log.end_offset
    followed.take(row(diverging=(1, 4)), 0)
    assert (followed.offset, log.end_offset) == (2, 2)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (ErrorCode.OFFSET_OUT_OF_RANGE, Outcome.OUT_OF_RANGE),
        (ErrorCode.FENCED_LEADER_EPOCH, Outcome.FAILED),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, Outcome.BACK_OFF),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, Outcome.BACK_OFF),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, Outcome.BACK_OFF),
        (ErrorCode.UNKNOWN_TOPIC_ID, Outcome.BACK_OFF),
        (ErrorCode.INCONSISTENT_TOPIC_ID, Outcome.BACK_OFF),
        (ErrorCode.KAFKA_STORAGE_ERROR, Outcome.BACK_OFF),
        (ErrorCode.UNKNOWN_SERVER_ERROR, Outcome.BACK_OFF),
    ],
)
def test_errors(error, outcome):
    assert following(1).take(row(error=error), 0) is outcome


def test_a_damaged_batch_is_fetched_again():
    followed = following(1)
    damaged = batch(1, base=1)
    damaged[-1] ^= 1
    assert followed.take(row(damaged), 0) is Outcome.BACK_OFF
    assert followed.partition.log.end_offset == 1


def test_what_does_not_continue_the_log_fails():
    followed = following(3)
    assert followed.take(row(batch(2, base=1)), 0) is Outcome.FAILED  # nothing new in it
    assert followed.partition.log.end_offset == 3


def test_a_log_that_ends_elsewhere_fails():
    followed = following(3)
    followed.partition.log.truncate_to(1, 0)
    assert followed.take(row(), 0) is Outcome.FAILED


@pytest.mark.parametrize("path", [".log", "leader-epoch"])
def test_a_full_disk_is_waited_for(path):
    files = SimFileSystem()
    followed = following(1, files=files)
    files.fail_next("append", errno.ENOSPC, path)
    answer = row(batch(1, base=1, leader_epoch=7))
    assert followed.take(answer, 0) is Outcome.BACK_OFF
    assert followed.take(answer, 0) is Outcome.GO_ON
    assert followed.partition.log.end_offset == 2


@pytest.mark.parametrize("path", [".log", "leader-epoch"])
def test_a_disk_that_fails_ends_it(path):
    files = SimFileSystem()
    followed = following(1, files=files)
    files.fail_next("append", errno.EIO, path)
    assert followed.take(row(batch(1, base=1, leader_epoch=7)), 0) is Outcome.FAILED
    assert followed.partition.offline


def test_an_empty_log_begins_with_the_whole_batch_in_which_the_leaders_does():
    followed = following()
    followed.partition.log.truncate_fully(5, 0)
    followed.offset = 5
    answer = row(batch(10, base=0, leader_epoch=2), mark=10, start=5)
    assert followed.take(answer, 0) is Outcome.GO_ON
    log = followed.partition.log
    assert (log.start_offset, log.end_offset, log.high_watermark) == (5, 10, 10)
    assert log.read(5, 1000, 10).to_bytes()[:8] == bytes(8)


def test_another_history_below_the_leaders_start_makes_way_for_the_leaders_batch():
    followed = following(6)
    assert followed.take(row(batch(4, base=4, leader_epoch=2), mark=8, start=6), 0) is Outcome.GO_ON
    log = followed.partition.log
    assert (log.start_offset, log.end_offset, log.high_watermark) == (6, 8, 8)
    assert log.leader_epochs.entries == [(2, 6)]


def test_a_log_without_epochs_begins_from_what_is_committed():
    followed = following(3, epoch=-1)
    log = followed.partition.log
    log.leader_epochs.clear()  # Led noted the epoch of its leadership
    log.set_high_watermark(1)
    followed.prepare(0)
    assert (log.end_offset, followed.offset) == (1, 1)


def test_one_with_epochs_begins_at_its_end():
    followed = following(3, epoch=1)
    followed.prepare(0)
    assert followed.offset == 3


def test_answers_count_only_for_where_it_was_asked_from():
    followed = following(2)
    assert not followed.awaits_answer
    followed.asked_from = 2
    assert followed.awaits_answer
    followed.delayed_until_ms = 5
    assert not followed.awaits_answer
    followed.delayed_until_ms = 0
    followed.take(row(batch(1, base=2)), 0)
    assert not followed.awaits_answer
