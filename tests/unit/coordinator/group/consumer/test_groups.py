"""Consumer groups as a whole: random histories, loading, and what the shard and the manager ask of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from coordinator.group.modern.ports import Committer
from coordinator.group.offsets import Commit
from coordinator.result import CoordinatorError, Producer
from protocol import messages as m
from protocol.errors import ErrorCode as E
from tests.unit.coordinator.group.consumer.classic import ClassicClient
from tests.unit.coordinator.group.consumer.play import GROUP, Play, together

IDS = ("a", "b", "c", "d")
TOPICS = ("t", "u", "v")


class Histories(RuleBasedStateMachine):
    """Clients that join, obey late, leave, and are silent; topics that come and go; a log that fails; and
    brokers that start anew.
    """

    @initialize(interval=st.sampled_from([0, 1000]))
    def begin(self, interval: int) -> None:
        self.play = Play({"t": 4, "u": 3})
        self.play.configs["consumer.assignment.interval.ms"] = interval
        self.clients: dict[str, Any] = {}
        self.epochs = (0, 0)
        self.member_epochs: dict[str, int] = {}
        self.next_id = 0

    def new_client(self, name: str, topics: list[str], static: bool, regex: str | None) -> None:
        self.next_id += 1
        self.clients[name] = self.play.client(
            f"{name}{self.next_id}",
            *topics,
            instance_id=f"static-{name}" if static else None,
            regex=regex,
            rebalance_timeout_ms=20_000,
        )

    @rule(
        name=st.sampled_from(IDS),
        topics=st.lists(st.sampled_from(TOPICS), unique=True, max_size=3),
        static=st.booleans(),
        regex=st.sampled_from([None, None, "[tu]", ".*"]),
    )
    def join(self, name: str, topics: list[str], static: bool, regex: str | None) -> None:
        if name not in self.clients:
            self.new_client(name, topics, static, regex)
        client = self.clients[name]
        answer = client.join()
        assert answer.error_code in (E.NONE, E.UNRELEASED_INSTANCE_ID)
        if answer.error_code:
            del self.clients[name]

    @rule(name=st.sampled_from(IDS), say=st.booleans())
    def beat(self, name: str, say: bool) -> None:
        if (client := self.clients.get(name)) is not None:
            self.take(name, client.beat(owned=client.has if say else None))

    @rule(name=st.sampled_from(IDS))
    def obey(self, name: str) -> None:
        if (client := self.clients.get(name)) is not None:
            client.obey()

    @rule(name=st.sampled_from(IDS), topics=st.lists(st.sampled_from(TOPICS), unique=True, max_size=3))
    def subscribe(self, name: str, topics: list[str]) -> None:
        if (client := self.clients.get(name)) is not None:
            client.topics = topics
            self.take(name, client.beat(owned=client.has, subscribed_topic_names=topics))

    @rule(name=st.sampled_from(IDS), for_now=st.booleans())
    def leave(self, name: str, for_now: bool) -> None:
        if (client := self.clients.pop(name, None)) is not None:
            client.leave(-2 if for_now and client.instance_id else -1)

    @rule(name=st.sampled_from(IDS))
    def vanish(self, name: str) -> None:
        self.clients.pop(name, None)

    @rule(seconds=st.sampled_from([1, 12, 25, 46]))
    def wait(self, seconds: int) -> None:
        self.play.advance(seconds * 1000)

    @rule(topic=st.sampled_from(TOPICS), count=st.integers(1, 5))
    def make_or_grow(self, topic: str, count: int) -> None:
        known = self.play.topics.facts.get(topic)
        self.play.topics.put(topic, count if known is None else known.partition_count + count)

    @rule(topic=st.sampled_from(TOPICS))
    def delete(self, topic: str) -> None:
        if topic in self.play.topics.facts:
            self.play.topics.delete(topic)

    @rule(name=st.sampled_from(IDS), how=st.sampled_from(["beat", "join", "leave"]))
    def fail(self, name: str, how: str) -> None:
        """A request whose records do not make it into the log changes nothing."""
        client = self.clients.get(name)
        if client is None or self.play.topic.undecided:
            return
        before = self.play.snapshot()
        has, told = client.has, client.told
        self.play.auto_commit = False
        answer = getattr(client, how)()
        if self.play.topic.undecided:
            self.play.topic.fail(E.NOT_ENOUGH_REPLICAS)
            assert self.play.snapshot() == before
            client.has, client.told = has, told
        elif answer is not None:
            self.take(name, answer)
        self.play.auto_commit = True
        if how != "beat":
            self.clients.pop(name, None)

    @rule()
    def restart(self) -> None:
        before = self.play.snapshot()
        self.play.restart()
        assert self.play.snapshot() == before

    @precondition(lambda self: self.clients)
    @rule()
    def everybody_settles(self) -> None:
        """With time and obedient members every group comes to rest, with all partitions given out."""
        for _ in range(3):
            for name, client in list(self.clients.items()):
                if client.sync().error_code:
                    answer = client.join()
                    if answer.error_code:
                        del self.clients[name]
            self.play.advance(16_000)
        for _ in range(5):
            for client in self.clients.values():
                client.sync()
                self.play.advance(1000)
        tables = self.play.tables
        if set(tables.members.row(GROUP)) != {client.id for client in self.clients.values()}:
            return  # somebody who has vanished still has a session
        if not self.clients:
            return
        assert self.play.described().group_state == "Stable"
        topics = self.play.topics.facts
        for client in self.clients.values():
            client.obey()
        wanted = {
            (topics[name].topic_id, number)
            for client in self.clients.values()
            for name in self.subscribed(client)
            if name in topics
            for number in range(topics[name].partition_count)
        }
        given = {
            (topic, number)
            for client in self.clients.values()
            for topic, numbers in client.has.items()
            for number in numbers
        }
        assert given == wanted

    def subscribed(self, client: Any) -> set[str]:
        names = set(self.play.tables.members.get(GROUP, client.id).topics)
        regex = self.play.tables.members.get(GROUP, client.id).regex
        if regex:
            names |= self.play.tables.regexes.get(GROUP, regex).topics
        return names

    def take(self, name: str, answer: Any) -> None:
        assert answer.error_code in (
            E.NONE, E.UNKNOWN_MEMBER_ID, E.FENCED_MEMBER_EPOCH, E.GROUP_ID_NOT_FOUND,
            E.FENCED_INSTANCE_ID, E.UNRELEASED_INSTANCE_ID,
        ), answer  # fmt: skip
        if answer.error_code:
            self.clients.pop(name, None)

    @invariant()
    def nobody_has_what_another_has(self) -> None:
        if not hasattr(self, "play"):
            return
        owners: dict[tuple[bytes, int], str] = {}
        members = self.play.tables.members.row(GROUP)
        for client in self.clients.values():
            if client.id not in members:
                continue
            for topic, numbers in client.has.items():
                for number in numbers:
                    assert owners.setdefault((topic, number), client.id) == client.id
        held: dict[tuple[bytes, int], str] = {}
        for member_id, current in self.play.tables.current.row(GROUP).items():
            for epochs in (current.assigned, current.revoking):
                for topic, numbers in epochs.items():
                    for number in numbers:
                        assert held.setdefault((topic, number), member_id) == member_id
        assert held == self.play.tables.holders.row(GROUP)
        users = [member.regex for member in members.values() if member.regex]
        assert {regex: users.count(regex) for regex in users} == self.play.tables.regex_users.row(GROUP)

    @invariant()
    def epochs_do_not_fall(self) -> None:
        if not hasattr(self, "play"):
            return
        tables = self.play.tables
        epochs = (tables.epoch(GROUP).epoch, tables.target_epoch(GROUP).epoch)
        assert epochs[0] >= self.epochs[0]
        assert epochs[1] >= self.epochs[1]
        assert epochs[1] <= epochs[0]
        self.epochs = epochs
        for member_id, current in tables.current.row(GROUP).items():
            assert current.epoch <= epochs[1]
            if current.epoch > 0:
                assert current.epoch >= self.member_epochs.get(member_id, 0)
                self.member_epochs[member_id] = current.epoch


Histories.TestCase.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None, derandomize=True
)
TestHistories = Histories.TestCase


def test_after_a_restart_sessions_and_rebalance_deadlines_run_again() -> None:
    play = Play()
    a, b = play.client("a", "t", rebalance_timeout_ms=10_000), play.client("b", "t")
    a.join()
    a.obey()
    b.join()
    a.beat()  # is told to revoke
    epoch = play.epoch()
    play.restart()
    assert play.epoch() == epoch
    assert a.epoch == 2
    for _ in range(2):
        play.advance(4000)
        assert a.beat(owned=a.has).error_code == E.NONE
        assert b.beat().error_code == E.NONE
    play.advance(3000)
    assert a.beat().error_code == E.UNKNOWN_MEMBER_ID
    assert b.beat().error_code == E.NONE
    assert b.partitions() == [0, 1, 2, 3]


def test_who_is_silent_for_a_session_is_removed() -> None:
    play = Play()
    a, b = play.client("a", "t"), play.client("b", "t")
    a.join()
    b.join()
    together(a, b)
    for _ in range(4):
        play.advance(15_000)
        a.beat()
    assert list(play.tables.members.row(GROUP)) == ["a"]
    assert b.beat().error_code == E.UNKNOWN_MEMBER_ID
    a.beat()
    assert a.partitions() == [0, 1, 2, 3]


def test_a_removal_that_is_not_appended_is_tried_again() -> None:
    play = Play()
    a = play.client("a", "t")
    a.join()
    play.topic.refuse = E.NOT_ENOUGH_REPLICAS
    play.advance(46_000)
    assert list(play.tables.members.row(GROUP)) == ["a"]
    play.topic.refuse = None
    play.advance(46_000)
    assert play.tables.members.row(GROUP) == {}
    assert play.described().group_state == "Empty"


def commits(play: Play, by: Committer, *partitions: int, version: int = 9) -> Any:
    wanted = [Commit("t", each, 5) for each in partitions or (0,)]
    answers: list[Any] = []
    play.manager.commit_offsets(GROUP, by, version, wanted, lambda *got: answers.append(got))
    play.commit()
    ((error, errors),) = answers
    return error if errors is None else errors


def test_offsets_of_topics_that_nobody_reads_expire_and_the_empty_group_with_the_last() -> None:
    play = Play({"t": 1, "u": 1})
    a = play.client("a", "t")
    a.join()
    assert commits(play, Committer("a", None, 2)) == [E.NONE]
    day_ms = 86_400_000
    play.time.advance(1)
    play.manager.retention_ms = day_ms
    shard = play.shard
    assert shard.remove_expired([GROUP], play.time.now_ms() + 2 * day_ms, day_ms).records == []
    a.leave()
    removal = shard.remove_expired([GROUP], play.time.now_ms() + 2 * day_ms, day_ms)
    assert [record.value for record in removal.records] == [None] * len(removal.records)
    assert {int.from_bytes(record.key[:2], "big") for record in removal.records} == {1, 3, 6}


def test_a_deleted_group_leaves_nothing_in_the_log() -> None:
    play = Play({"t": 2, "ta": 1})
    a = play.client("a", "t", regex="t.*", instance_id="one")
    a.join()
    play.settle()
    a.leave()
    answers: list[Any] = []
    play.manager.delete_group(GROUP, lambda *got: answers.append(got))
    play.commit()
    assert answers == [(E.NONE, None)]
    assert all(cells == [] for cells in play.snapshot().values())
    play.restart()
    assert all(cells == [] for cells in play.snapshot().values())
    assert play.described().error_code == E.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("by", "version", "wanted"),
    [
        (Committer("a", None, 2), 9, [E.NONE]),
        (Committer("a", None, 2), 8, E.UNSUPPORTED_VERSION),
        (Committer("a", None, 3), 9, E.STALE_MEMBER_EPOCH),
        (Committer("b", None, 2), 9, E.UNKNOWN_MEMBER_ID),
        (Committer("", None, -1), 9, E.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_may_commit(by: Committer, version: int, wanted: object) -> None:
    play = Play()
    play.client("a", "t").join()
    assert commits(play, by, version=version) == wanted


def test_a_commit_in_a_transaction_hears_of_generations() -> None:
    play = Play()
    play.client("a", "t").join()
    answers: list[Any] = []
    for member_id, epoch in (("a", 3), ("a", 2), ("b", 2), ("", -1)):
        play.manager.commit_offsets(
            GROUP,
            Committer(member_id, None, epoch),
            3,
            [Commit("t", 0, 5)],
            lambda error, _: answers.append(error),
            producer=Producer(7, 0),
        )
        play.commit()
    assert answers == [E.ILLEGAL_GENERATION, E.NONE, E.UNKNOWN_MEMBER_ID, E.NONE]


def test_a_group_id_has_one_type() -> None:
    play = Play()
    play.client("a", "t").join()
    assert play.shard.modern_group(GROUP) is play.shard.consumer
    assert play.shard.modern_group("other") is None
    assert [each.group_type for each in play.manager.list_groups()] == ["consumer"]
    described = play.manager.describe(GROUP, 6)
    assert described.error_message == f"Group {GROUP} is not a classic group."


def test_an_old_record_of_topics_is_taken_away_with_the_next_epoch() -> None:
    from coordinator.group.modern.records import record
    from coordinator.group.modern.tables import ONLY
    from coordinator.result import Result

    play = Play()
    a = play.client("a", "t")
    a.join()
    old = record(4, GROUP, None, m.ConsumerGroupPartitionMetadataValue(topics=[]))
    play.request(play.runtime.write, 0, lambda shard: Result([old], None))
    assert play.tables.old_topics.get(GROUP, ONLY)
    a.beat(subscribed_topic_names=[])
    assert play.tables.old_topics.get(GROUP, ONLY) is None


def empty_group(**settings: Any) -> Play:
    play = Play({"t": 2}, **settings)
    a = play.client("a", "t")
    a.join()
    a.leave()
    assert play.described().group_state == "Empty"
    return play


def types(play: Play) -> list[str]:
    """The group as it is listed: once, whatever has happened."""
    return [group.group_type for group in play.manager.list_groups()]


def test_a_classic_member_joins_an_empty_group_which_is_a_classic_one_then() -> None:
    play = empty_group()
    assert ClassicClient(play, "t").join().error_code == E.NONE
    assert types(play) == ["classic"]
    assert not play.tables.exists(GROUP)


@pytest.mark.parametrize(
    ("fields", "error"),
    [({"session_timeout_ms": 1}, E.INVALID_SESSION_TIMEOUT), ({"member_id": "x"}, E.UNKNOWN_MEMBER_ID)],
)
def test_a_classic_member_that_cannot_join_leaves_the_empty_group(fields: dict[str, Any], error: E) -> None:
    play = empty_group()
    (answer,) = ClassicClient(play, "t").post_join(**fields)
    assert answer.error_code == error
    assert types(play) == ["consumer"]


@pytest.mark.parametrize("version", [3, 9])
def test_a_group_is_never_of_two_types_when_the_old_one_cannot_be_removed(version: int) -> None:
    play = empty_group()
    play.topic.refuse = E.NOT_ENOUGH_REPLICAS
    with pytest.raises(CoordinatorError) as refused:
        ClassicClient(play, "t").post_join(version)
    assert refused.value.error == E.COORDINATOR_NOT_AVAILABLE
    assert types(play) == ["consumer"]
    play.topic.refuse = None
    play.auto_commit = False
    answers = ClassicClient(play, "t").post_join(3)
    play.topic.fail(E.KAFKA_STORAGE_ERROR)
    assert types(play) == ["consumer"]
    assert GROUP not in play.shard.groups
    assert all(answer.error_code in (E.NONE, E.NOT_COORDINATOR) for answer in answers)
    play.auto_commit = True
    assert play.client("b", "t").join().error_code == E.NONE
