import pytest

from runtime.files import FileRegion
from storage.errors import OffsetOutOfRange
from storage.log_config import LogConfig
from tests.simulation.files import SimFileSystem
from tests.support.logs import TOPIC_ID, append, batch, checked, open_manager, read_offsets

ONE = len(batch(1))


def new_log(tail_bytes=None, **config):
    manager = open_manager(SimFileSystem(), config=LogConfig(**config))
    log = manager.get_or_create("t", 0, TOPIC_ID)
    if tail_bytes is not None:
        manager.tail_budget.limit_bytes = tail_bytes
    return log


@pytest.fixture(params=["memory", "files"])
def log(request):
    """Batches of two records at 0, 2, 4, ... 18, from memory or from the file."""
    made = new_log(tail_bytes=None if request.param == "memory" else 0, index_interval_bytes=300)
    for _ in range(10):
        append(made, batch(2))
    assert bool(made.tail.batches) == (request.param == "memory")
    return made


TWO = len(batch(2))


def got(log, offset, max_bytes=1 << 20, upto=None, min_one=True):
    """(first base, number of batches) of a read."""
    found = log.read(offset, max_bytes, log.end_offset if upto is None else upto, min_one)
    data = found.to_bytes()
    assert len(data) == found.length
    assert len(data) % TWO == 0
    return (int.from_bytes(data[:8], "big"), len(data) // TWO) if data else None


def test_the_batch_that_holds_the_offset_comes_whole(log):
    assert got(log, 0) == (0, 10)
    assert got(log, 7) == got(log, 6) == (6, 7)
    assert got(log, 19) == (18, 1)


def test_at_the_end_there_is_nothing_and_beyond_it_an_error(log):
    assert got(log, 20) is None
    for offset in (21, -1):
        with pytest.raises(OffsetOutOfRange):
            log.read(offset, 100, 20)
    log.move_start(5)
    with pytest.raises(OffsetOutOfRange):
        log.read(4, 100, 20)
    assert got(log, 5) == (4, 8)


def test_the_answer_keeps_to_the_limit_but_for_the_first_batch(log):
    assert got(log, 4, 3 * TWO) == (4, 3)
    assert got(log, 4, 3 * TWO - 1) == (4, 2)
    assert got(log, 4, 1) == (4, 1)
    assert got(log, 4, 0) == (4, 1)
    nothing = log.read(4, TWO - 1, 20, False)
    assert (nothing.length, nothing.first_incomplete) == (0, True)
    assert got(log, 4, TWO, min_one=False) == (4, 1)


def test_a_batch_is_visible_when_the_limit_reaches_its_end(log):
    assert got(log, 0, upto=6) == (0, 3)
    assert got(log, 0, upto=7) == (0, 3)
    assert got(log, 0, upto=1) is None
    assert got(log, 6, upto=6) is None
    assert got(log, 8, upto=6) is None
    assert not log.read(0, 1, 1, True).first_incomplete


def test_positions_tell_how_far_apart_two_places_are(log):
    first, later = log.read(4, 1, 20), log.read(10, 1, 20)
    assert first.segment_base == later.segment_base == 0
    assert later.position - first.position == 3 * TWO
    at_end = log.read(20, 1, 20)
    assert at_end.position == 10 * TWO


def test_large_answers_are_regions_of_the_file():
    log = new_log()
    for _ in range(20):
        append(log, batch(1, size=10_000))
    small, large = log.read(18, 1 << 20, 20), log.read(10, 1 << 20, 20)
    assert isinstance(small.data, list)
    assert isinstance(large.data, FileRegion)
    assert large.length == 10 * len(batch(1, size=10_000))
    assert int.from_bytes(large.to_bytes()[:8], "big") == 10


def test_a_read_never_spans_segments_and_goes_on_in_the_next():
    log = new_log(tail_bytes=0, segment_bytes=3 * ONE)
    for _ in range(8):
        append(log, batch(1))
    assert log.read(1, 1 << 20, 8).length == 2 * ONE
    assert log.read(1, 1 << 20, 3).length == 2 * ONE  # a limit equal to the next base
    assert log.read(3, 1 << 20, 8).segment_base == 3
    assert log.read(4, 1 << 20, 4).length == 0


def test_gaps_lead_to_the_next_batch_even_in_the_next_segment():
    log = new_log(tail_bytes=0)
    log.append_as_follower(bytes(batch(1, base=2)) + bytes(batch(1, base=9)), 0)
    log.roll(0)
    log.append_as_follower(bytes(batch(1, base=30)), 0)
    log.truncate_to(31, 0)
    assert int.from_bytes(log.read(0, 100, 31).to_bytes()[:8], "big") == 2
    assert int.from_bytes(log.read(3, 100, 31).to_bytes()[:8], "big") == 9
    assert int.from_bytes(log.read(15, 100, 31).to_bytes()[:8], "big") == 30
    assert log.read(15, 100, 31).segment_base == 10


def test_sealed_segments_are_read_through_their_index_files():
    log = new_log(tail_bytes=0, segment_bytes=2000 * ONE, index_interval_bytes=3 * ONE)
    for _ in range(4500):
        log.append_as_leader(checked(batch(1)), 0, 0)
    log.write_pending()
    assert len(log.local.segments) == 3
    for offset in (0, 1, 999, 1999, 2000, 3777, 4499):
        data = log.read(offset, 40 * ONE, 4500).to_bytes()
        assert int.from_bytes(data[:8], "big") == offset
        assert 0 < len(data) <= 40 * ONE
    assert read_offsets(log, 0, 10 * ONE) == list(range(4500))
