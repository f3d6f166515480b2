"""Group epochs, and an assignor that fails."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.group.modern.target import AssignorFailed
from protocol.errors import ErrorCode as E
from tests.unit.coordinator.group.consumer.play import Play


class Broken:
    name = "broken"

    def assign(self, members: Any, partitions: Any) -> Any:
        raise AssignorFailed("it has no idea")


@pytest.mark.parametrize("change", ["grow", "delete", "remake"])
def test_a_change_of_subscribed_topics_is_seen_at_the_next_heartbeat(change: str) -> None:
    play = Play({"t": 2, "other": 1})
    a = play.client("a", "t")
    a.join()
    if change == "grow":
        play.topics.put("t", 3)
    else:
        play.topics.delete("t")
        if change == "remake":
            play.topics.put("t", 2)
    assert a.beat(owned=a.has).member_epoch in (2, 3)
    assert play.epoch() == 3
    a.sync()
    assert a.epoch == 3
    assert sum(map(len, a.told.values())) == {"grow": 3, "delete": 0, "remake": 2}[change]


def test_other_topics_are_nothing_to_the_group() -> None:
    play = Play({"t": 2})
    a = play.client("a", "t")
    a.join()
    play.topics.put("other", 3)
    end = play.topic.end(0)
    assert a.beat().member_epoch == 2
    assert play.topic.end(0) == end


def test_an_assignor_that_fails_leaves_everything_as_it_was() -> None:
    play = Play(assignors={"broken": Broken()})
    a = play.client("a", "t")
    answer = a.join()
    assert (answer.error_code, answer.error_message) == (
        E.UNKNOWN_SERVER_ERROR,
        "Failed to compute a new target assignment for epoch 2: it has no idea",
    )
    assert all(cells == [] for cells in play.snapshot().values())


def test_votes_for_an_assignor_that_is_gone_do_not_count() -> None:
    play = Play({"t": 4, "u": 4})
    a, b = play.client("a", "t", "u", assignor="range"), play.client("b", "t", "u")
    a.join()
    del play.settings.assignors["range"]
    assert b.join().error_code == E.NONE


@pytest.mark.parametrize("votes", [("range", "uniform"), ("uniform", "range"), (None, None)])
def test_of_two_assignors_with_as_many_votes_the_one_named_first_by_the_broker_wins(votes: Any) -> None:
    play = Play({"t": 4})
    assert list(play.settings.assignors) == ["uniform", "range"]
    for name, vote in zip("ab", votes, strict=True):
        play.client(name, "t", assignor=vote).join()
    assert play.described().assignor_name == "uniform"


def test_most_votes_win() -> None:
    play = Play({"t": 4})
    for name, vote in (("a", "range"), ("b", None), ("c", "uniform"), ("d", "range")):
        play.client(name, "t", assignor=vote).join()
    assert play.described().assignor_name == "range"
