"""Members that go."""

from __future__ import annotations

from coordinator.group.consumer.member import STATIC_LEAVE_EPOCH
from protocol.errors import ErrorCode as E
from tests.unit.coordinator.group.consumer.play import GROUP, Play, together


def test_what_a_static_member_had_is_kept_until_its_session_is_over() -> None:
    play = Play()
    a, b = play.client("a", "t", instance_id="i"), play.client("b", "t")
    a.join()
    b.join()
    together(a, b)
    epoch = play.epoch()
    a.leave(STATIC_LEAVE_EPOCH)
    current = play.tables.current.get(GROUP, "a")
    assert (current.epoch, [set(each.values()) for each in current.assigned.values()]) == (-2, [{0}])
    for _ in range(3):
        play.advance(14_000)
        b.sync()
    assert (play.epoch(), len(b.partitions())) == (epoch, 2)
    play.advance(14_000)
    b.sync()
    assert (play.epoch(), b.partitions()) == (epoch + 1, [0, 1, 2, 3])


def test_its_epoch_has_not_fallen_behind_when_it_comes_back_under_its_old_id() -> None:
    play = Play()
    a = play.client("a", "t", instance_id="i")
    a.join()
    a.leave(-2)
    assert a.beat(member_epoch=2).error_code == E.FENCED_MEMBER_EPOCH
    answer = a.join()
    assert (answer.member_epoch, a.partitions()) == (2, [0, 1, 2, 3])


def test_the_last_member_leaves_an_empty_group_with_its_epoch() -> None:
    play = Play()
    a = play.client("a", "t")
    a.join()
    a.leave()
    assert (play.epoch(), play.described().group_state) == (3, "Empty")
    assert a.join().member_epoch == 4


def test_who_is_not_there_cannot_leave() -> None:
    play = Play()
    a = play.client("a", "t")
    assert a.leave().error_code == E.GROUP_ID_NOT_FOUND
    a.join()
    assert play.client("b").leave().error_code == E.UNKNOWN_MEMBER_ID
    assert play.client("a", instance_id="i").leave().error_code == E.UNKNOWN_MEMBER_ID
