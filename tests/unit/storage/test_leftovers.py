import pytest

from storage import leftovers
from tests.simulation.files import SimFileSystem
from tests.support.logs import batch

DIR = "/t-0"


def directory(*names: str) -> SimFileSystem:
    """Each `.log` and `.log.swap` file holds three batches from its offset on."""
    files = SimFileSystem()
    files.make_dirs(DIR)
    for name in names:
        handle = files.open(f"{DIR}/{name}", create=True)
        if ".log" in name:
            base = int(name.partition(".")[0])
            handle.append([batch(1, base=base + n) for n in range(3)])
    files.sync_dir(DIR)
    return files


def file(base: int, suffix: str) -> str:
    return f"{base:020d}{suffix}"


def test_nothing_to_do():
    files = directory(file(0, ".log"), file(0, ".index"), "partition.metadata")
    assert leftovers.remove_leftovers(files, DIR) == files.list_dir(DIR)
    assert len(files.list_dir(DIR)) == 3


def test_deleted_and_temporary_files_go_but_not_those_of_the_metadata_log():
    kept = ["00000000000000000000-0000000001.checkpoint.deleted", file(0, ".log")]
    files = directory(*kept, file(9, ".log.deleted"), file(9, ".snapshot.deleted"), "partition.metadata.tmp")
    assert leftovers.remove_leftovers(files, DIR) == sorted(kept)


@pytest.mark.parametrize("swapped", [(), (".log.swap", ".index.swap")])
def test_an_unfinished_cleaning_is_undone(swapped):
    old = [file(0, ".log"), file(3, ".log"), file(6, ".log")]
    files = directory(*old, file(0, ".log.cleaned"), *(file(3, suffix) for suffix in swapped))
    assert leftovers.remove_leftovers(files, DIR) == old


def test_swaps_below_the_unfinished_ones_are_finished():
    files = directory(file(0, ".log"), file(3, ".log"), file(0, ".log.swap"), file(3, ".log.cleaned"))
    assert leftovers.remove_leftovers(files, DIR) == [file(0, ".log"), file(3, ".log")]


def test_a_finished_swap_takes_the_place_of_all_that_it_covers():
    files = directory(
        file(0, ".log"), file(0, ".index"), file(0, ".txnindex"), file(1, ".log"), file(3, ".log"),
        file(0, ".log.swap"), file(0, ".timeindex.swap"), file(2, ".snapshot"),
    )  # fmt: skip
    assert leftovers.remove_leftovers(files, DIR) == [
        file(0, ".log"), file(0, ".timeindex"), file(2, ".snapshot"), file(3, ".log"),
    ]  # fmt: skip


def test_a_swap_whose_log_has_its_name_already_is_finished():
    files = directory(file(0, ".log"), file(0, ".index.swap"), file(3, ".log"))
    assert leftovers.remove_leftovers(files, DIR) == [file(0, ".index"), file(0, ".log"), file(3, ".log")]


def test_what_was_finished_is_on_the_disk():
    files = directory(file(0, ".log"), file(0, ".log.swap"), file(2, ".log"))
    done = leftovers.remove_leftovers(files, DIR)
    assert files.crash().list_dir(DIR) == done == [file(0, ".log")]
