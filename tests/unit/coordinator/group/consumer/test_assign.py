"""Group epochs, and an assignor that fails."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.group.consumer.settings import ConsumerSettings
from coordinator.group.modern import steps
from coordinator.group.modern.target import AssignorFailed
from protocol.errors import ErrorCode as E
from tests.unit.coordinator.group.consumer.play import GROUP, Client, Play, together


class Broken:
    name = "broken"

    def assign(self, members: Any, partitions: Any) -> Any:
        yield
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


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every group is a large one: nothing of its assignment is computed within a request."""
    monkeypatch.setattr(steps, "PIECE", 1)
    monkeypatch.setattr(steps, "PIECES_AT_ONCE", 1)


def assigned(play: Play) -> int:
    """Let a computation that goes on come to its end; the target's epoch."""
    play.settle()
    for _ in range(50):
        play.settle()
    return play.tables.target_epoch(GROUP).epoch


def targets(play: Play) -> dict[str, list[int]]:
    row = play.tables.targets.row(GROUP)
    return {member: sorted(n for each in target.values() for n in each) for member, target in row.items()}


def two(play: Play) -> tuple[Client, Client]:
    """Two members that share `t`, settled."""
    a, b = play.client("a", "t", instance_id="one"), play.client("b", "t")
    for client in (a, b):
        client.join()
        assigned(play)
    together(a, b)
    assert targets(play) == {"a": [0, 1], "b": [2, 3]}
    return a, b


def test_a_large_group_is_assigned_beside_requests(slow: None) -> None:
    play = Play({"t": 4})
    a = play.client("a", "t")
    answer = a.join()
    assert (answer.error_code, answer.member_epoch, a.told) == (E.NONE, 1, {})
    assert play.described().group_state == "Assigning"
    assert a.beat().member_epoch == 1  # nobody begins it anew
    assert assigned(play) == play.epoch() == 2
    a.sync()
    assert (a.epoch, a.partitions()) == (2, [0, 1, 2, 3])


def test_who_comes_or_goes_meanwhile_is_seen_next_time(slow: None) -> None:
    play = Play({"t": 4})
    a, b = two(play)
    c, d = play.client("c", "t"), play.client("d", "t")
    c.join()
    epoch = play.epoch()
    d.join()
    b.leave()
    assert play.epoch() == epoch + 2
    assert assigned(play) == epoch  # what was begun for a, b and c
    assert targets(play).keys() == {"a", "c", "d"}
    assert targets(play)["d"] == []
    a.sync()
    assert assigned(play) == epoch + 2
    together(a, c, d)
    assert sorted(n for each in targets(play).values() for n in each) == [0, 1, 2, 3]


def test_a_static_member_that_comes_back_meanwhile_gets_what_it_was_given(slow: None) -> None:
    play = Play({"t": 4})
    a, b = two(play)
    play.topics.put("t", 6)
    b.beat()
    a.leave(-2)
    back = play.client("a2", "t", instance_id="one")
    assert back.join().error_code == E.NONE
    assert assigned(play) == play.epoch()
    found = targets(play)
    assert sorted(found["a2"] + found["b"]) == list(range(6))
    assert len(found["a2"]) == 3


def test_a_computation_whose_reason_is_not_in_the_log_comes_to_nothing(slow: None) -> None:
    play = Play({"t": 4})
    two(play)
    play.auto_commit = False
    before, epoch = targets(play), play.epoch()
    c = play.client("c", "t")
    c.join()
    play.topic.fail(E.KAFKA_STORAGE_ERROR)
    assert assigned(play) == play.epoch() == epoch
    assert targets(play) == before
    play.auto_commit = True
    c.join()
    assert assigned(play) == play.epoch() == epoch + 1


@pytest.mark.parametrize("ends", ["all leave", "restart", "deleted"])
def test_a_computation_ends_with_its_group(slow: None, ends: str) -> None:
    play = Play({"t": 4})
    a, b = two(play)
    play.topics.put("t", 6)
    b.beat()
    begun = play.epoch()
    if ends == "restart":
        play.restart()
        assert assigned(play) == begun - 1
        b.beat()
        assert assigned(play) == begun
        return
    a.leave()
    b.leave()
    if ends == "deleted":
        play.request(play.manager.delete_group, GROUP)
        play.client("new", "t").join()
        assert assigned(play) == 2
        assert targets(play) == {"new": [0, 1, 2, 3, 4, 5]}
    else:
        assert assigned(play) == play.epoch() == begun + 2
        assert targets(play) == {}


def test_an_assignor_that_fails_later_is_asked_again(slow: None) -> None:
    play = Play(assignors={"broken": Broken()})
    a = play.client("a", "t")
    assert a.join().error_code == E.NONE
    assert assigned(play) == 1
    assert a.beat().error_code == E.NONE
    assert assigned(play) == 1
    play.settings.assignors["broken"] = ConsumerSettings().assignors["uniform"]
    a.beat()
    assert assigned(play) == 2
