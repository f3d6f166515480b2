"""Consumer groups that go on as classic ones."""

from __future__ import annotations

from coordinator.group.classic.states import GroupState
from coordinator.group.consumer.settings import MigrationPolicy
from protocol.errors import ErrorCode as E
from tests.unit.coordinator.group.consumer.classic import ClassicClient, assignment, partitions_of
from tests.unit.coordinator.group.consumer.play import GROUP, Client, Play


def mixed(play: Play) -> tuple[Client, ClassicClient]:
    """A member of each protocol, with two partitions each."""
    new, old = play.client("new", "t"), ClassicClient(play, "t")
    new.join()
    old.join()
    new.sync()
    new.sync()
    assert len(old.rejoin("t", [])) == 2
    return new, old


def test_the_last_member_of_the_newer_protocol_leaves_a_classic_group_that_rebalances() -> None:
    play = Play()
    new, old = mixed(play)
    epoch = play.epoch()
    assert new.leave().error_code == E.NONE
    assert not play.tables.exists(GROUP)
    group = play.shard.groups[GROUP]
    assert (group.state, group.generation, list(group.members)) == (GroupState.STABLE, epoch, [old.id])
    play.settle()
    assert group.state is GroupState.PREPARING_REBALANCE
    assert old.heartbeat() == E.REBALANCE_IN_PROGRESS
    assert old.join().generation_id == epoch + 1
    assert all(cells == [] for cells in play.snapshot().values())
    play.restart()
    assert list(play.shard.groups[GROUP].members) == [old.id]
    assert all(cells == [] for cells in play.snapshot().values())


def test_so_does_a_session_that_ends() -> None:
    play = Play()
    _, old = mixed(play)
    for _ in range(5):
        play.advance(10_000)
        old.heartbeat()
    assert not play.tables.exists(GROUP)
    assert list(play.shard.groups[GROUP].members) == [old.id]


def test_a_downgrade_that_is_not_appended_leaves_the_consumer_group() -> None:
    play = Play()
    new, old = mixed(play)
    before = play.snapshot()
    play.auto_commit = False
    assert new.leave() is None
    play.topic.fail(E.NOT_ENOUGH_REPLICAS)
    play.auto_commit = True
    play.settle()
    assert (play.snapshot(), play.shard.groups) == (before, {})
    assert old.heartbeat() == E.NONE


def test_what_forbids_a_downgrade() -> None:
    for settings in ({"migration": MigrationPolicy.UPGRADE}, {"classic_max_size": 0}):
        play = Play(**settings)  # type: ignore[arg-type]
        new, old = mixed(play)
        new.leave()
        assert list(play.tables.members.row(GROUP)) == [old.id]
        assert play.shard.groups == {}


def test_a_static_member_that_comes_back_as_a_classic_one_brings_no_rebalance() -> None:
    play = Play()
    new = play.client("new", "t", instance_id="i")
    new.join()
    epoch = play.epoch()
    old = ClassicClient(play, "t", instance_id="i")
    answer = old.join()
    assert (answer.error_code, answer.generation_id) == (E.NONE, epoch)
    play.settle()
    assert play.shard.groups[GROUP].state is GroupState.STABLE
    assert partitions_of(old.sync().assignment) == [0, 1, 2, 3]
    assert old.heartbeat() == E.NONE
    play.advance(31_000)
    assert old.heartbeat() == E.UNKNOWN_MEMBER_ID


def test_a_changed_subscription_on_the_way_back_asks_for_a_rebalance() -> None:
    play = Play({"t": 4, "u": 1})
    play.configs["consumer.assignment.interval.ms"] = 5000
    new = play.client("new", "t", instance_id="i")
    new.join()
    old = ClassicClient(play, "u", instance_id="i")
    assert old.join().error_code == E.NONE
    play.settle()
    assert play.shard.groups[GROUP].state is GroupState.PREPARING_REBALANCE


def test_a_static_member_that_comes_back_as_a_classic_one_gets_nothing_that_another_has() -> None:
    """Its other subscription calls for another assignment: the classic group begins with a rebalance."""
    play = Play({"t": 4, "u": 1})
    static, old = play.client("static", "u", instance_id="i"), ClassicClient(play, "t")
    static.join()
    old.join()
    assert old.rejoin("t", []) == [0, 1, 2, 3]
    back = ClassicClient(play, "t", instance_id="i")
    back.join()
    play.settle()
    assert not play.tables.exists(GROUP)
    assert play.shard.groups[GROUP].state is GroupState.PREPARING_REBALANCE
    assert back.sync().error_code == E.REBALANCE_IN_PROGRESS


def test_what_a_classic_member_has_is_its_own_through_a_change_and_back_that_it_did_not_hear_of() -> None:
    play = Play({"t": 4})
    old = ClassicClient(play, "t")
    assert old.join(version=3).error_code == E.NONE
    assert partitions_of(old.sync({old.id: assignment("t", 0, 1, 2, 3)}).assignment) == [0, 1, 2, 3]
    first, second = play.client("first", "t"), play.client("second", "t")
    assert first.join().error_code == E.NONE  # and `old` is to give up half of what it has
    assert first.leave().error_code == E.NONE
    play.settle()
    assert play.shard.groups[GROUP].state is GroupState.PREPARING_REBALANCE
    assert second.join().error_code == E.NONE
    second.sync()
    assert second.partitions() == []
    assert old.rejoin("t", [0, 1, 2, 3]) != [0, 1, 2, 3]
    assert old.rejoin("t", [0, 1]) == [0, 1]
    second.sync()
    assert second.partitions() == [2, 3]
