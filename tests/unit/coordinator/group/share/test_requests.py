"""Requests that take the share coordinator: altering, deleting, and what is noted of them."""

from __future__ import annotations

from coordinator.group.share.offsets import Refused
from coordinator.group.share.ports import Summary
from protocol.errors import ErrorCode as E
from tests.unit.coordinator.group.share.play import GROUP, Play, settled


def test_altering_makes_a_group_and_is_answered_when_it_is_stored() -> None:
    play = Play()
    answers = play.alter({"t": {0: 7, 9: 1}, "absent": {0: 0}})
    assert answers == []
    assert play.answer() == [("initialize", [(play.id(), 0)])]
    [(plan, errors)] = answers
    assert list(plan.topics) == ["t"]
    assert errors == {(play.id(), 0): E.NONE}
    assert play.persister.state == {(GROUP, play.id(), 0): (1, 7)}
    assert play.requests.initialized(GROUP) == {play.id(): [0]}
    assert play.described().group_state == "Empty"


def test_altering_that_fails_can_be_asked_for_again() -> None:
    play = Play()
    answers = play.alter({"t": {0: 7}})
    play.answer(E.COORDINATOR_NOT_AVAILABLE)
    [(_, errors)] = answers
    assert errors == {(play.id(), 0): E.COORDINATOR_NOT_AVAILABLE}
    assert play.requests.initialized(GROUP) == {}
    answers = play.alter({"t": {0: 8}})
    play.answer()
    assert play.persister.state == {(GROUP, play.id(), 0): (1, 8)}


def test_altering_nothing_leaves_no_group() -> None:
    play = Play()
    [(plan, errors)] = play.alter({"absent": {0: 0}})
    assert (plan.topics, errors) == ({}, {})
    assert play.described().error_code == E.GROUP_ID_NOT_FOUND


def test_a_group_with_members_is_left_alone() -> None:
    play = Play()
    settled(play, play.client("a"))
    for answers in (play.alter({"t": {0: 0}}), play.delete_offsets("t")):
        [(refused, _)] = answers
        assert isinstance(refused, Refused)
        assert (refused.error, refused.text) == (E.NON_EMPTY_GROUP, E.NON_EMPTY_GROUP.message)
    assert play.delete_group() == [(E.NON_EMPTY_GROUP, None)]
    assert play.answer() == []


def test_refusals_of_the_coordinator_are_told() -> None:
    play = Play()
    play.runtime.unload(0)
    [(refused, _)] = play.alter({"t": {0: 0}})
    assert (refused.error, refused.text) == (E.NOT_COORDINATOR, E.NOT_COORDINATOR.message)
    [(refused, _)] = play.delete_offsets("t")
    assert refused.error is E.NOT_COORDINATOR
    assert play.described().error_code == E.NOT_COORDINATOR
    assert play.client("a").join().error_code == E.NOT_COORDINATOR


def test_deleting_offsets_topic_by_topic() -> None:
    play = Play({"t": 2, "u": 1, "v": 1})
    play.alter({"t": {0: 0, 1: 0}, "u": {0: 0}})
    play.answer()
    answers = play.delete_offsets("t", "u", "v", "absent")
    assert play.answer(u=E.NOT_COORDINATOR) == [
        ("delete", [(play.id("t"), 0), (play.id("t"), 1), (play.id("u"), 0)])
    ]
    [(plan, errors)] = answers
    assert errors == {play.id("t"): E.NONE, play.id("u"): E.NOT_COORDINATOR}
    assert plan.refused == {
        "v": (E.UNKNOWN_TOPIC_OR_PARTITION, "There is no offset information to delete."),
        "absent": (E.UNKNOWN_TOPIC_OR_PARTITION, E.UNKNOWN_TOPIC_OR_PARTITION.message),
    }
    assert play.groups.state(GROUP).deleting == {play.id("u"): "u"}
    answers = play.delete_offsets("u")
    assert play.answer() == [("delete", [(play.id("u"), 0)])]
    assert play.groups.state(GROUP).deleting == {}
    assert play.delete_offsets("absent") != []


def test_deleting_offsets_of_no_group() -> None:
    [(refused, _)] = Play().delete_offsets("t")
    assert (refused.error, refused.text) == (E.GROUP_ID_NOT_FOUND, "Group g not found.")


def test_a_group_goes_after_its_state() -> None:
    play = Play({"t": 2, "u": 1})
    a = play.client("a", "t", "u")
    settled(play, a)
    a.leave()
    answers = play.delete_group()
    assert answers == []
    assert play.groups.state(GROUP).deleting == {play.id("t"): "t", play.id("u"): "u"}
    [(what, cells)] = play.answer(E.COORDINATOR_NOT_AVAILABLE)
    assert (what, len(cells)) == ("delete", 3)
    assert answers == [(E.COORDINATOR_NOT_AVAILABLE, None)]
    assert play.groups.exists(GROUP)
    answers = play.delete_group()
    play.answer()
    assert answers == [(E.NONE, None)]
    assert not play.groups.exists(GROUP)
    assert play.persister.state == {}
    play.restart()
    assert play.snapshot() == {name: [] for name in play.snapshot()}
    assert play.delete_group() == [(E.GROUP_ID_NOT_FOUND, None)]


def test_who_joins_while_the_group_is_being_deleted_keeps_it() -> None:
    play = Play({"t": 1})
    a = play.client("a")
    settled(play, a)
    a.leave()
    answers = play.delete_group()
    [(_, _, decide)] = play.persister.asked
    play.persister.asked.clear()
    a.join()
    decide({(play.id(), 0): E.NONE})
    play.commit()
    assert answers == [(E.NON_EMPTY_GROUP, None)]
    assert play.answer() == [("initialize", [(play.id(), 0)])]
    a.beat()
    assert a.partitions() == [0]


def test_state_that_is_made_after_the_group_has_gone_is_not_noted() -> None:
    play = Play({"t": 1})
    a = play.client("a")
    a.join()
    [(_, _, decide)] = play.persister.asked
    play.persister.asked.clear()
    a.leave()
    play.delete_group()
    play.answer()
    decide({(play.id(), 0): E.NONE})
    play.commit()
    assert not play.groups.exists(GROUP)


def test_summaries_are_asked_for_only_where_there_is_something() -> None:
    play = Play()
    answers: list[dict[tuple[bytes, int], Summary]] = []
    play.requests.summaries(GROUP, {}, answers.append)
    play.requests.summaries(GROUP, {play.id(): [1]}, answers.append)
    assert answers == [{}, {(play.id(), 1): play.persister.summary}]
    assert play.requests.latest_offset("t", 0) == 10
