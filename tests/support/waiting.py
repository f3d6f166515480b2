"""Waiting for something outside this process, where no event tells of it.

The only place in the tests that lets time pass on purpose; each wait has a limit and says what it waited for.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

PAUSE_S = 0.02


def wait_until(condition: Callable[[], object], what: str, timeout_s: float = 60.0) -> None:
    """Returns as soon as `condition()` is true; raises TimeoutError naming `what`."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout_s:g} s for {what}")
        time.sleep(PAUSE_S)


def wait_for_listener(host: str, port: int, timeout_s: float, alive: Callable[[], bool]) -> None:
    """Returns when something listens at the address; TimeoutError as well when `alive` turns false."""

    def accepts() -> bool:
        if not alive():
            raise TimeoutError("the process ended")
        try:
            socket.create_connection((host, port), timeout=1.0).close()
        except OSError:
            return False
        return True

    wait_until(accepts, f"a listener on {host}:{port}", timeout_s)
