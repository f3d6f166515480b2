"""Segments with offsets too far above their base: storage.md 67."""

import errno
from contextlib import suppress

import pytest

from storage import names, overflow
from storage.errors import StorageFailed
from storage.offset_index import RELATIVE_MAX
from storage.segment import Segment
from tests.simulation.files import Fault, SimFileSystem
from tests.support.logs import TOPIC_ID, append, batch, open_manager, read_offsets

DIR = "/logs/t-0"
FAR = RELATIVE_MAX + 6
OFFSETS = (0, 10, RELATIVE_MAX, FAR, FAR + 5, 2 * FAR)


def overflowing(offsets=OFFSETS, base=0, clean=False, tail=b"") -> SimFileSystem:
    """A log of one segment, as a Kafka of old times has left it."""
    files = SimFileSystem()
    manager = open_manager(files)
    manager.get_or_create("t", 0, TOPIC_ID)
    manager.close()
    for name in files.list_dir(DIR):
        if name.startswith("0"):
            files.remove(f"{DIR}/{name}")
    if not clean:
        files.remove(f"/logs/{names.CLEAN_SHUTDOWN}")
    parts = [
        batch(1, base=offset, leader_epoch=0, producer=4, sequence=n) for n, offset in enumerate(offsets)
    ]
    handle = files.open(f"{DIR}/{names.segment_file(base, names.LOG)}", create=True)
    handle.append([*parts, tail])
    handle.sync()
    files.sync_dir(DIR)
    return files.crash()


@pytest.mark.parametrize("clean", [False, True])
def test_loading_splits_the_segment_and_keeps_all_records(clean):
    files = overflowing(clean=clean)
    log = open_manager(files).get_or_create("t", 0, TOPIC_ID)
    assert log.local.segments.bases() == [0, FAR, 2 * FAR]
    assert read_offsets(log) == list(OFFSETS)
    assert log.end_offset == 2 * FAR + 1
    assert log.producers.entries[4].last_sequence == len(OFFSETS) - 1
    assert append(log, batch(1)) == 2 * FAR + 1
    log.flush()
    again = open_manager(files.crash()).get_or_create("t", 0, TOPIC_ID)
    assert read_offsets(again) == [*OFFSETS, 2 * FAR + 1]


def test_a_segment_whose_batches_all_overflow_gets_the_base_of_its_first_batch():
    files = overflowing((FAR, FAR + 1))
    log = open_manager(files).get_or_create("t", 0, TOPIC_ID)
    assert log.local.segments.bases() == [FAR]
    assert read_offsets(log) == [FAR, FAR + 1]


def test_a_torn_tail_is_cut_from_the_last_piece(caplog):
    log = open_manager(overflowing(tail=b"x" * 70)).get_or_create("t", 0, TOPIC_ID)
    assert log.local.segments.bases() == [0, FAR, 2 * FAR]
    assert read_offsets(log) == list(OFFSETS)


@pytest.mark.parametrize("clean", [False, True])
def test_one_that_others_follow_is_found_by_their_bases(clean):
    files = overflowing((0, FAR), clean=clean)
    handle = files.open(f"{DIR}/{names.segment_file(2 * FAR, names.LOG)}", create=True)
    handle.append([batch(1, base=2 * FAR, leader_epoch=0)])
    for base in (0, 2 * FAR):
        for suffix in (names.OFFSET_INDEX, names.TIME_INDEX):
            files.open(f"{DIR}/{names.segment_file(base, suffix)}", create=True)
    files.write_atomic("/logs/recovery-point-offset-checkpoint", f"0\n1\nt 0 {2 * FAR}\n".encode())
    log = open_manager(files).get_or_create("t", 0, TOPIC_ID)
    assert log.local.segments.bases() == [0, FAR, 2 * FAR]
    assert read_offsets(log) == [0, FAR, 2 * FAR]


def test_a_segment_that_fits_is_not_split():
    files = overflowing((0, RELATIVE_MAX))
    segment = Segment(files, DIR, 0, now_ms=0)
    assert not overflow.overflows(segment)
    with pytest.raises(ValueError, match="no offset that does not fit"):
        overflow.split(files, segment)
    assert open_manager(files).get_or_create("t", 0, TOPIC_ID).local.segments.bases() == [0]


@pytest.mark.parametrize("offsets", [OFFSETS, (FAR, FAR + 1, 3 * FAR)])
def test_a_power_cut_at_any_step_costs_no_record(offsets):
    for step in range(400):
        files = overflowing(offsets)
        left = [step]

        def cut(operation, path, left=left):
            if path.startswith(DIR):
                left[0] -= 1
                if left[0] < 0:
                    return Fault(operation, errno.EIO, path)
            return None

        files.draw = cut
        with suppress(OSError, StorageFailed):
            open_manager(files)
        files.draw = lambda operation, path: None
        log = open_manager(files.crash()).get_or_create("t", 0, TOPIC_ID)
        assert read_offsets(log) == list(offsets), step
        if left[0] >= 0:
            break
    else:
        raise AssertionError("the split takes more steps than were tried")
