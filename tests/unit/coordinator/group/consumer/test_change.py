"""One operation's view of a group."""

from __future__ import annotations

from coordinator.group.consumer.change import GroupChange
from coordinator.group.consumer.member import Current, Member
from coordinator.group.modern.records import GroupEpoch, TargetEpoch
from tests.unit.coordinator.group.consumer.play import GROUP, Play


def kinds(change: GroupChange) -> list[int]:
    return [int.from_bytes(record.key[:2], "big") for record in change.records]


def begun() -> tuple[Play, GroupChange, bytes]:
    play = Play()
    play.client("a", "t", instance_id="i").join()
    return play, GroupChange(play.tables, GROUP), play.topics.facts["t"].topic_id


def test_what_is_put_is_seen_here_and_not_in_the_tables() -> None:
    play, change, t = begun()
    before = play.snapshot()
    change.put_member(Member("b"))
    change.put_current("b", Current(2, 0, assigned={t: {9: 2}}))
    change.put_target("b", {t: frozenset({9})})
    change.put_epoch(GroupEpoch(7, 1))
    assert (list(change.members), change.holder(t, 9), change.epoch.epoch) == (["a", "b"], "b", 7)
    assert (change.standing("b").epoch, change.target("b")) == (2, {t: frozenset({9})})
    assert kinds(change) == [5, 8, 7, 3]
    assert play.snapshot() == before


def test_who_is_removed_holds_nothing_any_more() -> None:
    _, change, t = begun()
    assert (change.holder(t, 0), change.static_member("i")) == ("a", change.members["a"])
    change.remove_member("a")
    assert (change.holder(t, 0), change.static_member("i"), change.target("a")) == (None, None, {})
    assert kinds(change) == [8, 7, 5]


def test_a_static_member_that_comes_back_takes_everything_over() -> None:
    _, change, t = begun()
    old = change.members["a"]
    change.replace_member(old, Member("b", "i"))
    assert (change.holder(t, 0), change.static_member("i")) == ("b", Member("b", "i"))
    assert change.standing("b").epoch == 0
    assert change.target("b") == {t: frozenset(range(4))}
    assert kinds(change) == [8, 7, 5, 5, 7, 8]


def test_all_targets_at_once_write_what_changes() -> None:
    _, change, t = begun()
    change.put_targets(TargetEpoch(8, 1), {"a": {t: frozenset(range(4))}, "b": {}})
    assert kinds(change) == [7, 6]
    assert change.target_epoch.epoch == 8


def test_effects_happen_with_the_result_and_are_undone_with_it() -> None:
    _, change, _ = begun()
    seen: list[str] = []

    def effect() -> object:
        seen.append("done")
        return lambda: seen.append("undone")

    change.effects.append(effect)  # type: ignore[arg-type]
    result = change.result("answer")
    assert (result.response, seen) == ("answer", ["done"])
    assert result.undo is not None
    result.undo()
    assert seen == ["done", "undone"]
