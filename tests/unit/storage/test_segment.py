from storage import names
from storage.log_config import FOREVER
from storage.segment import Segment
from tests.simulation.files import SimFileSystem
from tests.support.logs import START_MS, batch


def new_segment(base=0):
    files = SimFileSystem(now_ms=lambda: 777)
    files.make_dirs("/p")
    return files, Segment(files, "/p", base, now_ms=5, create=True)


def write(segment, *parts):
    segment.handle.append(parts)
    segment.size += sum(map(len, parts))


def test_a_fresh_segment_has_only_its_log_file():
    files, segment = new_segment(40)
    assert files.list_dir("/p") == ["00000000000000000040.log"]
    assert segment.read_first_timestamp() == FOREVER
    assert segment.max_timestamp == -1
    assert segment.largest_timestamp == 777
    assert segment.find_end_offset() == 40
    assert segment.locate(40) is None


def test_leftovers_under_its_name_are_overwritten():
    files, segment = new_segment()
    write(segment, batch(1))
    again = Segment(files, "/p", 0, now_ms=5, create=True)
    assert (again.size, files.size("/p/00000000000000000000.log")) == (0, 0)


def test_offsets_fit_31_bits_above_the_base():
    _, segment = new_segment(40)
    assert segment.fits(40)
    assert segment.fits(40 + (1 << 31) - 1)
    assert not segment.fits(40 + (1 << 31))
    assert not segment.fits(39)


def test_truncation_recomputes_what_was_derived():
    _, segment = new_segment()
    parts = [batch(1, base=i, ts=START_MS + i) for i in range(4)]
    for number, part in enumerate(parts):
        position = segment.size
        write(segment, part)
        segment.raise_max_timestamp(START_MS + number, number)
        if number:
            segment.add_index_entry(number, position, START_MS + number, number)
    segment.truncate_position(2 * len(parts[0]))
    assert (segment.size, segment.find_end_offset()) == (2 * len(parts[0]), 2)
    assert (segment.max_timestamp, segment.max_timestamp_offset) == (START_MS + 1, 1)
    assert segment.offset_index.entries == segment.time_index.entries == 1
    assert segment.last_indexed_position == len(parts[0])
    segment.truncate_position(0)
    assert (segment.max_timestamp, segment.find_end_offset()) == (-1, 0)
    assert segment.offset_index.entries == 0


def test_an_index_is_sound_if_its_last_entry_stands_for_a_batch():
    _, segment = new_segment()
    parts = [batch(1, base=i) for i in range(3)]
    for part in parts:
        write(segment, part)
    size = len(parts[0])
    assert segment.has_sound_index()
    segment.add_index_entry(1, size, START_MS, 1)
    assert segment.has_sound_index()
    for last_offset, position in ((3, size), (2, 2 * size + 1), (2, 3 * size), (2, 2**31 - 1), (2, -1)):
        segment.offset_index.truncate_entries(1)
        segment.offset_index.append(last_offset, position)
        assert not segment.has_sound_index()


def test_an_index_that_points_out_of_the_file_is_not_followed():
    _, segment = new_segment()
    write(segment, batch(1), batch(1, base=1))
    segment.offset_index.append(0, 2**31 - 1)
    assert segment.locate(1).last_offset == 1


def test_renaming_takes_the_files_that_exist():
    files, segment = new_segment()
    write(segment, batch(1))
    assert segment.rename_suffix("", names.DELETED) == ["/p/00000000000000000000.log.deleted"]
    segment.close_files()
    other = Segment(files, "/p", 9, now_ms=5, create=True)
    other.seal()
    other.close_files()
    reopened = Segment(files, "/p", 9, now_ms=5)
    assert len(reopened.rename_suffix("", names.DELETED)) == 3


def test_a_segment_without_a_time_index_goes_by_the_files_time():
    files, segment = new_segment()
    write(segment, batch(1, ts=START_MS))
    segment.close_files()
    reopened = Segment(files, "/p", 0, now_ms=5)
    assert reopened.largest_timestamp == 777
    assert reopened.read_first_timestamp() == START_MS
    reopened.complete_time_index()
    assert reopened.largest_timestamp == START_MS
    assert files.size("/p/00000000000000000000.timeindex") == 12
