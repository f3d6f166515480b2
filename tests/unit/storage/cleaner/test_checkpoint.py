from storage.cleaner.checkpoint import CleanOffsets
from tests.simulation.files import SimFileSystem


def made() -> tuple[SimFileSystem, CleanOffsets]:
    files = SimFileSystem()
    files.make_dirs("/d")
    return files, CleanOffsets(files, "/d")


def test_offsets_are_written_in_kafkas_format_and_read_back() -> None:
    files, offsets = made()
    offsets.set(("t", 1), 42)
    offsets.write_if_changed()
    assert files.read_bytes("/d/cleaner-offset-checkpoint") == b"0\n1\nt 1 42\n"
    again = CleanOffsets(files, "/d")
    again.load()
    assert again.get(("t", 1)) == 42
    assert again.get(("t", 2)) is None


def test_a_log_that_is_cut_is_clean_no_further() -> None:
    _, offsets = made()
    offsets.set(("t", 1), 42)
    offsets.lower(("t", 1), 50)
    assert offsets.get(("t", 1)) == 42
    offsets.lower(("t", 1), 30)
    assert offsets.get(("t", 1)) == 30
    offsets.lower(("t", 9), 30)
    assert offsets.get(("t", 9)) is None


def test_a_log_that_goes_takes_its_entry_along() -> None:
    files, offsets = made()
    offsets.set(("t", 1), 42)
    offsets.write_if_changed()
    offsets.forget(("t", 1))
    assert offsets.changed
    offsets.write_if_changed()
    assert files.read_bytes("/d/cleaner-offset-checkpoint") == b"0\n0\n"
    offsets.forget(("t", 1))
    assert not offsets.changed


def test_a_damaged_file_counts_as_empty() -> None:
    files, offsets = made()
    files.write_atomic("/d/cleaner-offset-checkpoint", b"0\n7\nt 1 42\n")
    offsets.set(("x", 0), 1)
    offsets.load()
    assert offsets.get(("x", 0)) is None


def test_an_older_write_does_not_replace_a_newer_one() -> None:
    files, offsets = made()
    offsets.set(("t", 1), 1)
    older = offsets.write_job()
    offsets.set(("t", 1), 2)
    offsets.write_job()()
    older()
    assert files.read_bytes("/d/cleaner-offset-checkpoint") == b"0\n1\nt 1 2\n"
