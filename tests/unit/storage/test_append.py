import errno

import pytest

from protocol.errors import ErrorCode
from storage.append import UnexpectedAppendOffset
from storage.errors import AppendRefused, StorageFailed
from storage.leader_epochs import LeaderEpochs
from storage.log_config import LogConfig
from tests.simulation.files import SimFileSystem
from tests.support.logs import START_MS, TOPIC_ID, append, batch, marker, open_manager, read_offsets


def follower(config=None):
    return open_manager(SimFileSystem(), config=config).get_or_create("t", 0, TOPIC_ID)


def fetched(*bases, epoch=1, **more):
    return b"".join(bytes(batch(1, base=base, leader_epoch=epoch, **more)) for base in bases)


def test_a_follower_takes_offsets_and_epochs_as_they_are():
    log = follower()
    assert log.append_as_follower(fetched(0, 1, 5, epoch=3) + fetched(9, epoch=4), START_MS) == 10
    assert read_offsets(log) == [0, 1, 5, 9]
    assert log.leader_epochs.entries == [(3, 0), (4, 9)]
    assert log.append_as_follower(b"", START_MS) == 10


def test_a_cut_batch_at_the_end_is_left_out():
    log = follower()
    assert log.append_as_follower(fetched(0, 1) + fetched(2)[:-1], START_MS) == 2


@pytest.mark.parametrize("bases", [(0, 1, 3, 2, 4), (0, 0), (1, 0)])
def test_offsets_out_of_order_write_nothing(bases):
    log = follower()
    with pytest.raises(AppendRefused, match="Out of order"):
        log.append_as_follower(fetched(*bases), START_MS)
    assert log.end_offset == 0
    assert log.size_bytes == 0


def test_a_batch_below_the_end_names_its_offsets():
    log = follower()
    log.truncate_fully(7, START_MS)
    with pytest.raises(UnexpectedAppendOffset) as caught:
        log.append_as_follower(bytes(batch(3, base=4)), START_MS)
    assert (caught.value.first_offset, caught.value.last_offset) == (4, 6)


def test_a_wrong_crc_is_refused():
    log = follower()
    bad = bytearray(fetched(0, 1))
    bad[-1] ^= 1
    with pytest.raises(AppendRefused) as caught:
        log.append_as_follower(bad, START_MS)
    assert caught.value.error is ErrorCode.CORRUPT_MESSAGE
    assert log.end_offset == 0


def test_an_offset_that_does_not_fit_the_segment_rolls_to_it():
    log = follower()
    far = (1 << 31) + 1
    log.append_as_follower(fetched(0), START_MS)
    log.append_as_follower(fetched(far), START_MS)
    assert log.local.segments.bases() == [0, far]
    assert f"{far:020d}.snapshot" in log.local.files.list_dir("/logs/t-0")
    assert read_offsets(log) == [0, far]


def test_batches_larger_than_the_message_limit_are_taken():
    log = follower(LogConfig(max_message_bytes=10))
    log.append_as_follower(fetched(0, size=500), START_MS)
    assert read_offsets(log) == [0]


def test_a_follower_takes_sequences_as_they_come_and_follows_markers():
    log = follower()
    data = bytes(batch(2, base=0, producer=5, epoch=1, sequence=0, transactional=True))
    data += bytes(batch(2, base=2, producer=5, epoch=1, sequence=900, transactional=True))
    log.append_as_follower(data, START_MS)
    entry = log.producers.entries[5]
    assert (entry.last_sequence, entry.current_txn_first_offset) == (901, 0)
    log.append_as_follower(bytes(marker(5, 1, commit=False, base=4, coordinator_epoch=6)), START_MS)
    entry = log.producers.entries[5]
    assert (entry.current_txn_first_offset, entry.coordinator_epoch) == (-1, 6)


def test_the_index_is_made_by_batch_and_not_by_append():
    one = len(batch(1))
    config = LogConfig(index_interval_bytes=2 * one)
    leader, copy = follower(config), follower(config)
    for number in range(20):
        append(leader, batch(1, ts=START_MS + number))
    copy.append_as_follower(leader.read(0, 1 << 20, 20).to_bytes(), START_MS)
    for log in (leader, copy):
        index = log.active.offset_index
        assert [index.entry(i) for i in range(index.entries)] == [(n, n * one) for n in range(3, 20, 3)]


@pytest.mark.parametrize("also", [0, 1, 2])
def test_epochs_of_fetched_batches_that_found_no_room_begin_where_these_do_once_they_come_again(also):
    """`also`: how many writes of the file of epochs fail, too."""
    log = follower()
    files = log.local.files
    log.append_as_follower(fetched(0, epoch=1) + fetched(1, epoch=2), START_MS)
    more = fetched(2, epoch=2) + fetched(3, epoch=3) + fetched(4, epoch=4)
    files.fail_next("append", errno.ENOSPC, ".log")
    for _ in range(also):
        files.fail_next("append", errno.ENOSPC, "leader-epoch-checkpoint")
    with pytest.raises(StorageFailed) as caught:
        log.append_as_follower(more, START_MS)
    assert not caught.value.offline
    assert not log.directory.offline
    assert log.leader_epochs.entries == [(1, 0), (2, 1)]
    assert log.append_as_follower(more, START_MS) == 5
    assert log.leader_epochs.entries == [(1, 0), (2, 1), (3, 3), (4, 4)]
    entries = LeaderEpochs(files, log.leader_epochs._path).entries
    assert entries == [(1, 0), (2, 1), (3, 3), (4, 4)]
