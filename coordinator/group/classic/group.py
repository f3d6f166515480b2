"""What is known of one classic group, and the small steps that keep it consistent.

Owns members, static ids (KIP-345), ids handed out and not used yet (KIP-394), the counters behind "everybody
has joined" and "all support this protocol", and writes on their way to the log. Decides nothing: phases and
answers are in the modules beside it.

Invariants: `awaiting_join` is the number of members with a parked JoinGroup; `support` counts each protocol
name once for each member; every instance id maps to a member that carries it; one name at least is supported
by all members. Orders are those of joining, never of a set.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from coordinator.group.classic.effects import NO_WRITE, CancelTimer, Outcome, session_timer
from coordinator.group.classic.events import GroupSettings, SessionExpired
from coordinator.group.classic.member import NO_TIMER, Member, Waiter
from coordinator.group.classic.states import GroupState
from coordinator.group.room import MEMBER_BYTES, Claim, protocols_size
from protocol import messages as m
from protocol.errors import ErrorCode
from runtime.entropy import Random

_REBALANCES_FROM = (GroupState.EMPTY, GroupState.COMPLETING_REBALANCE, GroupState.STABLE)


@dataclass(slots=True)
class AssignmentWrite:
    """The leader's assignment is being written; it holds if the generation is still this one."""

    generation: int
    assignments: dict[str, bytes]
    since_ms: int


@dataclass(slots=True)
class StaticMemberWrite:
    """A static member's new id is being written; `replaced` comes back when that fails."""

    token: int
    member_id: str
    replaced: Member
    leader_before: str | None


@dataclass(slots=True)
class EmptyWrite:
    """The group has become Empty; LeaveGroup requests that led to it are answered when that is written."""

    held: list[tuple[Waiter, m.LeaveGroupResponse]] = field(default_factory=list)


Write = AssignmentWrite | StaticMemberWrite | EmptyWrite


@dataclass(slots=True)
class ClassicGroup:
    """State of one group. `generation` rises once for each completed join phase."""

    group_id: str
    settings: GroupSettings
    random: Random
    state: GroupState = GroupState.EMPTY
    previous_state: GroupState = GroupState.EMPTY
    state_since_ms: int = -1
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    static_ids: dict[str, str] = field(default_factory=dict)
    pending_ids: dict[str, Claim] = field(default_factory=dict)
    unsynced: dict[str, None] = field(default_factory=dict)
    support: dict[str, int] = field(default_factory=dict)
    awaiting_join: int = 0
    joined_meanwhile: bool = False
    initial_delay_ms: int = 0
    initial_remaining_ms: int = 0
    writes: dict[int, Write] = field(default_factory=dict)
    next_write_id: int = 0

    @property
    def in_initial_delay(self) -> bool:
        """Whether an empty group is waiting for more members before its first generation."""
        return self.state is GroupState.PREPARING_REBALANCE and self.previous_state is GroupState.EMPTY

    @property
    def can_rebalance(self) -> bool:
        return self.state in _REBALANCES_FROM

    @property
    def everybody_joined(self) -> bool:
        """Whether each member's JoinGroup is parked and nobody is expected any more."""
        return self.awaiting_join == len(self.members) and not self.pending_ids

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest of the members' rebalance timeouts."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def is_vacant(self) -> bool:
        """Whether nothing would be lost if the group was forgotten.

        Never had a generation, expects nobody.
        """
        return (
            self.state is GroupState.EMPTY
            and self.generation == 0
            and not self.pending_ids
            and not self.writes
        )

    def enter(self, state: GroupState, now_ms: int, cause: str) -> None:
        """Change the state; raises IllegalTransition."""
        self.previous_state, self.state = self.state, state.after(self.state, self.group_id, cause)
        self.state_since_ms = now_ms

    def new_member_id(self, client_id: str, instance_id: str | None) -> str:
        """A fresh member id: the instance id, else the client's, and a UUID."""
        digits = self.random.uuid().hex()
        parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
        return "-".join((client_id if instance_id is None else instance_id, *parts))

    def check_member(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Whether a request comes from a member: UNKNOWN_MEMBER_ID or FENCED_INSTANCE_ID if not."""
        if instance_id is not None:
            holder = self.static_ids.get(instance_id)
            if holder is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if holder != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def supports(self, protocol_type: str, names: Collection[str]) -> bool:
        """Whether a member with these protocols leaves one that all members support."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(names)
        if protocol_type != self.protocol_type:
            return False
        count = len(self.members)
        return any(self.support.get(name, 0) == count for name in names)

    def choose_protocol(self) -> str:
        """The vote: each member's first candidate gets one; the earliest named wins a tie."""
        count = len(self.members)
        votes = {name: 0 for name, supporters in self.support.items() if supporters == count}
        assert votes, f"group {self.group_id!r} has no protocol that all members support"
        for member in self.members.values():
            choice = member.vote(votes)
            assert choice is not None, "a candidate is supported by every member"
            votes[choice] += 1
        return max(votes, key=votes.__getitem__)

    def add(self, member: Member) -> None:
        """Admit a member; the first one leads."""
        assert member.member_id not in self.members, "a member id is admitted once"
        self.pending_ids.pop(member.member_id, None)
        self.members[member.member_id] = member
        self._count(member, 1)
        self.claim_room(member)
        if member.instance_id is not None:
            assert member.instance_id not in self.static_ids, "an instance id has one member"
            self.static_ids[member.instance_id] = member.member_id
        if self.leader_id is None:
            self.leader_id = member.member_id

    def remove(self, member: Member) -> None:
        """Take a member out; its parked requests must have been answered."""
        assert member.joining is None, "answered before it goes"
        assert member.syncing is None, "answered before it goes"
        del self.members[member.member_id]
        self._count(member, -1)
        self.unsynced.pop(member.member_id, None)
        if member.instance_id is not None:
            del self.static_ids[member.instance_id]
        if self.leader_id == member.member_id:
            self.leader_id = next(iter(self.members), None)

    def replace(self, old: Member, new: Member) -> None:
        """Put `new` into the place of `old`, with the same instance id.

        Leadership and pending sync go over.
        """
        leads, unsynced = self.leader_id == old.member_id, old.member_id in self.unsynced
        self.remove(old)
        self.add(new)
        if leads:
            self.leader_id = new.member_id
        if unsynced:
            self.unsynced[new.member_id] = None

    def update(
        self, member: Member, protocols: tuple[tuple[str, bytes], ...], rebalance_ms: int, session_ms: int
    ) -> None:
        """Take over what a member says when it joins again."""
        if member.protocols != protocols:
            self._count(member, -1)
            member.protocols = protocols
            self._count(member, 1)
        self.claim_room(member)
        member.rebalance_timeout_ms = rebalance_ms
        member.session_timeout_ms = session_ms

    def claim_room(self, member: Member) -> None:
        """Count what a member takes by now, its assignment included."""
        size = MEMBER_BYTES + protocols_size(member.protocols) + len(member.assignment)
        if member.claim is None or member.claim.size != size:
            member.claim = Claim(self.settings.room, size)

    def elect_joined_leader(self) -> bool:
        """Keep the leader, or give the lead to the first that joined; false when nobody has."""
        if self.leader_id is not None and self.members[self.leader_id].joining is not None:
            return True
        for member in self.members.values():
            if member.joining is not None:
                self.leader_id = member.member_id
                return True
        return False

    def park_join(self, member: Member, waiter: Waiter) -> None:
        """Let a JoinGroup wait for the end of the join phase."""
        assert member.joining is None, "one parked JoinGroup at a time"
        member.joining = waiter
        self.awaiting_join += 1

    def take_join(self, member: Member) -> Waiter | None:
        """The parked JoinGroup, which the caller answers now."""
        waiter, member.joining = member.joining, None
        if waiter is not None:
            self.awaiting_join -= 1
        return waiter

    def renew_session(self, member: Member, now_ms: int, out: Outcome, limit_ms: int | None = None) -> None:
        """Let the session begin again, or a new member's `limit_ms`, which no sign of life extends.

        A timer is set only where none will fire in time.
        """
        if limit_ms is None and self.extend_session(member, now_ms):
            return
        delay_ms = member.session_timeout_ms if limit_ms is None else limit_ms
        member.session_deadline_ms = now_ms + delay_ms
        if member.timer_at_ms == NO_TIMER or member.session_deadline_ms < member.timer_at_ms:
            member.timer_at_ms = member.session_deadline_ms
            out.set_timer(session_timer(member.member_id), delay_ms, SessionExpired(member.member_id))

    def extend_session(self, member: Member, now_ms: int) -> bool:
        """`renew_session` where that sets no timer, as nearly always; False where it would."""
        if member.is_new:
            return True
        deadline_ms = now_ms + member.session_timeout_ms
        if member.timer_at_ms == NO_TIMER or deadline_ms < member.timer_at_ms:
            return False
        member.session_deadline_ms = deadline_ms
        return True

    def expect_write(self, write: Write, out: Outcome) -> None:
        """Remember what to do when the records of this Outcome are committed, or fail."""
        assert out.records, "a write has records"
        assert out.write_id == NO_WRITE, "one write for each event"
        out.write_id = self.next_write_id
        self.writes[self.next_write_id] = write
        self.next_write_id += 1

    def forget_session_timer(self, member: Member, out: Outcome) -> None:
        if member.timer_at_ms != NO_TIMER:
            member.timer_at_ms = NO_TIMER
            out.timers.append(CancelTimer(session_timer(member.member_id)))

    def _count(self, member: Member, step: int) -> None:
        for name in dict.fromkeys(name for name, _ in member.protocols):
            left = self.support.get(name, 0) + step
            if left:
                self.support[name] = left
            else:
                del self.support[name]
