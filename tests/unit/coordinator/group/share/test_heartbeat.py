"""Heartbeats of share groups: joining, assignments, state that is made, fences."""

from __future__ import annotations

import pytest

from coordinator.group.share.heartbeat import refusal
from protocol import messages as m
from protocol.errors import ErrorCode as E
from tests.unit.coordinator.group.share.play import GROUP, Play, settled

MINUS_ONE = -1


def test_nothing_is_handed_out_before_its_state_is_there() -> None:
    play = Play()
    a = play.client("a")
    answer = a.join()
    assert (answer.member_epoch, answer.assignment.topic_partitions) == (2, [])
    assert a.beat().assignment is None
    cells = [(play.id(), index) for index in range(4)]
    assert play.answer() == [("initialize", cells)]
    assert play.persister.state[GROUP, play.id(), 0] == (2, MINUS_ONE)
    answer = a.beat()
    assert (answer.member_epoch, a.partitions()) == (3, [0, 1, 2, 3])
    assert a.beat().assignment is None
    assert play.answer() == []


def test_only_what_went_well_is_handed_out_and_the_rest_is_tried_again() -> None:
    play = Play({"t": 1, "u": 1})
    a = play.client("a", "t", "u")
    a.join()
    play.answer(u=E.COORDINATOR_NOT_AVAILABLE)
    a.beat()
    assert (a.partitions("t"), a.partitions("u")) == ([0], [])
    assert play.answer() == [("initialize", [(play.id("u"), 0)])]
    a.beat()
    assert (a.partitions("t"), a.partitions("u")) == ([0], [0])


def test_an_initialization_that_got_lost_begins_again_after_a_while() -> None:
    play = Play({"t": 1}, session_timeout_ms=lambda _: 100_000)
    a = play.client("a")
    a.join()
    play.persister.asked.clear()
    play.advance(29_999)
    a.beat()
    assert play.answer() == []
    play.advance(1)
    a.beat()
    assert play.answer() == [("initialize", [(play.id(), 0)])]
    a.beat()
    assert a.partitions() == [0]


def test_partitions_that_come_to_a_known_topic_begin_at_its_start() -> None:
    play = Play({"t": 1})
    a = play.client("a")
    settled(play, a)
    play.topics.put("t", 2)
    a.beat()
    assert play.answer() == [("initialize", [(play.id(), 1)])]
    assert play.persister.state[GROUP, play.id(), 0][1] == MINUS_ONE
    assert play.persister.state[GROUP, play.id(), 1][1] == 0
    a.beat()
    assert a.partitions() == [0, 1]


def test_members_share_and_take_over() -> None:
    play = Play()
    a, b = play.client("a"), play.client("b")
    settled(play, a, b)
    assert sorted(a.partitions() + b.partitions()) == [0, 1, 2, 3]
    assert (len(a.partitions()), len(b.partitions())) == (2, 2)
    assert b.leave().member_epoch == -1
    a.beat()
    assert a.partitions() == [0, 1, 2, 3]


def test_an_epoch_behind_is_taken_once_as_the_answer_may_be_lost() -> None:
    play = Play()
    a = play.client("a")
    settled(play, a)
    assert a.epoch == 3
    assert a.beat(member_epoch=4).error_code == E.FENCED_MEMBER_EPOCH
    assert a.beat(member_epoch=1).error_code == E.FENCED_MEMBER_EPOCH
    assert a.beat(member_epoch=2).error_code == 0
    assert a.join().member_epoch == 3


def test_targets_are_made_once_an_interval() -> None:
    play = Play(assignment_interval_ms=lambda _: 1000)
    a, b = play.client("a"), play.client("b")
    a.join()
    play.answer()
    a.beat()
    assert a.partitions() == []
    play.advance(1000)
    a.beat()
    assert a.partitions() == [0, 1, 2, 3]
    b.join()
    assert (b.epoch, b.partitions()) == (3, [])
    play.advance(1000)
    a.beat()
    b.beat()
    assert (len(a.partitions()), len(b.partitions())) == (2, 2)


def test_a_group_has_room_for_so_many() -> None:
    play = Play(max_size=1)
    a, b = play.client("a"), play.client("b")
    a.join()
    answer = b.join()
    assert answer.error_code == E.GROUP_MAX_SIZE_REACHED
    assert answer.error_message == "The share group has reached its maximum capacity of 1 members."
    assert a.join().error_code == 0


def test_a_subscription_that_changes_takes_effect_at_once() -> None:
    play = Play({"t": 1, "u": 1})
    a = play.client("a")
    settled(play, a)
    answer = a.beat(subscribed_topic_names=["u"])
    assert answer.assignment.topic_partitions == []
    play.answer()
    a.beat()
    assert a.partitions("u") == [0]


def test_a_topic_that_goes_is_taken_away() -> None:
    play = Play({"t": 1, "u": 1})
    a = play.client("a", "t", "u")
    settled(play, a)
    gone = play.id("u")
    play.topics.delete("u")
    play.manager.topics_deleted(["u"], lambda error, _: None, [gone])
    play.commit()
    a.beat()
    assert a.has == {play.id("t"): frozenset([0])}
    assert gone not in play.groups.state(GROUP).topic_ids()


def test_a_heartbeat_without_news_writes_nothing() -> None:
    play = Play()
    a = play.client("a")
    settled(play, a)
    end = play.topic.end(0)
    for _ in range(3):
        assert a.beat().error_code == 0
    assert play.topic.end(0) == end


def test_a_heartbeat_that_is_not_appended_leaves_nothing_behind() -> None:
    play = Play()
    a = play.client("a")
    assert a.join(committed=False) is None
    before = play.snapshot()
    assert before["members"]
    play.topic.fail(E.NOT_ENOUGH_REPLICAS)
    assert play.snapshot() == {name: [] for name in before}
    assert play.persister.asked == []
    settled(play, a)
    assert a.partitions() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"group_id": " "}, "GroupId can't be empty."),
        ({"member_id": " "}, "MemberId can't be empty."),
        ({"subscribed_topic_names": []}, "SubscribedTopicNames must be set in first request."),
        ({"member_epoch": -2}, "MemberEpoch is invalid."),
    ],
)
def test_requests_that_are_wrong_by_themselves(fields: dict[str, object], text: str) -> None:
    good: dict[str, object] = {"group_id": "g", "member_id": "m", "subscribed_topic_names": ["t"]}
    assert refusal(m.ShareGroupHeartbeatRequest(**good)) is None
    refused = refusal(m.ShareGroupHeartbeatRequest(**{**good, **fields}))
    assert refused is not None
    assert (refused.error_code, refused.error_message) == (E.INVALID_REQUEST, text)
