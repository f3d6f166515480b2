"""Random joins, syncs, heartbeats, leaves, crashes, failed writes, waits, reloads: what must always hold.

The model is no second implementation. It asks of each event: was every member that is gone now allowed to go?
Does an answer fit the group's generation and the assignment that its leader sent? Do the log's last record
and the live group say the same? At the end every request must have been answered, once.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from coordinator.group.classic import events as ev
from coordinator.group.classic.effects import Outcome
from coordinator.group.classic.group import ClassicGroup
from coordinator.group.classic.snapshot import group_record
from coordinator.group.classic.states import GroupState
from protocol import messages as m
from protocol.errors import ErrorCode
from tests.unit.coordinator.group.classic.play import Asked, CountingIds, Play

DYNAMIC, STATIC = ("a", "b", "c", "d"), ("s", "t")
NAMES = st.sampled_from(DYNAMIC + STATIC)
OFFERS = st.sampled_from([("range",), ("range", "rr"), ("rr", "range")])
SESSIONS = st.sampled_from([6000, 10_000, 40_000])
WAITS = st.sampled_from([1, 500, 3000, 5999, 9000, 20_000, 70_000])
SIGNS_OF_LIFE = (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS)
MAX_SIZE = 5


class Watched(Play):
    """A play that explains every member that goes."""

    def __init__(self) -> None:
        super().__init__(ev.GroupSettings(max_size=MAX_SIZE))
        self.holding = True
        self.log_is_behind = False
        self.last_sign_ms: dict[str, int] = {}
        self.joined_generation: dict[str, int] = {}
        self.protocols: dict[int, str | None] = {}
        self.todo: dict[str, str] = {}
        self.asking: dict[int, str] = {}

    def instance(self, name: str) -> str | None:
        return name if name in STATIC else None

    def ask(self, event: ev.Request) -> None:
        self.asking[event.token] = "" if isinstance(event, ev.LeaveGroup) else event.member_id
        super().ask(event)

    def tell(self, event: ev.Event) -> Outcome:
        group = self.existing()
        before = dict(group.members)
        unsynced, generation = list(group.unsynced), group.generation
        waited = {each: member.joining is not None for each, member in before.items()}
        out = super().tell(event)
        assert generation <= group.generation <= generation + 1, "one generation at a time"
        for member_id, member in before.items():
            if member_id not in group.members:
                reasons = (
                    self.asked_to_go(event, member_id, member.instance_id),
                    isinstance(event, ev.SessionExpired) and event.member_id == member_id,
                    isinstance(event, ev.RebalanceDeadline) and not waited[member_id],
                    isinstance(event, ev.SyncDeadline) and member_id in unsynced,
                    isinstance(event, ev.RecordsFailed) and member.joining is None,
                )
                assert any(reasons), f"{member_id} was lost at {event}"
            if isinstance(event, ev.SessionExpired) and member_id not in group.members:
                silent_ms = self.now_ms - self.last_sign_ms[member_id]
                limit_ms = (
                    self.settings.new_member_join_timeout_ms if member.is_new else member.session_timeout_ms
                )
                assert silent_ms >= limit_ms, f"{member_id} was evicted after {silent_ms} ms"
                assert member.is_new or not waited[member_id], "a member that waits is not evicted"
        for member_id in group.members:
            if member_id not in before:
                self.last_sign_ms.setdefault(member_id, self.now_ms)
        return out

    def asked_to_go(self, event: ev.Event, member_id: str, instance_id: str | None) -> bool:
        match event:
            case ev.LeaveGroup(members=leaving):
                return any(
                    member_id == each.member_id or (instance_id and instance_id == each.instance_id)
                    for each in leaving
                )
            case ev.JoinGroup():
                restarts = event.member_id == "" and event.instance_id is not None
                refused = self.replies.get(event.token)
                full = getattr(refused, "error_code", 0) == ErrorCode.GROUP_MAX_SIZE_REACHED
                return full or (restarts and event.instance_id == instance_id)
        return False

    def perform(self, out: Outcome) -> None:
        group = self.group
        for reply in out.replies:
            name = self.asked[reply.token].name
            response = reply.response
            if isinstance(response, m.JoinGroupResponse) and response.error_code == ErrorCode.NONE:
                self.check_joined(group, name, response)
            elif isinstance(response, m.SyncGroupResponse) and response.error_code == ErrorCode.NONE:
                assert group is not None
                assert response.assignment in (b"", f"{group.generation}-{name}".encode())
            if response.error_code in SIGNS_OF_LIFE:
                self.last_sign_ms[self.asking[reply.token]] = self.now_ms
        super().perform(out)
        for reply in out.replies:
            self.learn_what_to_do(self.asked[reply.token], reply.response.error_code)
        if out.records:
            self.log_is_behind = False

    def learn_what_to_do(self, asked: Asked, error: int) -> None:
        """A client as it should be: what it does after this answer."""
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID) or asked.api == "leave":
            self.ids.setdefault(asked.name, []).append("")
        after = {"join": "sync", "sync": "beat", "beat": "beat"}.get(asked.api, "join")
        self.todo[asked.name] = after if error == ErrorCode.NONE else "join"

    def check_joined(self, group: ClassicGroup | None, name: str, response: m.JoinGroupResponse) -> None:
        assert group is not None
        assert response.generation_id == group.generation
        assert response.member_id in group.members
        known = self.protocols.setdefault(response.generation_id, response.protocol_name)
        assert known == response.protocol_name, "a generation has one protocol"
        if response.members:
            assert response.member_id == group.leader_id
            assert response.leader == group.leader_id
            assert [each.member_id for each in response.members] == list(group.members)
        self.joined_generation[name] = response.generation_id
        self.last_sign_ms[response.member_id] = self.now_ms


class GroupMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.play = Watched()

    def ask_join(self, name: str, version: int, session: int, offers: tuple[str, ...], owned: bytes) -> None:
        play = self.play
        if name in STATIC and version < 5:
            version += 5
        play.ask(
            ev.JoinGroup(
                play.token(name, "join", {"v": str(version)}),
                version,
                play.member_id(name),
                session,
                60_000,
                "consumer",
                tuple((each, owned) for each in offers),
                play.instance(name),
                client_id=name,
            )
        )

    @rule(
        name=NAMES,
        version=st.integers(0, 9),
        session=SESSIONS,
        offers=OFFERS,
        owned=st.sampled_from([b"", b"o"]),
        forgets=st.booleans(),
    )
    def join(
        self, name: str, version: int, session: int, offers: tuple[str, ...], owned: bytes, forgets: bool
    ) -> None:
        if forgets:  # a client that starts anew: what it was is left to its session, or replaced
            self.play.ids.setdefault(name, []).append("")
        self.ask_join(name, version, session, offers, owned)

    @rule(
        names=st.lists(NAMES, min_size=1, max_size=6, unique=True),
        session=SESSIONS,
        rounds=st.integers(1, 8),
        pause_ms=st.sampled_from([100, 1000, 3000]),
    )
    def clients_do_as_they_should(self, names: list[str], session: int, rounds: int, pause_ms: int) -> None:
        play = self.play
        for _ in range(rounds):
            for name in names:
                busy = any(play.asked[token].name == name for token in play.unanswered())
                match None if busy else play.todo.get(name, "join"):
                    case "join":
                        self.ask_join(name, 9, session, ("range", "rr"), b"")
                    case "sync":
                        self.sync(name)
                    case "beat":
                        self.beat(name)
            while play.writes:
                play.do_commit()
            play.do_wait(str(pause_ms))

    @rule(name=NAMES)
    def sync(self, name: str) -> None:
        play = self.play
        generation = play.joined_generation.get(name, 0)
        members = play.group.members.values() if play.group is not None else ()
        play.ask(
            ev.SyncGroup(
                play.token(name, "sync", {}),
                5,
                play.member_id(name),
                generation,
                play.instance(name),
                assignments={each.member_id: f"{generation}-{each.client_id}".encode() for each in members},
            )
        )

    @rule(name=NAMES)
    def beat(self, name: str) -> None:
        play = self.play
        play.ask(
            ev.Heartbeat(
                play.token(name, "beat", {}),
                4,
                play.member_id(name),
                play.joined_generation.get(name, 0),
                play.instance(name),
            )
        )

    @rule(names=st.lists(NAMES, min_size=1, max_size=3, unique=True), version=st.integers(0, 5))
    def leave(self, names: list[str], version: int) -> None:
        play = self.play
        if version < 3:
            names = names[:1]
        leaving = tuple(ev.LeavingMember(play.member_id(each), play.instance(each)) for each in names)
        play.ask(ev.LeaveGroup(play.token(names[0], "leave", {"v": str(version)}), version, leaving))

    @rule(ms=WAITS)
    def wait(self, ms: int) -> None:
        self.play.do_wait(str(ms))

    @precondition(lambda self: self.play.writes)
    @rule(fails=st.sampled_from([False, False, False, True]))
    def write(self, fails: bool) -> None:
        play = self.play
        if not play.writes:
            return
        if not fails:
            play.do_commit()
            return
        while play.writes:  # a failed batch takes the later ones with it
            play.log_is_behind = True
            play.do_fail("NOT_ENOUGH_REPLICAS")

    @precondition(lambda self: self.play.log)
    @rule()
    def reload(self) -> None:
        play = self.play
        play.do_reload()
        play.log_is_behind = False
        play.protocols.clear()
        for member_id in play.existing().members:
            play.last_sign_ms[member_id] = play.now_ms

    @invariant()
    def the_live_group_is_what_the_log_says(self) -> None:
        play, group = self.play, self.play.group
        if group is None or play.writes or play.log_is_behind or group.is_vacant or not play.log:
            return
        if group.state not in (GroupState.STABLE, GroupState.EMPTY):
            return
        live, logged = group_record(group).value, play.log[-1].value
        assert live is not None
        assert logged is not None
        live.members.sort(key=lambda member: member.member_id)
        logged.members.sort(key=lambda member: member.member_id)
        assert live == logged

    def teardown(self) -> None:
        play = self.play
        while play.writes or (play.group is not None and play.unanswered()):
            while play.writes:
                play.do_commit()
            at_ms = play.now_ms
            play.do_wait("60000")
            assert at_ms < 1_000_000 + 10**9, "a request is never answered"
        assert not play.unanswered()
        if play.group is not None:
            play.do_wait("2000000")
            while play.writes:
                play.do_commit()
                play.do_wait("2000000")
            assert play.group.state is GroupState.EMPTY, "everybody has fallen silent"
            assert not play.timers


TestGroupMachine = GroupMachine.TestCase
TestGroupMachine.settings = settings(
    max_examples=60,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@pytest.mark.parametrize("count", [100])
def test_a_hundred_members_meet_in_one_rebalance(count: int) -> None:
    """And the leader is told of each of them once."""
    play = Play(ids_source=CountingIds())
    for index in range(count):
        play.do_join(f"m{index}", "v=3")
    play.heard = []
    play.do_wait("6000")
    assert len(play.heard) == count
    leader = [
        each for each in play.replies.values() if isinstance(each, m.JoinGroupResponse) and each.members
    ]
    assert [len(each.members) for each in leader] == [count]
