"""A leader that may have been replaced without knowing promises nothing by itself.

A broker that has lost touch with the metadata store for a whole session time-out has lost its session, and
others may lead its partitions. What waits for in-sync replicas is safe, since these have left; but acks 0 and
1 would be acknowledged and cut off later. So from that moment such produces are refused (6), until the store
is reached again; after the end of a session, until the controller has given the broker its roles under the
next registration, since those it knows may be others' by then. Kafka goes on acknowledging them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

_log = logging.getLogger(__name__)


class SelfFence:
    """Whether this broker still knows that it leads. `look` is cheap: it may be called in every turn.

    `last_contact_ms` is when the store was heard from last, on the clock of `now_ms` (monotonic). `fence` is
    told when that changes. The time-out is the one that the store has granted, and may change with a session.
    """

    def __init__(
        self,
        session_timeout_ms: Callable[[], int],
        now_ms: Callable[[], int],
        last_contact_ms: Callable[[], int],
        fence: Callable[[bool], None],
    ) -> None:
        self._session_timeout_ms = session_timeout_ms
        self._now_ms = now_ms
        self._last_contact_ms = last_contact_ms
        self._fence = fence
        self._roles_are_old = False
        self.fenced = False

    def session_ended(self) -> None:
        """The store has ended the session."""
        self._roles_are_old = True
        self.look()

    def roles_came(self) -> None:
        """The controller has told the roles under the registration that the broker has now."""
        self._roles_are_old = False
        self.look()

    def look(self) -> None:
        """Fence or release if that is due."""
        silent_ms = self._now_ms() - self._last_contact_ms()
        fenced = self._roles_are_old or silent_ms > self._session_timeout_ms()
        if fenced == self.fenced:
            return
        self.fenced = fenced
        if fenced:
            why = "The session has ended" if self._roles_are_old else f"No contact for {silent_ms} ms"
            _log.warning("%s: until the store and the controller are back acks 0 and 1 are refused", why)
        self._fence(fenced)
