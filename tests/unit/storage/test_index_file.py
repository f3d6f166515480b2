from storage.index_file import LUMP_BYTES
from storage.offset_index import OffsetIndex
from tests.simulation.files import SimFileSystem

PATH = "/p/00000000000000000000.index"


def test_entries_reach_the_file_in_lumps():
    files = SimFileSystem()
    files.make_dirs("/p")
    index = OffsetIndex(files, PATH, 0, fresh=True)
    for number in range(LUMP_BYTES // 8 - 1):
        index.append(number, number * 10)
    assert not files.exists(PATH)
    index.append(5000, 99_999)
    assert files.size(PATH) == LUMP_BYTES


def test_renaming_an_unused_index_creates_no_file():
    files = SimFileSystem()
    files.make_dirs("/p")
    index = OffsetIndex(files, PATH, 0, fresh=True)
    index.rename(PATH + ".deleted")
    assert files.list_dir("/p") == []
    index.remove()
    assert not index.exists


def test_an_open_handle_stays_usable_after_a_rename():
    files = SimFileSystem()
    files.make_dirs("/p")
    index = OffsetIndex(files, PATH, 0, fresh=True)
    index.append(1, 10)
    index.write_out()
    index.rename(PATH + ".deleted")
    index.append(2, 20)
    index.write_out()
    assert files.size(PATH + ".deleted") == 16
    assert not files.exists(PATH)
    index.remove()
    assert files.list_dir("/p") == []


def test_leftovers_under_the_name_of_a_fresh_index_are_overwritten():
    files = SimFileSystem()
    files.make_dirs("/p")
    files.write_atomic(PATH, b"leftover from before")
    index = OffsetIndex(files, PATH, 0, fresh=True)
    index.append(1, 10)
    index.write_out()
    assert files.size(PATH) == 8
