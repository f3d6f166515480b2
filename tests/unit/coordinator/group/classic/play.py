"""Scripts for one classic group: a line of events on the left, the answers they bring on the right.

    join a            | a join MEMBER_ID_REQUIRED
    join a            |
    wait 3000         | a joined 1 range, leader a of a

Several answers are parted by `;` or stand on lines of their own that begin with `|`.

Time is virtual: `wait` fires the timers that the group set, in order. Writes are committed at once unless
the script says `hold`; then `commit` and `fail ERROR` decide the oldest one. A name stands for the last
member id that the group gave it, `a.0` for the first one. Each reply is encoded at its request's version,
and a request that is answered twice, or whose answer comes to nobody, fails the script.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from coordinator.group.classic import events as ev
from coordinator.group.classic.effects import CancelTimer, GroupRecord, Outcome, SetTimer, TimerKey
from coordinator.group.classic.group import ClassicGroup
from coordinator.group.classic.machine import handle, handle_without_group
from coordinator.group.classic.snapshot import load_group
from coordinator.group.classic.states import GroupState
from protocol import messages as m
from protocol.errors import ErrorCode

START_MS = 1_000_000
LATEST = {"join": 9, "sync": 5, "beat": 4, "leave": 5}


class CountingIds:
    """Ids that differ and repeat in each run."""

    def __init__(self) -> None:
        self.drawn = 0

    def uuid(self) -> bytes:
        self.drawn += 1
        return self.drawn.to_bytes(16, "big")


@dataclass
class Asked:
    name: str
    api: str
    version: int


@dataclass
class Play:
    """A group, its clock, its timers and its log."""

    settings: ev.GroupSettings = field(default_factory=ev.GroupSettings)
    now_ms: int = START_MS
    group: ClassicGroup | None = None
    timers: dict[TimerKey, tuple[int, ev.Event]] = field(default_factory=dict)
    asked: dict[int, Asked] = field(default_factory=dict)
    replies: dict[int, object] = field(default_factory=dict)
    parked: dict[int, None] = field(default_factory=dict)
    ids: dict[str, list[str]] = field(default_factory=dict)
    log: list[GroupRecord] = field(default_factory=list)
    writes: list[tuple[int, GroupRecord]] = field(default_factory=list)
    holding: bool = False
    heard: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    tokens: int = 0
    ids_source: CountingIds = field(default_factory=CountingIds)

    def run(self, script: str) -> None:
        """Play a script, comparing the answers of each line."""
        for line in re.sub(r"\n\s*\|", ";", script.strip()).splitlines():
            told, _, expected = line.partition("|")
            self.heard = []
            words = told.split()
            getattr(self, f"do_{words[0]}")(*words[1:])
            wanted = [each.strip() for each in expected.split(";") if each.strip()]
            assert self.heard == wanted, f"{told.strip()}: {self.heard} instead of {wanted}"

    # -- what a line can say

    def do_join(self, name: str, *options: str) -> None:
        given = dict(each.split("=", 1) for each in options)
        names = given.get("protocols", "range:x")
        protocols = [each.partition(":") for each in names.split(",") if each]
        self.ask(
            ev.JoinGroup(
                self.token(name, "join", given),
                int(given.get("v", LATEST["join"])),
                self.member_id(given.get("id", name)),
                int(given.get("session", 10_000)),
                int(given.get("rebalance", 60_000)),
                given.get("type", "consumer"),
                tuple((protocol, metadata.encode()) for protocol, _, metadata in protocols),
                given.get("instance"),
                client_id=name,
                client_host="/10.0.0.1",
            )
        )

    def do_sync(self, name: str, *options: str) -> None:
        given = dict(each.split("=", 1) for each in options)
        pairs = [each.partition(":") for each in given.get("assign", "").split(",") if each]
        self.ask(
            ev.SyncGroup(
                self.token(name, "sync", given),
                int(given.get("v", LATEST["sync"])),
                self.member_id(given.get("id", name)),
                self.generation(given),
                given.get("instance"),
                given.get("type"),
                given.get("protocol"),
                {self.member_id(member): assignment.encode() for member, _, assignment in pairs},
            )
        )

    def do_beat(self, name: str, *options: str) -> None:
        given = dict(each.split("=", 1) for each in options)
        self.ask(
            ev.Heartbeat(
                self.token(name, "beat", given),
                int(given.get("v", LATEST["beat"])),
                self.member_id(given.get("id", name)),
                self.generation(given),
                given.get("instance"),
            )
        )

    def do_leave(self, *words: str) -> None:
        """Names, `name@instance`, or `@instance`; `v=` for the version."""
        given = dict(each.split("=", 1) for each in words if "=" in each)
        leaving = [each.partition("@") for each in words if "=" not in each]
        self.ask(
            ev.LeaveGroup(
                self.token(leaving[0][0] or leaving[0][2], "leave", given),
                int(given.get("v", LATEST["leave"])),
                tuple(
                    ev.LeavingMember(self.member_id(name) if name else "", instance or None)
                    for name, _, instance in leaving
                ),
            )
        )

    def do_wait(self, ms: str) -> None:
        until = self.now_ms + int(ms)
        while self.timers:
            key = min(self.timers, key=lambda each: self.timers[each][0])
            at, event = self.timers[key]
            if at > until:
                break
            del self.timers[key]
            self.now_ms = max(self.now_ms, at)
            self.tell(event)
        self.now_ms = until

    def do_hold(self) -> None:
        self.holding = True

    def do_commit(self) -> None:
        write_id, record = self.writes.pop(0)
        self.log.append(record)
        self.tell(ev.RecordsCommitted(write_id))

    def do_fail(self, error: str) -> None:
        write_id, _ = self.writes.pop(0)
        self.tell(ev.RecordsFailed(write_id, ErrorCode[error]))

    def do_state(self, *_: str) -> None:
        group = self.existing()
        members = ",".join(self.name_of(each) for each in group.members)
        self.heard.append(f"{group.state.value} {group.generation} {members}".rstrip())

    def do_unload(self) -> None:
        self.tell(ev.Unloaded())
        assert not self.timers, "an unloaded group has no timers"

    def do_reload(self) -> None:
        """A new coordinator reads the log: requests that were parked are answered by the old one."""
        if self.group is not None and self.group.state is not GroupState.DEAD:
            self.do_unload()
        self.writes.clear()
        self.timers.clear()
        assert not self.unanswered(), "unloading answers everything"
        value = self.log[-1].value
        assert value is not None, "not a tombstone"
        version = 3
        value, _ = m.GroupMetadataValue.decode(version, value.encode(version))
        self.group = load_group("g", value, self.settings, self.ids_source)
        self.tell(ev.Loaded())

    # -- how it is done

    def existing(self) -> ClassicGroup:
        assert self.group is not None, "there is no group"
        return self.group

    def member_id(self, name: str) -> str:
        name, _, index = name.partition(".")
        known = self.ids.get(name, [])
        if index:
            return known[int(index)]
        return "" if name == "none" or not known else known[-1]

    def name_of(self, member_id: str) -> str:
        for name, known in self.ids.items():
            if member_id in known:
                index = known.index(member_id)
                return name if index == len(known) - 1 else f"{name}.{index}"
        return member_id.split("-")[0] if member_id else "none"

    def generation(self, given: dict[str, str]) -> int:
        current = self.group.generation if self.group is not None else 0
        return int(given.get("gen", current))

    def token(self, name: str, api: str, given: dict[str, str]) -> int:
        self.tokens += 1
        self.parked[self.tokens] = None
        self.asked[self.tokens] = Asked(name.partition(".")[0], api, int(given.get("v", LATEST[api])))
        return self.tokens

    def unanswered(self) -> list[int]:
        return list(self.parked)

    def ask(self, event: ev.Request) -> None:
        if self.group is None:
            out = handle_without_group(event, self.settings)
            if out is not None:
                self.perform(out)
                return
            self.group = ClassicGroup("g", self.settings, self.ids_source)
        self.tell(event)

    def tell(self, event: ev.Event) -> Outcome:
        out = handle(self.existing(), event, self.now_ms)
        check(self.existing())
        self.perform(out)
        return out

    def perform(self, out: Outcome) -> None:
        for effect in out.timers:
            match effect:
                case SetTimer(key, delay_ms, event):
                    assert delay_ms >= 0, "a timer fires in the future"
                    self.timers[key] = (self.now_ms + delay_ms, event)
                case CancelTimer(key):
                    self.timers.pop(key, None)
        self.notes += out.notes
        for reply in out.replies:
            self.learn(self.asked[reply.token].name, reply.response)
        for reply in out.replies:
            assert reply.token not in self.replies, "a request is answered once"
            del self.parked[reply.token]
            asked = self.asked[reply.token]
            reply.response.encode(asked.version)
            self.replies[reply.token] = reply.response
            self.heard.append(self.describe(asked, reply.response))
        if out.records:
            (record,) = out.records
            self.writes.append((out.write_id, record))
            if not self.holding:
                self.do_commit()

    def learn(self, name: str, response: object) -> None:
        """Remember the member id that a name was given."""
        if isinstance(response, m.JoinGroupResponse) and response.error_code in (
            ErrorCode.NONE,
            ErrorCode.MEMBER_ID_REQUIRED,
        ):
            known = self.ids.setdefault(name, [])
            if response.member_id not in known:
                known.append(response.member_id)

    def describe(self, asked: Asked, response: object) -> str:
        match response:
            case m.JoinGroupResponse():
                if response.error_code:
                    assert response.generation_id == -1
                    assert not response.members
                    return f"{asked.name} join {ErrorCode(response.error_code).name}"
                text = f"{asked.name} joined {response.generation_id} {response.protocol_name}"
                text += f", leader {self.name_of(response.leader)}"
                if response.members:
                    text += " of " + ",".join(self.name_of(each.member_id) for each in response.members)
                return text + (", skip" if response.skip_assignment else "")
            case m.SyncGroupResponse():
                if response.error_code:
                    assert response.assignment == b""
                    return f"{asked.name} sync {ErrorCode(response.error_code).name}"
                return f"{asked.name} synced {response.assignment.decode()!r}"
            case m.HeartbeatResponse():
                return f"{asked.name} beat {ErrorCode(response.error_code).name}"
            case m.LeaveGroupResponse():
                each = [ErrorCode(member.error_code).name for member in response.members]
                return f"{asked.name} left " + " ".join([ErrorCode(response.error_code).name, *each])
        raise AssertionError(f"not an answer: {response!r}")


def check(group: ClassicGroup) -> None:
    """What holds after every event."""
    members = group.members.values()
    assert group.awaiting_join == sum(member.joining is not None for member in members)
    support: dict[str, int] = {}
    for member in members:
        for name in dict.fromkeys(name for name, _ in member.protocols):
            support[name] = support.get(name, 0) + 1
    assert group.support == support
    assert {
        member.instance_id: member.member_id for member in members if member.is_static
    } == group.static_ids
    assert all(member_id in group.members for member_id in group.unsynced)
    assert not any(member_id in group.members for member_id in group.pending_ids)
    if group.members:
        assert any(count == len(group.members) for count in support.values())
        assert group.state is not GroupState.EMPTY
    if group.leader_id is not None:
        assert group.leader_id in group.members or group.state is GroupState.DEAD
    if group.state is GroupState.DEAD:
        assert not any(member.joining or member.syncing for member in members)
    if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
        assert group.members
        assert group.leader_id in group.members
        assert group.protocol_name in support
    for member in members:
        assert member.syncing is None or group.state is GroupState.COMPLETING_REBALANCE
        if group.state is not GroupState.DEAD and member.joining is None and member.syncing is None:
            assert member.timer_at_ms >= 0, "a member that waits for nothing can expire"
        assert not member.is_new or member.joining is not None or group.state is GroupState.DEAD


def stable(settings: ev.GroupSettings | None = None, *names: str, **options: str) -> Play:
    """A Stable group of dynamic members in generation 1; the first name leads."""
    play = Play(settings or ev.GroupSettings())
    for name in names:
        play.do_join(name, *(f"{key}={value}" for key, value in options.items()))
        play.do_join(name, *(f"{key}={value}" for key, value in options.items()))
    play.do_wait(str(2 * play.settings.initial_rebalance_delay_ms))
    everybody = ",".join(f"{name}:{name.upper()}" for name in names)
    for name in names[1:]:
        play.do_sync(name)
    play.do_sync(names[0], f"assign={everybody}")
    assert play.existing().state is GroupState.STABLE
    assert play.existing().generation == 1
    return play
