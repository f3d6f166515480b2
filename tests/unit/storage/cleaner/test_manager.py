import pytest

from storage.cleaner.batch_filter import LastRecord
from storage.cleaner.choice import DirtyLog
from storage.cleaner.manager import CleanerManager, CleanerSettings, CleaningAborted
from storage.cleaner.session import Pass
from storage.log_config import LogConfig
from storage.log_manager import LogManager
from storage.partition_log import PartitionLog
from tests.simulation.files import SimFileSystem
from tests.support.cleaning import clean_log
from tests.support.logs import START_MS, TOPIC_ID, FixedClock, append, batch, open_manager, read_offsets

COMPACTED = LogConfig(segment_bytes=400, cleanup_policy=("compact",), file_delete_delay_ms=1000)


class Made:
    def __init__(self, topics: tuple[str, ...] = ("t",), config: LogConfig = COMPACTED) -> None:
        self.files, self.clock = SimFileSystem(), FixedClock()
        self.logs: LogManager = open_manager(self.files, config=config, clock=self.clock)
        self.manager = CleanerManager(self.logs, self.clock.now_ms)
        for topic in topics:
            self.fill(self.logs.get_or_create(topic, 0, TOPIC_ID))

    def fill(self, log: PartitionLog, count: int = 20) -> None:
        log.set_high_watermark(log.end_offset)
        for number in range(count):
            append(log, batch(1, key=b"k%d" % (number % 2), producer=7, sequence=log.end_offset))
        log.flush()

    def choose(self) -> DirtyLog | None:
        return self.manager.choose(self.manager.candidates())

    @property
    def log(self) -> PartitionLog:
        found = self.logs.get("t", 0)
        assert found is not None
        return found


def test_a_chosen_log_is_nobody_elses_until_it_is_done() -> None:
    made = Made(("t", "u"))
    first, second = made.choose(), made.choose()
    assert first is not None
    assert second is not None
    assert {first.log.topic, second.log.topic} == {"t", "u"}
    assert made.choose() is None
    assert made.manager.is_running(("t", 0))
    assert list(made.manager.retained_logs()) == []
    made.manager.done(second.log)
    again = made.choose()
    assert again is not None
    assert again.log is second.log


def test_only_compacted_logs_that_are_online_and_have_closed_segments_are_chosen() -> None:
    made = Made()
    made.log.update_config(LogConfig())
    assert made.choose() is None
    made.log.update_config(COMPACTED)
    made.log.directory.offline = True
    assert made.choose() is None


def test_a_log_that_went_while_others_were_weighed_is_not_chosen() -> None:
    made = Made()
    weighed = list(made.manager.candidates())
    made.logs.delete("t", 0)
    assert made.manager.choose(weighed) is None


def test_pauses_are_counted() -> None:
    made = Made()
    key = ("t", 0)
    made.manager.pause(key)
    made.manager.pause(key)
    made.manager.resume(key)
    assert made.choose() is None
    made.manager.resume(key)
    assert made.choose() is not None


def test_what_failed_is_set_aside_until_it_is_deleted() -> None:
    made = Made()
    made.manager.set_aside(made.log, ValueError("damage"))
    assert made.choose() is None
    assert made.manager.uncleanable == [("t", 0)]
    assert made.manager.uncleanable_bytes > 0
    made.logs.delete("t", 0)
    assert made.manager.uncleanable == []
    assert made.manager.uncleanable_bytes == 0


def test_a_pass_replaces_segments_and_moves_the_checkpoint() -> None:
    made = Made()
    before, active = made.log.size_bytes, made.log.active.base_offset
    cleaning = clean_log(made.logs, made.log, made.clock)
    assert made.log.size_bytes < before
    assert read_offsets(made.log) == list(range(active - 2, 20))
    assert made.log.directory.clean_offsets.get(("t", 0)) == active
    assert cleaning.stats.start_messages == active
    assert cleaning.stats.end_messages == 2
    assert made.files.read_bytes("/logs/cleaner-offset-checkpoint") == b"0\n1\nt 0 %d\n" % active
    assert made.log.recovery_point == 20
    doomed = [path for entry in made.log.local.doomed for path in entry.paths]
    assert all(made.files.exists(path) and path.endswith(".deleted") for path in doomed)
    assert snapshots(made) == made.log.local.segments.bases()[1:]
    made.fill(made.log)
    clean_log(made.logs, made.log, made.clock)
    bases = made.log.local.segments.bases()
    assert bases[:2] == [0, 16], "what was emptied is put together"
    assert snapshots(made) == bases[1:]


def snapshots(made: Made) -> list[int]:
    return [int(name[:20]) for name in made.files.list_dir("/logs/t-0") if name.endswith(".snapshot")]


def test_a_pass_that_must_not_go_on_is_broken_off_and_leaves_the_log_alone() -> None:
    for disturb in (
        lambda made: made.log.truncate_to(15, START_MS),
        lambda made: made.manager.pause(("t", 0)),
        lambda made: made.log.update_config(LogConfig(segment_bytes=400)),
        lambda made: made.log.close(),
    ):
        made = Made()
        log, dirty = made.log, made.choose()
        assert dirty is not None
        cleaning = made.manager.begin(dirty, CleanerSettings(memory_bytes=1 << 20))
        job = Pass(made.files, cleaning.request, lambda size: None)
        made.manager.mapped(cleaning, job.build_map())
        done = job.clean(cleaning.groups[0], made.manager.last_records(cleaning))
        before = log.local.segments.bases()
        disturb(made)
        after = log.local.segments.bases()
        with pytest.raises(CleaningAborted):
            made.manager.swap_in(cleaning, cleaning.groups[0], done)
        made.manager.abandon(cleaning)
        made.manager.done(log)
        assert log.local.segments.bases() == after
        assert after == [base for base in before if base <= 15 or base in after]
        if not log.closed:
            assert not [name for name in made.files.list_dir("/logs/t-0") if name.endswith(".cleaned")]


def test_segments_that_retention_took_meanwhile_are_not_brought_back() -> None:
    made = Made(config=LogConfig(segment_bytes=400, cleanup_policy=("compact", "delete")))
    dirty = made.choose()
    assert dirty is not None
    cleaning = made.manager.begin(dirty, CleanerSettings(memory_bytes=1 << 20))
    job = Pass(made.files, cleaning.request, lambda size: None)
    made.manager.mapped(cleaning, job.build_map())
    done = job.clean(cleaning.groups[0], {})
    made.log.delete_records(made.log.local.segments.bases()[1])
    made.log.delete_old_segments(START_MS)
    start = made.log.start_offset
    with pytest.raises(CleaningAborted):
        made.manager.swap_in(cleaning, cleaning.groups[0], done)
    assert read_offsets(made.log) == list(range(start, 20))


def test_what_producers_left_is_told_as_far_as_it_is_cleaned() -> None:
    made = Made()
    dirty = made.choose()
    assert dirty is not None
    cleaning = made.manager.begin(dirty, CleanerSettings(memory_bytes=1 << 20))
    cleaning.stats.end_offset = 20
    assert made.manager.last_records(cleaning) == {7: LastRecord(19, 0)}
    cleaning.stats.end_offset = 19
    assert made.manager.last_records(cleaning) == {}


def test_a_disk_that_fails_a_swap_goes_out_of_service() -> None:
    made = Made()
    dirty = made.choose()
    assert dirty is not None
    cleaning = made.manager.begin(dirty, CleanerSettings(memory_bytes=1 << 20))
    job = Pass(made.files, cleaning.request, lambda size: None)
    made.manager.mapped(cleaning, job.build_map())
    done = job.clean(cleaning.groups[0], {})
    made.files.fail_next("rename", 5, ".cleaned")
    with pytest.raises(OSError, match="error"):
        made.manager.swap_in(cleaning, cleaning.groups[0], done)
    assert made.log.directory.offline
