"""A leader that may have been replaced without knowing promises nothing by itself.

A broker that has lost touch with the metadata store for a whole session time-out has lost its session, and
others may lead its partitions. What waits for in-sync replicas is safe, since these have left; but acks 0 and
1 would be acknowledged and cut off later. So from that moment such produces are refused (6), until the store
is reached again. Kafka goes on acknowledging them.
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
        self.fenced = False

    def look(self) -> None:
        """Fence or release if that is due."""
        fenced = self._now_ms() - self._last_contact_ms() > self._session_timeout_ms()
        if fenced == self.fenced:
            return
        self.fenced = fenced
        if fenced:
            _log.warning(
                "No contact to the metadata store for more than %d ms: acks 0 and 1 are refused",
                self._session_timeout_ms(),
            )
        self._fence(fenced)
