"""When regular expressions are resolved, and which are taken."""

from __future__ import annotations

import pytest

from coordinator.group.consumer.regexes import COMPILED_AT_ONCE, MATCHES_AT_ONCE
from tests.unit.coordinator.group.consumer.play import GROUP, Play


def resolved(play: Play, regex: str) -> set[str] | None:
    found = play.tables.regexes.get(GROUP, regex)
    return None if found is None else set(found.topics)


def test_a_new_topic_is_found_not_sooner_than_ten_seconds_after_the_last_time() -> None:
    play = Play({"ta": 1, "u": 1})
    a = play.client("a", regex="t.*")
    assert a.join().member_epoch == 1
    play.settle()
    assert resolved(play, "t.*") == {"ta"}
    assert a.beat().member_epoch == 2
    play.topics.put("tb", 1)
    play.advance(9_000)
    a.beat()
    play.settle()
    assert resolved(play, "t.*") == {"ta"}
    play.advance(2_000)
    a.beat()
    play.settle()
    assert resolved(play, "t.*") == {"ta", "tb"}
    assert (play.epoch(), a.beat().member_epoch) == (3, 3)


def test_without_new_topics_names_are_looked_at_every_refresh_interval() -> None:
    play = Play({"ta": 1}, regex_refresh_ms=60_000)
    a = play.client("a", regex="t.*")
    a.join()
    play.settle()
    first = play.tables.regexes.get(GROUP, "t.*")
    for _ in range(4):
        play.advance(15_000)
        a.beat()
        play.settle()
    play.advance(15_000)
    a.beat()
    play.settle()
    again = play.tables.regexes.get(GROUP, "t.*")
    assert again.timestamp_ms > first.timestamp_ms + 60_000
    assert play.epoch() == 2


def test_many_names_take_several_turns() -> None:
    play = Play({f"t{number}": 1 for number in range(2 * MATCHES_AT_ONCE + 1)})
    a = play.client("a", regex="t1")
    a.join()
    play.time.advance(1)
    play.time.advance(1)
    assert resolved(play, "t1") is None
    play.settle()
    assert resolved(play, "t1") == {"t1"}


@pytest.mark.parametrize("topics", [{}, {"t1": 1}])
def test_many_expressions_take_several_turns(topics: dict[str, int]) -> None:
    play = Play(topics)
    members = [play.client(f"m{number}", regex=f"t{number}") for number in range(2 * COMPILED_AT_ONCE + 1)]
    for member in members:
        member.join()
    play.settle()
    play.advance(11_000)
    members[0].beat()
    play.time.advance(1)
    play.time.advance(1)
    assert len(play.tables.regexes.row(GROUP)) < 2 * COMPILED_AT_ONCE
    play.settle()
    assert len(play.tables.regexes.row(GROUP)) == 2 * COMPILED_AT_ONCE + 1
    assert resolved(play, "t1") == set(topics)


def test_topics_are_looked_at_again_after_a_start_whose_counting_begins_anew() -> None:
    play = Play({"ta": 1})
    a = play.client("a", regex="t.*")
    a.join()
    play.settle()
    play.topics.put("tb", 1)
    play.topics.added = play.tables.regexes.get(GROUP, "t.*").version
    play.restart()
    play.advance(11_000)
    a.beat()
    play.settle()
    assert resolved(play, "t.*") == {"ta", "tb"}


def test_an_expression_without_subscribers_is_forgotten() -> None:
    play = Play({"ta": 1, "u": 1})
    a, b = play.client("a", regex="t.*"), play.client("b", regex="t.*")
    a.join()
    b.join()
    play.settle()
    a.leave()
    assert resolved(play, "t.*") == {"ta"}
    b.beat(subscribed_topic_regex="u")
    assert resolved(play, "t.*") is None
    play.advance(11_000)
    b.beat()
    play.settle()
    assert resolved(play, "u") == {"u"}
    b.leave()
    assert play.tables.regexes.row(GROUP) == {}


def test_a_known_expression_counts_at_once() -> None:
    play = Play({"ta": 2})
    a, b = play.client("a", regex="t.*"), play.client("b", regex="t.*")
    a.join()
    play.settle()
    assert b.join().member_epoch == 3


def test_what_comes_back_too_late_is_dropped() -> None:
    play = Play({"ta": 1})
    a = play.client("a", regex="t.*")
    a.join()
    a.leave()
    play.settle()
    assert play.tables.regexes.row(GROUP) == {}
    a.join()
    play.restart()
    play.settle()
    assert play.tables.regexes.row(GROUP) == {}
    a.beat()
    play.settle()
    assert resolved(play, "t.*") == {"ta"}
