"""What request handlers get from the group coordinator."""

from __future__ import annotations

import pytest

from coordinator.group.classic import events as ev
from coordinator.group.manager import RETENTION_MS, Committer, GroupManager
from coordinator.group.offsets import Commit, Fetched
from coordinator.result import CoordinatorError, Producer
from protocol.errors import ErrorCode as E
from tests.unit.coordinator.group.test_shard import Groups

NOBODY = Committer()
FIRST, SECOND = Producer(7, 0), Producer(8, 0)


class Requests(Groups):
    """Requests as handlers make them, for group "g"."""

    @property
    def manager(self) -> GroupManager:
        return GroupManager(self.runtime, self.time, self.time, RETENTION_MS)

    def offset_commit(
        self, *commits: Commit, by: Committer = NOBODY, version: int = 8, **options: object
    ) -> list:
        answers: list = []
        wanted = list(commits) or [Commit("t", 0, 5)]
        self.manager.commit_offsets("g", by, version, wanted, lambda *got: answers.append(got), **options)
        self.topic.commit(len(self.topic.undecided))
        return answers

    def offset_fetch(self, topic: str = "t", *, stable: bool = False) -> Fetched:
        answers: list = []
        self.manager.fetch_offsets("g", [(topic, 0)], lambda *got: answers.append(got), require_stable=stable)
        ((error, found),) = answers
        assert error is E.NONE
        return found[0]

    def delete(self, what: str, *arguments: object) -> object:
        answers: list = []
        getattr(self.manager, what)("g", *arguments, lambda *got: answers.append(got))
        self.topic.commit(len(self.topic.undecided))
        ((error, found),) = answers
        return error if found is None else found


def test_ownership_comes_before_everything_in_kafkas_order() -> None:
    groups = Requests()
    manager = groups.manager

    def refused(group_id: str | None) -> E:
        with pytest.raises(CoordinatorError) as error:
            manager.handle(group_id, lambda token: ev.Heartbeat(token, 3, "m", 1), lambda answer: None)
        return error.value.error

    assert refused(None) is E.INVALID_GROUP_ID
    assert refused("") is E.INVALID_GROUP_ID
    groups.runtime.unload(0)
    assert refused("g") is E.NOT_COORDINATOR
    groups.runtime.load(0, 9)
    assert refused("g") is E.COORDINATOR_LOAD_IN_PROGRESS
    groups.runtime.close()
    assert refused("g") is E.COORDINATOR_NOT_AVAILABLE
    assert refused("") is E.INVALID_GROUP_ID
    groups.tasks.run()


def test_the_empty_group_may_commit_but_not_in_a_transaction() -> None:
    groups = Requests()
    answers: list = []
    for producer in (Producer(), Producer(7, 0)):
        groups.manager.commit_offsets(
            "", Committer(), 8, [Commit("t", 0, 5)], lambda *got: answers.append(got), producer=producer
        )
    groups.topic.commit()
    assert answers == [(E.INVALID_GROUP_ID, None), (E.NONE, [E.NONE])]


@pytest.mark.parametrize(
    ("by", "version", "wanted"),
    [
        (Committer(), 8, E.NONE),
        (Committer(generation=3, member_id="m"), 8, E.ILLEGAL_GENERATION),
        (Committer(generation=3, member_id="m"), 9, E.GROUP_ID_NOT_FOUND),
    ],
)
def test_commits_without_a_group(by: Committer, version: int, wanted: E) -> None:
    ((error, _),) = Requests().offset_commit(by=by, version=version)
    assert error is wanted


def test_commits_of_a_living_group_are_for_its_members() -> None:
    groups = Requests()
    member_id = groups.member()
    assert groups.offset_commit() == [(E.UNKNOWN_MEMBER_ID, None)]
    assert groups.offset_commit(by=Committer(member_id, None, 0)) == [(E.ILLEGAL_GENERATION, None)]
    assert groups.offset_commit(by=Committer(member_id, None, 1)) == [(E.NONE, [E.NONE])]
    assert groups.offset_commit(producer=Producer(7, 0)) == [(E.NONE, [E.NONE])]


def test_a_commit_is_a_sign_of_life() -> None:
    groups = Requests()
    member_id = groups.member()
    for _ in range(4):
        groups.time.advance(6000)
        assert groups.offset_commit(by=Committer(member_id, None, 1))[0][0] is E.NONE
    assert groups.heartbeat(member_id) is E.NONE


def test_a_stable_fetch_waits_for_transactions() -> None:
    groups = Requests()
    groups.offset_commit(Commit("t", 0, 5, 2, "m"))
    groups.offset_commit(Commit("t", 0, 6), producer=Producer(7, 0))
    assert groups.offset_fetch() == Fetched("t", 0, 5, 2, "m")
    assert groups.offset_fetch(stable=True) == Fetched("t", 0, error=E.UNSTABLE_OFFSET_COMMIT)
    assert groups.offset_fetch("never") == Fetched("never", 0, -1, -1, "", E.NONE)


def test_offsets_of_subscribed_topics_are_not_deleted() -> None:
    groups = Requests()
    cells = [("read", 0), ("other", 0), ("never", 0)]
    assert groups.delete("delete_offsets", cells) is E.GROUP_ID_NOT_FOUND
    member_id = groups.member()
    groups.offset_commit(Commit("read", 0, 1), Commit("other", 0, 1), by=Committer(member_id, None, 1))
    assert groups.delete("delete_offsets", cells) == [E.GROUP_SUBSCRIBED_TO_TOPIC, E.NONE, E.NONE]
    assert groups.committed_topics == ["read"]


def test_only_empty_groups_are_deleted() -> None:
    groups = Requests()
    assert groups.delete("delete_group") is E.GROUP_ID_NOT_FOUND
    groups.offset_commit()
    assert groups.delete("delete_group") is E.NONE
    assert groups.offset_fetch().offset == -1
    groups.member()
    assert groups.delete("delete_group") is E.NON_EMPTY_GROUP


def test_groups_are_listed_and_described() -> None:
    groups = Requests()
    assert groups.manager.list_groups() == []
    assert groups.manager.describe("g", 5).group_state == "Dead"
    assert groups.manager.describe("g", 6).error_code == E.GROUP_ID_NOT_FOUND
    groups.offset_commit()
    (simple,) = groups.manager.list_groups()
    assert (simple.group_id, simple.protocol_type, simple.group_state) == ("g", "", "Empty")
    assert groups.manager.describe("g", 6).group_state == "Empty"
    groups.member()
    (listed,) = groups.manager.list_groups()
    assert (listed.protocol_type, listed.group_state) == ("consumer", "Stable")
    assert len(groups.manager.describe("g", 6).members) == 1


def test_deleted_topics_and_old_offsets_leave_every_partition() -> None:
    groups = Requests()
    groups.offset_commit(Commit("t", 0, 1), Commit("u", 0, 1))
    answers: list = []
    groups.manager.topics_deleted(["t"], lambda *got: answers.append(got))
    groups.topic.commit()
    assert groups.committed_topics == ["u"]
    groups.time.advance(RETENTION_MS - 1)
    groups.manager.expire(lambda *got: answers.append(got))
    assert groups.committed_topics == ["u"]
    groups.time.advance(1)
    groups.manager.expire(lambda *got: answers.append(got))
    groups.topic.commit()
    assert groups.committed_topics == []
    assert answers == [(E.NONE, None)] * 3


def test_many_groups_expire_in_slices() -> None:
    groups = Requests()
    for number in range(5):
        commits = [Commit("t", partition, 1) for partition in range(999)]
        groups.manager.commit_offsets(f"g{number}", NOBODY, 8, commits, lambda *got: None)
    groups.topic.commit(5)
    assert [len(part) for part in groups.shard.slices()] == [2, 2, 1]
    groups.time.advance(RETENTION_MS)
    answers: list = []
    groups.manager.expire(lambda *got: answers.append(got))
    for left in (3, 1, 0):
        assert len(groups.shard.offsets.groups()) == left
        assert answers == []
        groups.topic.commit()
        groups.time.advance(1)
    assert answers == [(E.NONE, None)]
    groups.manager.expire(lambda *got: answers.append(got))
    assert len(answers) == 2


def test_partitions_take_turns_when_offsets_leave_them() -> None:
    """However many partitions there are, one turn of the timer has one slice of one of them."""
    groups = Requests()
    groups.runtime.start(3)
    shards = [groups.shard]
    for partition in (1, 2):
        groups.runtime.load(partition, 1)
        groups.tasks.run()
        shards.append(groups.shard)
    for number in range(12):
        groups.manager.commit_offsets(f"g{number}", NOBODY, 8, [Commit("t", 0, 1)], lambda *got: None)
    groups.topic.commit(12)
    assert all(shard.offsets.groups() for shard in shards)
    answers: list = []
    groups.manager.topics_deleted(["t"], lambda *got: answers.append(got))
    for left in (2, 1, 0):
        assert [bool(shard.offsets.groups()) for shard in shards].count(True) == left
        groups.time.advance(1)
    assert answers == []
    groups.topic.commit(3)
    assert answers == [(E.NONE, None)] * 3


def end(groups: Requests, commit: bool, producer: Producer = FIRST) -> None:
    groups.runtime.write_end_marker(0, *producer, 1, commit, lambda error, _: None)
    groups.topic.commit()


@pytest.mark.parametrize(("commit", "left"), [(True, 9), (False, 5)])
def test_a_transaction_that_was_open_at_a_failover_is_ended_by_the_new_coordinator(
    commit: bool, left: int
) -> None:
    """7 and 49: pending after the load, then published or dropped."""
    groups = Requests()
    groups.offset_commit(Commit("t", 0, 5))
    groups.offset_commit(Commit("t", 0, 9), producer=FIRST)
    groups = Requests(groups.topic)
    assert groups.offset_fetch().offset == 5
    assert groups.offset_fetch(stable=True).error is E.UNSTABLE_OFFSET_COMMIT
    end(groups, commit)
    assert groups.offset_fetch(stable=True).offset == left
    assert Requests(groups.topic).offset_fetch(stable=True).offset == left


@pytest.mark.parametrize("reload_after", range(3))
def test_a_later_plain_commit_survives_wherever_a_failover_comes(reload_after: int) -> None:
    """8: the marker of an older transactional commit does not move the offset back."""
    groups = Requests()
    steps = (
        lambda: groups.offset_commit(Commit("t", 0, 9), producer=FIRST),
        lambda: groups.offset_commit(Commit("t", 0, 5)),
        lambda: end(groups, commit=True),
    )
    for number, step in enumerate(steps):
        step()
        if number == reload_after:
            groups = Requests(groups.topic)
    assert groups.offset_fetch(stable=True).offset == 5


@pytest.mark.parametrize("reloads", [False, True])
def test_of_two_producers_only_the_one_that_commits_is_left(reloads: bool) -> None:
    """51."""
    groups = Requests()
    for producer in (FIRST, SECOND):
        groups.offset_commit(Commit("t", 0, producer.producer_id), producer=producer)
    if reloads:
        groups = Requests(groups.topic)
    end(groups, commit=True, producer=FIRST)
    assert groups.offset_fetch(stable=True).error is E.UNSTABLE_OFFSET_COMMIT
    end(groups, commit=False, producer=SECOND)
    assert groups.offset_fetch(stable=True).offset == 7


@pytest.mark.parametrize("what", ["group", "topic"])
def test_what_is_deleted_is_not_brought_back_by_a_marker(what: str) -> None:
    """40 and 45: pending offsets go with the group and with the topic; a topic made anew starts at -1."""
    groups = Requests()
    groups.offset_commit(Commit("t", 0, 5))
    groups.offset_commit(Commit("t", 0, 9), producer=FIRST)
    if what == "group":
        assert groups.delete("delete_group") is E.NONE
    else:
        groups.manager.topics_deleted(["t"], lambda error, _: None)
        groups.topic.commit()
    end(groups, commit=True)
    assert groups.offset_fetch(stable=True).offset == -1
    assert Requests(groups.topic).offset_fetch(stable=True).offset == -1


def test_retention_counts_from_becoming_empty_also_after_a_failover() -> None:
    """46 and 52: not from the load; the group goes with its last offset, and a reload does not know it."""
    groups = Requests()
    member_id = groups.member()
    groups.offset_commit(by=Committer(member_id, None, 1))
    groups.time.advance(5000)
    groups.ask(ev.LeaveGroup, version=3, members=(ev.LeavingMember(member_id),))
    groups.topic.commit(len(groups.topic.undecided))
    empty_ms = groups.time.now_ms()
    groups = Requests(groups.topic)
    groups.time.advance(empty_ms + RETENTION_MS - 1 - groups.time.now_ms())
    groups.manager.expire(lambda error, _: None)
    assert (groups.offset_fetch().offset, len(groups.topic.undecided)) == (5, 0)
    groups.time.advance(1)
    groups.manager.expire(lambda error, _: None)
    groups.topic.commit()
    assert groups.offset_fetch().offset == -1
    assert Requests(groups.topic).manager.list_groups() == []


def test_every_parked_sync_hears_that_the_assignment_was_not_written() -> None:
    """12: nothing of it leaks, and the group rebalances."""
    groups = Requests()
    (first,) = groups.join()
    joins = groups.join()
    (again,) = groups.join(first.member_id)
    second, *_ = joins
    syncs = [
        groups.ask(
            ev.SyncGroup, version=5, member_id=each.member_id, generation=2,
            assignments={first.member_id: b"A", second.member_id: b"B"},
        )
        for each in (second, again)
    ]  # fmt: skip
    assert syncs == [[], []]
    groups.topic.fail(E.NOT_ENOUGH_REPLICAS)
    for (answer,) in syncs:
        assert (answer.error_code, answer.assignment) == (E.COORDINATOR_NOT_AVAILABLE, b"")
    assert groups.heartbeat(first.member_id, 2) is E.REBALANCE_IN_PROGRESS
    assert all(member.assignment == b"" for member in groups.shard.groups["g"].members.values())
