"""Where a new log goes: storage.md 1.10, KIP-113, KIP-1066."""

from __future__ import annotations

import errno

from storage import placement
from storage.placement import Placement
from tests.simulation.files import SimFileSystem
from tests.support.logs import TOPIC_ID, open_manager

PATHS = ("/a", "/b", "/c")


def paths(chosen):
    return [directory.path for directory in chosen]


def test_the_fewest_logs_first_copies_count_too():
    manager = open_manager(SimFileSystem(), PATHS)
    first = manager.get_or_create("t", 0, TOPIC_ID)
    manager.futures.create(first, manager.dirs[1])
    assert paths(manager.placement.places_for(("t", 1))) == ["/c", "/a", "/b"]


def test_what_was_chosen_counts_until_the_log_is_made_and_alone():
    manager = open_manager(SimFileSystem(), PATHS)
    manager.placement.choose("t", 0, manager.dirs[2])
    assert paths(manager.placement.places_for(("t", 0))) == ["/c"]
    assert manager.get_or_create("t", 0, TOPIC_ID).directory.path == "/c"
    assert paths(manager.placement.places_for(("t", 0))) == ["/a", "/b", "/c"]


def test_a_chosen_directory_that_failed_is_not_replaced_by_another():
    manager = open_manager(SimFileSystem(), PATHS)
    manager.placement.choose("t", 0, manager.dirs[2])
    manager.dirs[2].fail(OSError(errno.EIO, "gone"))
    assert paths(manager.placement.places_for(("t", 0))) == []
    assert paths(manager.placement.places_for(("t", 1))) == ["/a", "/b"]


def test_cordoned_directories_take_nothing_unless_all_are():
    manager = open_manager(SimFileSystem(), PATHS)
    manager.dirs[0].cordoned = True
    assert paths(manager.placement.places_for(("t", 0))) == ["/b", "/c"]
    for directory in manager.dirs:
        directory.cordoned = True
    assert paths(manager.placement.places_for(("t", 0))) == ["/a", "/b", "/c"]


def test_choices_are_bounded(monkeypatch):
    monkeypatch.setattr(placement, "CHOSEN_MAX", 2)
    manager = open_manager(SimFileSystem(), PATHS)
    chosen = Placement(manager.dirs)
    for index in range(3):
        chosen.choose("t", index, manager.dirs[1])
    assert [len(chosen.places_for(("t", index))) for index in range(3)] == [3, 1, 1]
