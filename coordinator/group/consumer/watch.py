"""The clocks that run for members: sessions, and the deadlines of rebalances.

A member that is asked to give up partitions has its rebalance timeout for it; heartbeats do not extend that.
A member of the classic protocol has it for joining again after it was told to, and once more for syncing.
A timer that rings too late finds other epochs, and does nothing; none has to be taken back.
"""

from __future__ import annotations

from collections.abc import Callable

from coordinator.group.consumer.member import MemberState
from coordinator.group.consumer.tables import ConsumerTables
from coordinator.group.modern.ports import ShardParts
from coordinator.group.modern.sessions import Sessions

Remove = Callable[[str, str, str], None]
"""Called with group, member and a reason."""


class Watch:
    """See the module. `remove` fences a member, by a write of its own."""

    def __init__(self, parts: ShardParts, tables: ConsumerTables, remove: Remove) -> None:
        self._timers = parts.context.timers
        self._tables = tables
        self._remove = remove
        self.sessions = Sessions(
            "consumer session",
            parts.context.timers,
            parts.clock,
            lambda group_id, member_id: tables.members.get(group_id, member_id) is not None,
            lambda group_id, member_id: remove(group_id, member_id, "its session is over"),
        )

    def await_revocation(self, group_id: str, member_id: str, epoch: int, timeout_ms: int) -> None:
        """The member has been told to give up partitions at this epoch of it."""

        def ring() -> None:
            current = self._tables.current.get(group_id, member_id)
            if (
                current is not None
                and current.epoch == epoch
                and current.state is MemberState.UNREVOKED_PARTITIONS
            ):
                self._remove(group_id, member_id, f"it did not revoke partitions within {timeout_ms} ms")

        self._timers.set(("consumer rebalance", group_id, member_id), timeout_ms, ring)

    def end_revocation(self, group_id: str, member_id: str) -> None:
        """It is not asked for anything any more."""
        self._timers.cancel(("consumer rebalance", group_id, member_id))

    def await_join(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        """A member of the classic protocol has been told to join again; being told twice changes nothing."""
        key = ("consumer join", group_id, member_id)
        if key not in self._timers:
            self._await_classic(key, group_id, member_id, timeout_ms, "join")

    def joined(self, group_id: str, member_id: str) -> None:
        """It has."""
        self._timers.cancel(("consumer join", group_id, member_id))

    def await_sync(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        """A member of the classic protocol has joined and will ask for its assignment."""
        key = ("consumer sync", group_id, member_id)
        self._await_classic(key, group_id, member_id, timeout_ms, "sync")

    def synced(self, group_id: str, member_id: str) -> None:
        """It has."""
        self._timers.cancel(("consumer sync", group_id, member_id))

    def _await_classic(
        self, key: tuple[str, str, str], group_id: str, member_id: str, timeout_ms: int, what: str
    ) -> None:
        def ring() -> None:
            member = self._tables.members.get(group_id, member_id)
            if member is not None and member.classic is not None:
                self._remove(group_id, member_id, f"it did not {what} within {timeout_ms} ms")

        self._timers.set(key, timeout_ms, ring)
