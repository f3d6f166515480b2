"""When a broker that has ended is started again: pure.

At once after a first end, then with pauses that double up to LONGEST_PAUSE_S for as long as it does not hold
out. A broker that was ready in this run is never given up: it may wait for a disk or a port to be free again,
and the others serve. One that was never ready is given up when it says that it cannot start (code 1), or
after ATTEMPTS_MAX ends of another kind.
"""

from __future__ import annotations

from typing import Final

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 10.0
HOLDS_OUT_S: Final = 30.0
REFUSED: Final = 1
ATTEMPTS_MAX: Final = 5


class Restarts:
    """The ends of one broker in a row."""

    def __init__(self) -> None:
        self._in_a_row = 0
        self._was_ready = False

    def pause_after(self, code: int, served_s: float | None) -> float | None:
        """Seconds to wait before the next start, None to give up. `served_s` is for how long the broker was
        ready, None where it was not.
        """
        if served_s is not None:
            self._was_ready = True
            if served_s >= HOLDS_OUT_S:
                self._in_a_row = 0
        self._in_a_row += 1
        if not self._was_ready and (code == REFUSED or self._in_a_row >= ATTEMPTS_MAX):
            return None
        doublings = min(self._in_a_row - 1, 10)
        return float(min(FIRST_PAUSE_S * 2**doublings, LONGEST_PAUSE_S))


def how_it_ended(code: int) -> str:
    """An exit code as `subprocess` gives it, in words."""
    return f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
