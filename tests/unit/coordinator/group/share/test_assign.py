"""Target assignments of large share groups, which go on beside requests."""

from __future__ import annotations

import pytest

from coordinator.group.modern import steps
from protocol.errors import ErrorCode as E
from tests.unit.coordinator.group.share.play import GROUP, Client, Play, settled


@pytest.fixture(autouse=True)
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every group is a large one: nothing of its assignment is computed within a request."""
    monkeypatch.setattr(steps, "PIECE", 1)
    monkeypatch.setattr(steps, "PIECES_AT_ONCE", 1)


def assigned(play: Play) -> int:
    """Let a computation that goes on come to its end; the target's epoch."""
    for _ in range(300):
        play.advance(1)
    return play.groups.tables.target_epoch(GROUP).epoch


def targets(play: Play) -> dict[str, list[int]]:
    row = play.groups.tables.targets.row(GROUP)
    return {member: sorted(n for each in target.values() for n in each) for member, target in row.items()}


def group(play: Play) -> tuple[Client, Client]:
    """Two members with everything that they should have."""
    a, b = play.client("a"), play.client("b")
    settled(play, a, b)
    assigned(play)
    a.beat()
    b.beat()
    assert sorted(a.partitions() + b.partitions()) == [0, 1, 2, 3]
    return a, b


def test_members_get_theirs_when_it_is_computed() -> None:
    play = Play()
    group(play)
    assert play.groups.tables.epoch(GROUP).epoch == play.groups.tables.target_epoch(GROUP).epoch


def test_who_comes_or_goes_meanwhile_is_seen_next_time() -> None:
    play = Play()
    a, b = group(play)
    c, d = play.client("c"), play.client("d")
    c.join()
    begun = play.groups.tables.epoch(GROUP).epoch
    d.join()
    b.leave()
    assert assigned(play) == begun
    assert targets(play).keys() == {"a", "c", "d"}
    assert targets(play)["d"] == []
    a.beat()
    assert assigned(play) == play.groups.tables.epoch(GROUP).epoch == begun + 2
    assert sorted(n for each in targets(play).values() for n in each) == [0, 1, 2, 3]


def test_a_computation_whose_reason_is_not_in_the_log_comes_to_nothing() -> None:
    play = Play()
    group(play)
    before, epoch = targets(play), play.groups.tables.epoch(GROUP).epoch
    c = play.client("c")
    c.beat(committed=False, member_epoch=0, subscribed_topic_names=["t"])
    play.topic.fail(E.KAFKA_STORAGE_ERROR)
    assert assigned(play) == play.groups.tables.epoch(GROUP).epoch == epoch
    assert targets(play) == before
    c.join()
    assert assigned(play) == epoch + 1


@pytest.mark.parametrize("ends", ["all leave", "restart", "deleted"])
def test_a_computation_ends_with_its_group(ends: str) -> None:
    play = Play()
    a, b = group(play)
    c = play.client("c")
    c.join()
    begun = play.groups.tables.epoch(GROUP).epoch
    if ends == "restart":
        play.restart()
        assert assigned(play) == begun - 1
        a.beat()
        assert assigned(play) == begun
        return
    for client in (a, b, c):
        client.leave()
    if ends == "deleted":
        play.requests.delete_state(GROUP, lambda error: None)
        play.commit()
        play.answer()
        play.delete_group()
        play.answer()
        play.commit()
        assert not play.groups.exists(GROUP)
    assert assigned(play) == (1 if ends == "deleted" else begun + 3)
    assert targets(play) == {}
