"""Members of the classic protocol inside a consumer group: deadlines, and refusals that need time."""

from __future__ import annotations

from coordinator.group.classic import events as ev
from coordinator.group.consumer.classic_member import refused
from coordinator.group.consumer.settings import MigrationPolicy
from protocol.errors import ErrorCode as E
from tests.unit.coordinator.group.consumer.classic import ClassicClient, stable
from tests.unit.coordinator.group.consumer.play import GROUP, Play
from tests.unit.coordinator.group.consumer.test_downgrade import mixed


def members(play: Play) -> list[str]:
    return list(play.tables.members.row(GROUP))


def test_who_was_told_to_join_has_its_rebalance_timeout_for_it() -> None:
    play = Play()
    new, old = mixed(play)
    third = play.client("third", "t")
    third.join()
    assert old.heartbeat() == E.REBALANCE_IN_PROGRESS
    for _ in range(4):
        play.advance(4_900)
        assert old.heartbeat() == E.REBALANCE_IN_PROGRESS
        new.sync()
        third.sync()
    play.advance(500)
    assert members(play) == ["new", "third"]
    assert old.heartbeat() == E.UNKNOWN_MEMBER_ID


def test_who_has_joined_has_as_long_to_sync() -> None:
    play = Play()
    new, old = mixed(play)
    assert old.join().error_code == E.NONE
    for _ in range(4):
        play.advance(4_900)
        assert old.heartbeat() == E.NONE
        new.sync()
    play.advance(500)
    assert members(play) == ["new"]
    again = ClassicClient(play, "t")
    again.join()
    again.sync()
    for _ in range(6):
        play.advance(5_000)
        again.heartbeat()
        new.sync()
    assert members(play) != ["new"]


def test_its_session_is_what_it_asked_for() -> None:
    play = Play()
    new, old = mixed(play)
    play.advance(29_000)
    assert old.heartbeat() == E.NONE
    new.sync()
    play.advance(29_000)
    assert old.id in members(play)
    new.sync()
    play.advance(2_000)
    assert members(play) == ["new"]


def test_after_a_restart_its_session_runs_again() -> None:
    play = Play()
    new, _ = mixed(play)
    play.restart()
    new.sync()
    play.advance(31_000)
    assert members(play) == ["new"]


def test_a_generation_is_an_epoch() -> None:
    play = Play()
    _, old = mixed(play)
    known, old.generation = old.generation, old.generation - 1
    assert old.heartbeat() == E.ILLEGAL_GENERATION
    assert old.sync().error_code == E.ILLEGAL_GENERATION
    old.generation = known
    assert old.sync().error_code == E.NONE


def test_a_sync_behind_the_target_asks_to_join_again() -> None:
    play = Play()
    _, old = mixed(play)
    play.client("third", "t").join()
    assert old.sync().error_code == E.REBALANCE_IN_PROGRESS


def test_a_free_partition_that_it_waits_for_makes_it_join() -> None:
    play = Play()
    new, old = play.client("new", "t"), ClassicClient(play, "t")
    new.join()
    new.obey()
    old.join()
    assert old.sync().error_code == E.NONE
    assert old.heartbeat() == E.NONE  # the other one has it still
    new.beat(owned=new.has)
    new.sync()
    assert old.heartbeat() == E.REBALANCE_IN_PROGRESS
    assert len(old.rejoin("t", [])) == 2
    assert old.heartbeat() == E.NONE


def test_version_3_needs_no_second_join_and_static_members_none_either() -> None:
    for fields in ({"version": 3}, {}):
        play = Play()
        play.client("new", "t").join()
        old = ClassicClient(play, "t", instance_id=None if fields else "i")
        (answer,) = old.post_join(**fields)
        assert (answer.error_code, len(answer.member_id)) == (E.NONE, 22)


def test_who_cannot_join() -> None:
    play = Play(max_size=1)
    play.client("new", "t").join()
    (answer,) = ClassicClient(play, "t").post_join()
    assert (answer.error_code, answer.member_id) == (E.GROUP_MAX_SIZE_REACHED, "")
    play = Play(migration=MigrationPolicy.DISABLED)
    play.client("new", "t").join()
    (answer,) = ClassicClient(play, "t").post_join()
    assert answer.error_code == E.INCONSISTENT_GROUP_PROTOCOL
    play = Play()
    mixed(play)
    other = ClassicClient(play, "t")
    other.protocols = (("roundrobin", other.protocols[0][1]),)
    assert other.post_join()[0].error_code == E.INCONSISTENT_GROUP_PROTOCOL
    other.protocols = (("range", b"?"),)
    other.id = "x"
    assert other.post_join()[0].error_code == E.INCONSISTENT_GROUP_PROTOCOL


def test_a_static_member_of_an_upgraded_group_comes_back_as_a_classic_one() -> None:
    play = Play()
    old = ClassicClient(play, "t", instance_id="i")
    stable(play, old)
    new = play.client("new", "t")
    new.join()
    known = old.id
    back = ClassicClient(play, "t", instance_id="i")
    assert back.join().error_code == E.NONE
    assert back.id != known
    assert old.heartbeat() == E.FENCED_INSTANCE_ID
    stranger = ClassicClient(play, "t", instance_id="other")
    stranger.id = "x"
    assert stranger.post_join()[0].error_code == E.UNKNOWN_MEMBER_ID


def test_several_leave_at_once_each_with_its_own_error() -> None:
    play = Play()
    new, old = mixed(play)
    leaving = (
        ev.LeavingMember(old.id), ev.LeavingMember("x"), ev.LeavingMember("", "i"), ev.LeavingMember(old.id),
    )  # fmt: skip
    (answer,) = play.classic(lambda token: ev.LeaveGroup(token, 5, leaving))
    unknown = E.UNKNOWN_MEMBER_ID
    assert [each.error_code for each in answer.members] == [E.NONE, unknown, unknown, unknown]
    assert members(play) == [new.id]


def test_refusals_in_each_api() -> None:
    error = E.NOT_COORDINATOR
    join = ev.JoinGroup(0, 5, "m", 1, 1, "consumer", ())
    for event in (join, ev.SyncGroup(0, 5, "m", 1), ev.Heartbeat(0, 4, "m", 1), ev.LeaveGroup(0, 5, ())):
        assert refused(event, error).error_code == error


def test_records_that_are_not_appended_are_an_error_of_the_join() -> None:
    play = Play()
    play.client("new", "t").join()
    old = ClassicClient(play, "t")
    old.id = "old"
    play.auto_commit = False
    answers = old.post_join()
    play.topic.fail(E.NOT_ENOUGH_REPLICAS)
    assert [each.error_code for each in answers] == [E.COORDINATOR_NOT_AVAILABLE]
    assert members(play) == ["new"]


def test_a_member_that_did_not_hear_of_its_join_in_time_has_a_session_all_the_same() -> None:
    play = Play()
    new, old = play.client("new", "t"), ClassicClient(play, "t")
    new.join()
    play.auto_commit = False
    answers = old.post_join(3)
    play.time.advance(5000)
    assert [each.error_code for each in answers] == [E.COORDINATOR_NOT_AVAILABLE]
    play.commit()
    play.auto_commit = True
    assert len(members(play)) == 2
    for _ in range(3):
        play.advance(10_000)
        new.beat()
    assert members(play) == ["new"]
