"""Classic groups and offsets on the runtime: the broker's view of a partition of __consumer_offsets."""

from __future__ import annotations

from coordinator.freeing import FREED_AT_ONCE
from coordinator.group.classic import events as ev
from coordinator.group.classic.states import GroupState
from coordinator.group.offsets import Commit
from coordinator.group.shard import GroupShard, ShardSettings
from coordinator.result import CoordinatorRecord, Result
from coordinator.runtime import Context, CoordinatorRuntime
from protocol import messages as m
from protocol.errors import ErrorCode as E
from runtime.entropy import SeededRandom
from tests.unit.coordinator.memory_topic import MemoryTopic, Tasks, VirtualTime

SUBSCRIPTION = m.ConsumerProtocolSubscription(topics=["read"])


class Groups:
    """A coordinator of one partition, loaded."""

    def __init__(self, topic: MemoryTopic | None = None) -> None:
        self.topic = MemoryTopic() if topic is None else topic
        self.time, self.tasks = VirtualTime(), Tasks()
        self.runtime = CoordinatorRuntime(
            "__consumer_offsets", self.topic, self.topic, self.time, self.time, self.tasks, self._make
        )
        self.runtime.start(1)
        self.runtime.load(0, 1)
        self.tasks.run()

    def _make(self, context: Context) -> GroupShard:
        settings = ShardSettings(ev.GroupSettings(initial_rebalance_delay_ms=0))
        self.shard = GroupShard(context, self.time, SeededRandom(1), settings)
        return self.shard

    def ask(self, event: type, group_id: str = "g", **fields: object) -> list:
        answers: list = []
        self.shard.handle(group_id, event(token=self.shard.expect_answer(answers.append), **fields))
        return answers

    def join(self, member_id: str = "", instance_id: str | None = None) -> list:
        protocols = (("range", b"\0\0" + SUBSCRIPTION.encode(0)),)
        return self.ask(
            ev.JoinGroup, version=3, member_id=member_id, session_timeout_ms=10_000,
            rebalance_timeout_ms=20_000, protocol_type="consumer", protocols=protocols,
            instance_id=instance_id,
        )  # fmt: skip

    def sync(self, member_id: str) -> list:
        return self.ask(
            ev.SyncGroup, version=3, member_id=member_id, generation=1, assignments={member_id: b"A"}
        )

    def heartbeat(self, member_id: str, generation: int = 1) -> E:
        (answer,) = self.ask(ev.Heartbeat, version=3, member_id=member_id, generation=generation)
        return E(answer.error_code)

    def member(self) -> str:
        """One member in a Stable group whose record is committed."""
        (joined,) = self.join()
        answers = self.sync(joined.member_id)
        self.topic.commit()
        assert answers[0].error_code == E.NONE
        return joined.member_id

    def write(self, records: list[CoordinatorRecord]) -> None:
        self.runtime.write(0, lambda _: Result(records, None), lambda error, response: None)
        self.topic.commit()

    def commit(self, *topics: str) -> None:
        commits = [Commit(topic, 0, 7) for topic in topics]
        self.write(self.shard.offsets.commit("g", commits, self.time.now_ms())[0])

    def remove(self, make: str, *arguments: object) -> list[E]:
        errors: list[E] = []

        def operation(shard: GroupShard) -> Result[None]:
            removal = getattr(shard, make)(*arguments)
            return Result(removal.records, None, undo=removal.undo)

        self.runtime.write(0, operation, lambda error, _: errors.append(error))
        return errors

    @property
    def committed_topics(self) -> list[str]:
        return [topic for topic, _ in self.shard.offsets.committed.row("g")]


def test_an_assignment_is_answered_when_it_is_committed() -> None:
    groups = Groups()
    (joined,) = groups.join()
    answers = groups.sync(joined.member_id)
    assert answers == []
    groups.topic.commit()
    assert answers[0].assignment == b"A"
    assert groups.heartbeat(joined.member_id) is E.NONE


def test_a_failed_assignment_is_refused_and_the_group_rebalances() -> None:
    groups = Groups()
    (joined,) = groups.join()
    answers = groups.sync(joined.member_id)
    groups.topic.fail(E.NOT_ENOUGH_REPLICAS)
    assert answers[0].error_code == E.COORDINATOR_NOT_AVAILABLE
    assert groups.shard.groups["g"].state is GroupState.PREPARING_REBALANCE
    assert groups.heartbeat(joined.member_id) is E.REBALANCE_IN_PROGRESS


def test_a_refused_append_is_told_after_the_event() -> None:
    groups = Groups()
    (joined,) = groups.join()
    groups.topic.refuse = E.KAFKA_STORAGE_ERROR
    answers = groups.sync(joined.member_id)
    assert answers == []
    groups.time.advance(1)
    assert answers[0].error_code == E.NOT_COORDINATOR


def test_a_silent_member_leaves_after_its_session() -> None:
    groups = Groups()
    member_id = groups.member()
    groups.time.advance(9_999)
    assert groups.heartbeat(member_id) is E.NONE
    groups.time.advance(9_999)
    assert "g" in groups.shard.groups
    assert groups.heartbeat(member_id) is E.NONE
    groups.time.advance(10_001)
    assert groups.heartbeat(member_id) is E.UNKNOWN_MEMBER_ID
    assert groups.shard.groups["g"].state is GroupState.EMPTY


def test_a_reload_keeps_members_and_gives_them_a_fresh_session() -> None:
    groups = Groups()
    member_id = groups.member()
    reloaded = Groups(groups.topic)
    assert reloaded.heartbeat(member_id) is E.NONE
    assert reloaded.shard.groups["g"].generation == 1
    reloaded.time.advance(20_000)
    assert reloaded.heartbeat(member_id) is E.UNKNOWN_MEMBER_ID


def test_unloading_answers_what_is_parked() -> None:
    groups = Groups()
    (joined,) = groups.join()
    answers = groups.sync(joined.member_id)
    groups.runtime.unload(0, 2)
    assert answers[0].error_code == E.NOT_COORDINATOR
    assert groups.shard.groups == {}
    groups.topic.commit()
    assert len(answers) == 1


def test_unloading_forgets_all_offsets_at_once_and_lets_go_of_them_by_and_by() -> None:
    groups = Groups()
    groups.write(
        groups.shard.offsets.commit("g", [Commit("t", index, 7) for index in range(FREED_AT_ONCE + 1)], 5)[0]
    )
    shard = groups.shard
    groups.runtime.unload(0, 2)
    assert list(shard.offsets.committed.items()) == []
    assert len(shard._context.timers) == 1
    groups.time.advance(2)
    assert len(shard._context.timers) == 0


def test_requests_without_a_group_leave_none_behind() -> None:
    groups = Groups()
    assert groups.heartbeat("nobody") is E.UNKNOWN_MEMBER_ID
    (answer,) = groups.join("nobody")
    assert answer.error_code == E.UNKNOWN_MEMBER_ID
    assert groups.shard.groups == {}


def test_a_removed_group_is_gone_after_a_reload_and_back_when_the_append_failed() -> None:
    groups = Groups()
    member_id = groups.member()
    groups.commit("t")
    groups.ask(ev.LeaveGroup, version=3, members=(ev.LeavingMember(member_id),))
    groups.topic.commit(len(groups.topic.undecided))
    errors = groups.remove("remove", "g")
    assert groups.shard.groups == {}
    groups.topic.fail(E.NOT_ENOUGH_REPLICAS)
    assert errors == [E.COORDINATOR_NOT_AVAILABLE]
    assert groups.shard.groups["g"].generation == 2
    assert groups.committed_topics == ["t"]
    errors = groups.remove("remove", "g")
    groups.topic.commit()
    assert errors == [E.NONE]
    reloaded = Groups(groups.topic)
    assert reloaded.shard.groups == {}
    assert reloaded.committed_topics == []


def test_a_removal_that_takes_too_long_still_holds() -> None:
    groups = Groups()
    member_id = groups.member()
    groups.ask(ev.LeaveGroup, version=3, members=(ev.LeavingMember(member_id),))
    groups.topic.commit(len(groups.topic.undecided))
    errors = groups.remove("remove", "g")
    groups.time.advance(5000)
    assert errors == [E.COORDINATOR_NOT_AVAILABLE]
    assert groups.shard.groups == {}


def test_a_removal_that_is_refused_is_taken_back_at_once() -> None:
    groups = Groups()
    member_id = groups.member()
    groups.ask(ev.LeaveGroup, version=3, members=(ev.LeavingMember(member_id),))
    groups.topic.commit(len(groups.topic.undecided))
    groups.topic.refuse = E.NOT_ENOUGH_REPLICAS
    assert groups.remove("remove", "g") == [E.COORDINATOR_NOT_AVAILABLE]
    assert groups.shard.groups["g"].state is GroupState.EMPTY


def test_a_living_group_loses_only_what_it_does_not_read() -> None:
    groups = Groups()
    groups.member()
    groups.commit("read", "other")
    groups.remove("remove_expired", ["g"], groups.time.now_ms() + 999, 1000)
    assert groups.committed_topics == ["read", "other"]
    groups.remove("remove_expired", ["g"], groups.time.now_ms() + 1000, 1000)
    assert groups.committed_topics == ["read"]


def test_an_empty_group_goes_with_its_last_offset() -> None:
    groups = Groups()
    member_id = groups.member()
    groups.commit("read")
    groups.time.advance(500)
    groups.ask(ev.LeaveGroup, version=3, members=(ev.LeavingMember(member_id),))
    groups.topic.commit(len(groups.topic.undecided))
    empty_ms = groups.time.now_ms()
    assert groups.remove("remove_expired", ["g"], empty_ms + 999, 1000) == [E.NONE]
    assert groups.committed_topics == ["read"]
    groups.remove("remove_expired", ["g"], empty_ms + 1000, 1000)
    groups.topic.commit()
    assert groups.shard.groups == {}
    assert Groups(groups.topic).shard.groups == {}
    assert Groups(groups.topic).committed_topics == []


def test_offsets_without_a_group_expire_by_their_commit() -> None:
    groups = Groups()
    groups.commit("t")
    groups.remove("remove_expired", ["g"], groups.time.now_ms() + 1000, 1000)
    groups.topic.commit()
    assert groups.shard.offsets.groups() == []


def test_unknown_records_are_passed_over() -> None:
    groups = Groups()
    groups.write([CoordinatorRecord(b"\0\x11key", b"\0\0"), CoordinatorRecord(b"\0\2\0\1x", None)])
    groups.commit("t")
    assert Groups(groups.topic).committed_topics == ["t"]


def test_unloading_right_after_a_refused_append_answers_once() -> None:
    groups = Groups()
    (joined,) = groups.join()
    groups.topic.refuse = E.KAFKA_STORAGE_ERROR
    answers = groups.sync(joined.member_id)
    groups.runtime.unload(0, 2)
    groups.time.advance(60_000)
    assert [answer.error_code for answer in answers] == [E.NOT_COORDINATOR]
    assert groups.time.wheel.size == 0


def test_a_static_member_hears_of_the_move_while_its_new_id_is_being_written() -> None:
    groups = Groups()
    (joined,) = groups.join(instance_id="i")
    groups.sync(joined.member_id)
    groups.topic.commit()
    groups.topic.refuse = E.KAFKA_STORAGE_ERROR
    answers = groups.join(instance_id="i")
    assert answers == []
    groups.runtime.unload(0, 2)
    assert [answer.error_code for answer in answers] == [E.NOT_COORDINATOR]
