"""Who has been heard of lately: a deadline for each member, and a call when it passes.

Heartbeats, by far the most frequent requests, only move a deadline; the timer that is set sees the new one
when it rings, and is set again. A member that has gone is not taken out: its timer rings once more, and the
shard finds nobody. So nothing has to be repaired when records that removed a member are not appended.
"""

from __future__ import annotations

from collections.abc import Callable

from coordinator.ports import Clock
from coordinator.timer import KeyedTimers


class Sessions:
    """Sessions of the members of one protocol (`kind`) in one shard.

    `is_member` tells whether somebody still counts, `over` is called with group and member, once.
    """

    def __init__(
        self,
        kind: str,
        timers: KeyedTimers,
        clock: Clock,
        is_member: Callable[[str, str], bool],
        over: Callable[[str, str], None],
    ) -> None:
        self._kind = kind
        self._timers = timers
        self._clock = clock
        self._is_member = is_member
        self._over = over
        self._deadlines: dict[tuple[str, str], int] = {}
        self._set_for: dict[tuple[str, str], int] = {}

    def __len__(self) -> int:
        return len(self._deadlines)

    def renew(self, group_id: str, member_id: str, timeout_ms: int) -> None:
        """A sign of life: the session lasts `timeout_ms` from now."""
        key = (group_id, member_id)
        deadline_ms = self._deadlines[key] = self._clock.now_ms() + timeout_ms
        set_for = self._set_for.get(key)
        if set_for is None or deadline_ms < set_for:
            self._set(key, deadline_ms, timeout_ms)

    def clear(self) -> None:
        """Forget all, as at an unload; the shard's timers are taken back by their owner."""
        self._deadlines.clear()
        self._set_for.clear()

    def _set(self, key: tuple[str, str], deadline_ms: int, delay_ms: int) -> None:
        self._set_for[key] = deadline_ms
        self._timers.set((self._kind, *key), delay_ms, lambda: self._ring(key))

    def _ring(self, key: tuple[str, str]) -> None:
        self._set_for.pop(key, None)
        if not self._is_member(*key):
            self._deadlines.pop(key, None)
            return
        left_ms = self._deadlines[key] - self._clock.now_ms()
        if left_ms > 0:
            self._set(key, self._deadlines[key], left_ms)
        else:
            del self._deadlines[key]
            self._over(*key)
