"""The clock of the coordinators: sessions and retention are measured with it, so it never goes back."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtime.clock import Clock


class SteadyClock:
    """Milliseconds since the epoch as the wall clock told them at the start, and what has passed since.

    Setting the machine's clock does not move it. It implements `coordinator.ports.Clock`.
    """

    __slots__ = ("_ahead_ms", "_monotonic")

    def __init__(self, clock: Clock) -> None:
        self._monotonic = clock.monotonic
        self._ahead_ms = clock.now_ms() - int(clock.monotonic() * 1000)

    def now_ms(self) -> int:
        return self._ahead_ms + int(self._monotonic() * 1000)
