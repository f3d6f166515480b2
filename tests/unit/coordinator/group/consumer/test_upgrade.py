"""Classic groups that go on as consumer groups."""

from __future__ import annotations

from coordinator.group.classic.states import GroupState
from coordinator.group.consumer.settings import MigrationPolicy
from protocol.errors import ErrorCode as E
from tests.unit.coordinator.group.consumer.classic import ClassicClient, stable
from tests.unit.coordinator.group.consumer.play import GROUP, Play


def two(play: Play) -> tuple[ClassicClient, ClassicClient]:
    clients = ClassicClient(play, "t"), ClassicClient(play, "t")
    stable(play, *clients)
    return clients


def test_members_keep_their_ids_epochs_and_partitions() -> None:
    play = Play()
    one, other = two(play)
    generation = one.generation
    new = play.client("new", "t")
    assert new.join().member_epoch == generation + 1
    assert GROUP not in play.shard.groups
    for client, numbers in ((one, {0, 1}), (other, {2, 3})):
        member = play.tables.members.get(GROUP, client.id)
        current = play.tables.current.get(GROUP, client.id)
        assert (member.topics, member.classic.session_timeout_ms, member.rebalance_timeout_ms) == (
            ("t",), 30_000, 20_000,
        )  # fmt: skip
        assert current.epoch == generation
        assert {number for each in current.assigned.values() for number in each} == numbers
    before = play.snapshot()
    play.restart()
    assert play.snapshot() == before
    assert play.shard.groups == {}


def test_an_upgrade_that_is_not_appended_leaves_the_classic_group() -> None:
    play = Play()
    one, other = two(play)
    play.auto_commit = False
    new = play.client("new", "t")
    assert new.join() is None
    play.topic.fail(E.NOT_ENOUGH_REPLICAS)
    play.auto_commit = True
    assert not play.tables.exists(GROUP)
    assert play.shard.groups[GROUP].state is GroupState.STABLE
    assert (one.heartbeat(), other.heartbeat()) == (E.NONE, E.NONE)
    assert new.join().error_code == E.NONE


def test_an_upgrade_that_is_refused_changes_nothing() -> None:
    play = Play()
    one, _ = two(play)
    new = play.client("new", "t")
    assert new.join(subscribed_topic_regex="(").error_code == E.INVALID_REGULAR_EXPRESSION
    assert one.heartbeat() == E.NONE
    assert not play.tables.exists(GROUP)


def test_what_forbids_an_upgrade() -> None:
    for settings in (
        {"migration": MigrationPolicy.DISABLED}, {"migration": MigrationPolicy.DOWNGRADE}, {"max_size": 1},
    ):  # fmt: skip
        play = Play(**settings)  # type: ignore[arg-type]
        one, _ = two(play)
        assert play.client("new", "t").join().error_code == E.GROUP_ID_NOT_FOUND
        assert one.heartbeat() == E.NONE
    play = Play()
    stable(play, ClassicClient(play, "t"), user_data=b"of its own")
    answer = play.client("new", "t").join()
    assert answer.error_code == E.GROUP_ID_NOT_FOUND
    assert "custom assignor" in answer.error_message


def test_an_empty_group_is_taken_over_whatever_the_policy() -> None:
    play = Play(migration=MigrationPolicy.DISABLED)
    one = ClassicClient(play, "t", protocol_type="connect")
    one.join()
    one.leave()
    new = play.client("new", "t")
    assert new.join().member_epoch == 2
    play.restart()
    assert (play.shard.groups, list(play.tables.members.row(GROUP))) == ({}, ["new"])


def test_a_share_or_other_group_is_not_taken_over() -> None:
    play = Play()
    parts = play.shard._parts(lambda: play.shard.consumer)
    assert not parts.is_taken(GROUP)
    two(play)
    assert parts.is_taken(GROUP)


def test_partitions_of_one_who_left_in_a_rebalance_are_given_out_after_the_upgrade() -> None:
    """Also where the upgrade brings no new subscription, and the group was of the newer protocol before."""
    play = Play()
    first = play.client("first", "t")
    first.join()
    first.leave()
    one, other = ClassicClient(play, "t", instance_id="i"), ClassicClient(play, "t")
    stable(play, one, other)
    assert other.leave() == E.NONE
    assert play.shard.groups[GROUP].state is GroupState.PREPARING_REBALANCE
    new = play.client("new", "t", instance_id="i")
    new.join()
    new.sync()
    assert new.partitions() == [0, 1, 2, 3]
