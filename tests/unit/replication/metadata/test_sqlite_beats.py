"""Signs of life: who is taken for dead, and who is not."""

from __future__ import annotations

import pytest

from replication.metadata.sqlite_beats import Beats
from replication.metadata.sqlite_sessions import Session
from runtime.os_files import OsFileSystem

OTHER = Session(2, "other", 1_000)


@pytest.fixture
def beats(tmp_path):
    def make(session_id):
        made = Beats(OsFileSystem(), str(tmp_path / "sessions"), 0.1)
        made.begin(session_id, 0.0)
        return made

    return make


def test_a_session_that_beats_lives_and_one_that_stops_dies_after_its_time_out(beats):
    mine, other = beats(1), beats(2)
    for tick in range(1, 21):
        other.beat()
        assert mine.silent_for_too_long([OTHER], tick / 10) == []
    assert [mine.silent_for_too_long([OTHER], 2 + tick / 10) for tick in range(1, 12)].index([2]) == 9


def test_only_time_in_which_the_observer_was_awake_counts(beats):
    mine, _ = beats(1), beats(2)
    assert mine.silent_for_too_long([OTHER], 0.1) == []
    assert mine.silent_for_too_long([OTHER], 60.0) == [], "the observer itself was held up"
    assert mine.silent_for_too_long([OTHER], 60.1) == []


def test_a_session_without_a_file_is_silent_from_when_it_was_seen(beats):
    mine = beats(1)
    verdicts = [mine.silent_for_too_long([OTHER], tick / 10) for tick in range(1, 13)]
    assert verdicts.index([2]) == 10


def test_a_session_that_is_forgotten_leaves_no_file(beats, tmp_path):
    mine, other = beats(1), beats(2)
    other.stop()
    mine.forget(2)
    mine.forget(3)
    assert [path.name for path in (tmp_path / "sessions").iterdir()] == ["1"]
    other.beat()
    mine.stop()
