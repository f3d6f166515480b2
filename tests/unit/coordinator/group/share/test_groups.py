"""The share groups of a shard: sessions, what is shown, and that the log alone brings everything back."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from coordinator.group.modern.ports import Committer
from coordinator.group.offsets import Commit
from protocol.errors import ErrorCode as E
from tests.unit.coordinator.group.share.play import GROUP, Client, Play, settled

MEMBERS = st.sampled_from("abc")


def test_who_is_silent_for_a_session_is_removed() -> None:
    play = Play()
    a, b = play.client("a"), play.client("b")
    settled(play, a, b)
    for _ in range(3):
        play.advance(15_000)
        a.beat()
    assert list(play.groups.tables.members.row(GROUP)) == ["a"]
    assert b.beat().error_code == E.UNKNOWN_MEMBER_ID
    a.beat()
    assert a.partitions() == [0, 1, 2, 3]


def test_after_a_restart_sessions_run_anew() -> None:
    play = Play()
    a = play.client("a")
    settled(play, a)
    play.advance(40_000)
    play.restart()
    play.advance(40_000)
    assert a.beat().error_code == 0
    play.advance(45_000)
    assert a.beat().error_code == E.UNKNOWN_MEMBER_ID
    assert play.described().group_state == "Empty"


def test_a_removal_that_is_not_appended_is_tried_again() -> None:
    play = Play()
    settled(play, play.client("a"))
    play.topic.refuse = E.NOT_ENOUGH_REPLICAS
    play.advance(45_000)
    assert list(play.groups.tables.members.row(GROUP)) == ["a"]
    play.topic.refuse = None
    play.advance(45_000)
    assert not play.groups.tables.members.row(GROUP)


def test_a_group_is_shown_by_what_is_committed() -> None:
    play = Play()
    a = play.client("a")
    assert play.described().error_message == "Group g not found."
    a.join(committed=False)
    assert play.described().error_code == E.GROUP_ID_NOT_FOUND
    play.commit()
    play.answer()
    assert a.join().member_epoch == 3
    group = play.described()
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 3, 3)
    [member] = group.members
    assert (member.member_id, member.member_epoch, member.client_host) == ("a", 3, "/host")
    [topic] = member.assignment.topic_partitions
    assert (topic.topic_name, topic.partitions) == ("t", [0, 1, 2, 3])
    [listed] = play.manager.list_groups()
    assert (listed.group_id, listed.group_type, listed.protocol_type) == (GROUP, "share", "share")


def test_nothing_is_committed_to_it() -> None:
    play = Play()
    play.client("a").join()
    answers: list[Any] = []
    play.manager.commit_offsets(GROUP, Committer(), 9, [Commit("t", 0, 5)], lambda *got: answers.append(got))
    play.manager.fetch_offsets(GROUP, None, lambda *got: answers.append(got))
    play.manager.delete_offsets(GROUP, [("t", 0)], lambda *got: answers.append(got))
    assert answers == [(E.GROUP_ID_NOT_FOUND, None), (E.NONE, []), (E.GROUP_ID_NOT_FOUND, None)]


def test_a_group_of_offsets_is_no_share_group() -> None:
    play = Play()
    answers: list[Any] = []
    play.manager.commit_offsets(GROUP, Committer(), 9, [Commit("t", 0, 5)], lambda *got: answers.append(got))
    play.commit()
    answer = play.client("a").join()
    assert (answer.error_code, answer.error_message) == (
        E.GROUP_ID_NOT_FOUND,
        "Group g is not a share group.",
    )


def test_an_empty_group_does_not_expire() -> None:
    play = Play()
    play.client("a").join()
    play.client("a").leave()
    day_ms = 86_400_000
    assert play.shard.remove_expired([GROUP], play.time.now_ms() + 9 * day_ms, day_ms).records == []


def test_old_partition_records_have_no_effect() -> None:
    play = Play()
    before = play.snapshot()
    play.shard.replay(b"\x00\x09\x00\x01g", b"\x00\x00", 0, -1)
    assert play.snapshot() == before


class Histories(RuleBasedStateMachine):
    """Whatever members, the share coordinator and the log do: after a restart all is as it was."""

    @initialize()
    def begin(self) -> None:
        self.play = Play({"t": 3, "u": 2}, session_timeout_ms=lambda _: 45_000)
        self.clients: dict[str, Client] = {each: self.play.client(each, "t") for each in "abc"}

    @rule(member=MEMBERS, topics=st.sampled_from([("t",), ("u",), ("t", "u"), ("absent",)]))
    def join(self, member: str, topics: tuple[str, ...]) -> None:
        self.clients[member].topics = topics
        self.clients[member].join()

    @rule(member=MEMBERS)
    def beat(self, member: str) -> None:
        self.clients[member].beat()

    @rule(member=MEMBERS)
    def leave(self, member: str) -> None:
        self.clients[member].leave()

    @rule(error=st.sampled_from([E.NONE, E.NONE, E.COORDINATOR_NOT_AVAILABLE]))
    def decide(self, error: E) -> None:
        self.play.answer(error)

    @rule(member=MEMBERS)
    def lose_a_write(self, member: str) -> None:
        self.clients[member].join(committed=False)
        if self.play.topic.undecided:
            self.play.topic.fail(E.NOT_ENOUGH_REPLICAS)

    @rule(ms=st.sampled_from([1000, 31_000]))
    def wait(self, ms: int) -> None:
        self.play.advance(ms)

    @rule(name=st.sampled_from("tu"))
    def grow(self, name: str) -> None:
        facts = self.play.topics.facts.get(name)
        self.play.topics.put(name, 1 if facts is None else min(facts.partition_count + 1, 5))

    @rule(name=st.sampled_from("tu"))
    def delete_topic(self, name: str) -> None:
        facts = self.play.topics.facts.get(name)
        if facts is not None:
            self.play.topics.delete(name)
            self.play.manager.topics_deleted([name], lambda error, _: None, [facts.topic_id])
            self.play.commit()

    @rule()
    def alter(self) -> None:
        self.play.alter({"t": {0: 7}})
        self.play.answer()

    @rule(error=st.sampled_from([E.NONE, E.COORDINATOR_NOT_AVAILABLE]))
    def delete_offsets(self, error: E) -> None:
        self.play.delete_offsets("t", "u")
        self.play.answer(error)

    @rule(error=st.sampled_from([E.NONE, E.COORDINATOR_NOT_AVAILABLE]))
    def delete_group(self, error: E) -> None:
        self.play.delete_group()
        self.play.answer(error)

    @rule()
    def restart(self) -> None:
        before = self.play.snapshot()
        self.play.restart()
        assert self.play.snapshot() == before

    @invariant()
    def only_partitions_with_state_are_targets(self) -> None:
        if not hasattr(self, "play"):
            return
        groups = self.play.groups
        state, tables = groups.state(GROUP), groups.tables
        for topic_id, topic in state.initialized.items():
            for index in topic.partitions:
                assert (GROUP, topic_id, index) in self.play.persister.state
        for target in tables.targets.row(GROUP).values():
            for topic_id, partitions in target.items():
                if topic_id in state.initialized:
                    assert partitions <= state.initialized[topic_id].partitions
        for current in tables.current.row(GROUP).values():
            assert current.epoch <= tables.target_epoch(GROUP).epoch <= tables.epoch(GROUP).epoch

    @invariant()
    def who_is_settled_reads_everything_together(self) -> None:
        if not hasattr(self, "play"):
            return
        tables = self.play.groups.tables
        epoch = tables.epoch(GROUP).epoch
        current = tables.current.row(GROUP)
        members = tables.members.row(GROUP)
        if not members or any(current.get(each) is None or current[each].epoch != epoch for each in members):
            return
        if tables.target_epoch(GROUP).epoch != epoch:
            return
        read = {
            (topic_id, index)
            for each in current.values()
            for topic_id, partitions in each.assigned.items()
            for index in partitions
        }
        wanted = {
            (topic_id, index)
            for target in tables.targets.row(GROUP).values()
            for topic_id, partitions in target.items()
            for index in partitions
            if self.play.topics.name_of(topic_id) is not None
        }
        assert read >= wanted


Histories.TestCase.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None, derandomize=True
)
TestHistories = Histories.TestCase
