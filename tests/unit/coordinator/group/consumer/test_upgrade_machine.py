"""Random histories of groups with members of both protocols: a group is of one type, and what is live is what
is replayed.
"""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from coordinator.group.classic.states import GroupState
from coordinator.group.consumer.settings import MigrationPolicy
from protocol.errors import ErrorCode as E
from tests.unit.coordinator.group.consumer.classic import ClassicClient, assignment, subscription
from tests.unit.coordinator.group.consumer.play import GROUP, Play

NAMES = ("a", "b", "c")


class Migrations(RuleBasedStateMachine):
    """Classic clients send what clients may send, in any order; requests of theirs may stay parked."""

    @initialize(policy=st.sampled_from(MigrationPolicy), interval=st.sampled_from([0, 1000]))
    def begin(self, policy: MigrationPolicy, interval: int) -> None:
        self.play = Play(migration=policy)
        self.play.configs["consumer.assignment.interval.ms"] = interval
        self.new: dict[str, Any] = {}
        self.old: dict[str, ClassicClient] = {}
        self.parked: dict[str, list[Any]] = {}
        self.count = 0

    @rule(name=st.sampled_from(NAMES), static=st.booleans())
    def new_joins(self, name: str, static: bool) -> None:
        self.count += 1
        client = self.play.client(
            f"{name}{self.count}", "t", instance_id=f"static-{name}" if static else None
        )
        if not client.join().error_code:
            self.new[name] = client

    @rule(name=st.sampled_from(NAMES))
    def new_beats(self, name: str) -> None:
        if name in self.new and self.new[name].sync().error_code:
            del self.new[name]

    @rule(name=st.sampled_from(NAMES), for_now=st.booleans())
    def new_leaves(self, name: str, for_now: bool) -> None:
        if (client := self.new.pop(name, None)) is not None:
            client.leave(-2 if for_now and client.instance_id else -1)

    @rule(name=st.sampled_from(NAMES), static=st.booleans(), owned=st.lists(st.integers(0, 3), unique=True))
    def old_joins(self, name: str, static: bool, owned: list[int]) -> None:
        if name not in self.old:
            self.old[name] = ClassicClient(self.play, "t", instance_id=f"static-{name}" if static else None)
        client = self.old[name]
        client.protocols = (("range", subscription("t", owned={"t": owned} if owned else {})),)
        answers = self.parked[name] = client.post_join()
        self.take(name, answers)
        if answers and answers[0].error_code == E.MEMBER_ID_REQUIRED:
            self.parked[name] = client.post_join()

    @rule(name=st.sampled_from(NAMES), given=st.booleans())
    def old_syncs(self, name: str, given: bool) -> None:
        if name in self.old:
            self.take(name, self.parked.pop(name, []))
        if (client := self.old.get(name)) is not None:
            client.post_sync({client.id: assignment("t", 0, 1)} if given else None)

    @rule(name=st.sampled_from(NAMES))
    def old_beats(self, name: str) -> None:
        if (client := self.old.get(name)) is not None and client.heartbeat() in (
            E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID,
        ):  # fmt: skip
            client.id = ""

    @rule(name=st.sampled_from(NAMES))
    def old_leaves(self, name: str) -> None:
        if (client := self.old.pop(name, None)) is not None:
            client.leave()

    def take(self, name: str, answers: list[Any]) -> None:
        if not answers:
            return
        answer = self.old[name].take(answers)
        if answer.error_code in (E.UNKNOWN_MEMBER_ID, E.FENCED_INSTANCE_ID):
            self.old[name].id = ""

    @rule(seconds=st.sampled_from([1, 12, 21, 46]))
    def wait(self, seconds: int) -> None:
        self.play.advance(seconds * 1000)

    @rule()
    def next_turn(self) -> None:
        self.play.settle()

    @rule(name=st.sampled_from(NAMES), what=st.sampled_from(["new", "old"]), joins=st.booleans())
    def fail(self, name: str, what: str, joins: bool) -> None:
        """The log takes nothing for a while."""
        self.play.auto_commit = False
        client: Any
        if what == "new":
            client = self.new.pop(name, None) or self.play.client(f"{name}-lost", "t")
            client.join() if joins else client.leave()
        else:
            client = self.old.pop(name, None) or ClassicClient(self.play, "t")
            client.post_join() if joins or not client.id else client.play.classic(
                lambda token: _leave(token, client)
            )
        if self.play.topic.undecided:
            self.play.topic.fail(E.NOT_ENOUGH_REPLICAS)
        self.play.auto_commit = True
        self.play.settle()

    @rule()
    def restart(self) -> None:
        before = self.play.snapshot()
        self.play.restart()
        self.parked.clear()
        assert self.play.snapshot() == before

    @invariant()
    def a_group_is_of_one_type(self) -> None:
        if not hasattr(self, "play"):
            return
        group = self.play.shard.groups.get(GROUP)
        assert group is None or not self.play.tables.exists(GROUP)
        assert group is None or group.state is not GroupState.DEAD
        held: dict[tuple[bytes, int], str] = {}
        for member_id, current in self.play.tables.current.row(GROUP).items():
            for epochs in (current.assigned, current.revoking):
                for topic, numbers in epochs.items():
                    for number in numbers:
                        assert held.setdefault((topic, number), member_id) == member_id
        assert held == self.play.tables.holders.row(GROUP)


def _leave(token: int, client: ClassicClient) -> Any:
    from coordinator.group.classic import events as ev

    return ev.LeaveGroup(token, 5, (ev.LeavingMember(client.id, client.instance_id),))


Migrations.TestCase.settings = settings(
    max_examples=40, stateful_step_count=40, deadline=None, derandomize=True
)
TestMigrations = Migrations.TestCase
