"""Heartbeats of consumer groups through the runtime: what conformance tests cannot reach, as it needs time,
failures of the log, or restarts.
"""

from __future__ import annotations

from protocol.errors import ErrorCode as E
from tests.unit.coordinator.group.consumer.play import GROUP, Play, together


def test_two_members_share_what_one_had() -> None:
    play = Play()
    a, b = play.client("a", "t"), play.client("b", "t")
    assert a.join().member_epoch == 2
    assert a.partitions() == [0, 1, 2, 3]
    assert b.join().member_epoch == 3
    assert b.partitions() == []
    assert a.beat(owned=a.has).member_epoch == 2
    a.obey()
    assert b.beat().assignment is None
    assert a.sync().member_epoch == 3
    b.beat()
    assert sorted(a.partitions() + b.partitions()) == [0, 1, 2, 3]
    assert play.described().group_state == "Stable"


def test_a_heartbeat_without_news_writes_nothing() -> None:
    play = Play()
    a = play.client("a", "t")
    a.join()
    end = play.topic.end(0)
    a.sync()
    a.beat()
    assert play.topic.end(0) == end


def test_a_join_that_is_not_appended_leaves_nothing_behind() -> None:
    play = Play()
    a, b = play.client("a", "t"), play.client("b", "t")
    a.join()
    a.obey()
    before = play.snapshot()
    play.auto_commit = False
    assert b.join() is None
    play.topic.fail(E.NOT_ENOUGH_REPLICAS)
    assert play.snapshot() == before
    play.auto_commit = True
    assert b.beat(member_epoch=3).error_code == E.UNKNOWN_MEMBER_ID
    assert b.join().member_epoch == 3


def test_a_change_of_topics_is_looked_at_again_when_its_records_fail() -> None:
    play = Play()
    a = play.client("a", "t")
    a.join()
    play.topics.put("t", 6)
    play.auto_commit = False
    a.beat()
    play.topic.fail(E.NOT_ENOUGH_REPLICAS)
    play.auto_commit = True
    assert a.beat().member_epoch == 3
    assert a.partitions() == [0, 1, 2, 3, 4, 5]


def test_an_answer_waits_for_what_it_may_have_seen() -> None:
    play = Play()
    a = play.client("a", "t")
    play.auto_commit = False
    assert a.join() is None
    stranger = play.client("b", "t")
    assert stranger.beat(member_epoch=4) is None  # refused because of a, which is not committed
    assert len(play.topic.undecided) == 1


def test_assignments_are_paced() -> None:
    play = Play()
    play.configs["consumer.assignment.interval.ms"] = 1000
    a, b = play.client("a", "t"), play.client("b", "t")
    assert a.join().member_epoch == 2
    answer = b.join()
    assert (answer.member_epoch, b.partitions()) == (2, [])
    assert play.epoch() == 3
    assert play.described().group_state == "Assigning"
    play.advance(750)
    assert b.beat().member_epoch == 2
    play.advance(250)
    assert b.beat().member_epoch == 3


def test_a_full_group_takes_nobody_else_but_keeps_its_members() -> None:
    play = Play(max_size=2)
    a, b = play.client("a", "t"), play.client("b", "t", instance_id="one")
    a.join()
    b.join()
    assert play.client("c", "t").join().error_code == E.GROUP_MAX_SIZE_REACHED
    assert a.join().error_code == E.NONE
    b.leave(-2)
    assert play.client("d", "t", instance_id="one").join().error_code == E.NONE


def test_a_member_in_a_state_of_a_newer_broker_has_to_join_again() -> None:
    from dataclasses import replace

    from coordinator.group.consumer.member import MemberState, current_record
    from coordinator.result import Result

    play = Play()
    a = play.client("a", "t")
    a.join()
    a.obey()
    current = replace(play.tables.current.get(GROUP, "a"), state=MemberState.UNKNOWN)
    play.request(play.runtime.write, 0, lambda shard: Result([current_record(GROUP, "a", current)], None))
    assert a.beat().error_code == E.FENCED_MEMBER_EPOCH
    assert a.beat(owned=a.has).error_code == E.FENCED_MEMBER_EPOCH
    assert a.join().error_code == E.NONE
    assert a.partitions() == [0, 1, 2, 3]


def test_members_with_a_choice_of_assignor_outvote_the_default() -> None:
    play = Play({"t": 4, "u": 4})
    a, b = play.client("a", "t", "u", assignor="range"), play.client("b", "t", "u")
    a.join()
    b.join()
    together(a, b)
    assert play.described().assignor_name == "range"
    assert (a.partitions("t"), a.partitions("u")) == ([0, 1], [0, 1])
    epoch = play.epoch()
    a.beat(server_assignor="uniform")
    assert play.epoch() == epoch + 1
