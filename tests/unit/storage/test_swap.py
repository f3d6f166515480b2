"""Replacing segments, with the power cut at every step."""

import errno
from contextlib import suppress

import pytest

from storage import swap
from storage.cleaner.manager import CleanerManager, CleanerSettings
from storage.cleaner.session import Pass
from storage.log_config import LogConfig
from tests.simulation.files import Fault, SimFileSystem
from tests.support.cleaning import clean_log
from tests.support.logs import TOPIC_ID, FixedClock, append, batch, open_manager, read_offsets

CONFIG = LogConfig(segment_bytes=400, cleanup_policy=("compact",))


def filled(files):
    manager = open_manager(files, config=CONFIG)
    log = manager.get_or_create("t", 0, TOPIC_ID)
    log.set_high_watermark(0)
    for number in range(20):
        append(log, batch(1, key=b"k%d" % (number % 2)))
    log.flush()
    return manager, log


def steps_of_a_pass() -> int:
    files = SimFileSystem()
    manager, log = filled(files)
    count = 0

    def counted(operation, path):
        nonlocal count
        count += operation in ("rename", "sync", "sync_dir", "remove", "append")

    files.draw = counted
    clean_log(manager, log)
    return count


@pytest.mark.parametrize("synced", [False, True])
def test_after_a_power_cut_at_any_step_the_log_is_the_old_or_the_new_one(synced) -> None:
    steps = steps_of_a_pass()
    assert steps > 10
    cleaned = 0
    for step in range(steps + 1):
        files = SimFileSystem()
        manager, log = filled(files)
        active = log.active.base_offset
        files.sync_dir("/logs/t-0")
        seen = 0

        def cut(operation, path, files=files, step=step):
            nonlocal seen
            if operation in ("rename", "sync", "sync_dir", "remove", "append"):
                seen += 1
                if seen > step:
                    return Fault(operation, errno.EIO, path)
            return None

        files.draw = cut
        with suppress(OSError):
            clean_log(manager, log, flush=False)
        files.draw = lambda operation, path: None
        if synced:  # all that was done so far reached the disk
            for name in files.list_dir("/logs/t-0"):
                files.open(f"/logs/t-0/{name}").sync()
            files.sync_dir("/logs/t-0")
        after = files.crash()
        again = open_manager(after, config=CONFIG)
        found = again.get_or_create("t", 0, TOPIC_ID)
        offsets = read_offsets(found)
        assert found.end_offset == 20
        # Group after group takes the place of old segments, of which none keeps a record but the last.
        assert offsets == list(range(offsets[0], 20)), step
        assert offsets[0] in (*range(0, active, 4), active - 2), step
        cleaned += offsets[0] == active - 2
        assert not [n for n in after.list_dir("/logs/t-0") if n.endswith((".cleaned", ".swap", ".deleted"))]
    assert cleaned


def test_the_new_segment_takes_the_place_of_the_old_ones() -> None:
    files, clock = SimFileSystem(), FixedClock()
    manager, log = filled(files)
    cleaner = CleanerManager(manager, clock.now_ms)
    dirty = cleaner.choose(cleaner.candidates())
    cleaning = cleaner.begin(dirty, CleanerSettings(memory_bytes=1 << 20))
    job = Pass(files, cleaning.request, lambda size: None)
    cleaner.mapped(cleaning, job.build_map())
    group = cleaning.groups[0]
    job.clean(group, {})
    old = [s for s in log.local.segments if s.base_offset in [each.base_offset for each in group]]
    changes = log.local.segments.changes
    new = swap.swap_in(log.local, 0, old, clock.now_ms())
    assert log.local.segments.first is new
    assert not log.local.segments.swapping
    assert log.local.segments.changes > changes
    assert log.local.segments.bases() == [
        0,
        *[b for b in log.local.segments.bases() if b > old[-1].base_offset],
    ]
    for segment in old:
        assert files.exists(segment.path(".log.deleted"))


def test_what_a_pass_left_behind_is_removed() -> None:
    files = SimFileSystem()
    files.make_dirs("/p")
    for name in ("1.log.cleaned", "1.index.cleaned", "1.log"):
        files.open(f"/p/{name}", create=True)
    swap.remove_cleaned(files, "/p")
    assert files.list_dir("/p") == ["1.log"]
    swap.remove_cleaned(files, "/nowhere")
