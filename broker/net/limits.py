"""How many connections a broker takes: `max.connections`, `max.connections.per.ip` and its overrides.

Pure counting, no sockets. Over the limit of an address the new connection is closed at once; over the limit
of the broker the connection that has been quiet for longest is closed to make room (KIP-402), which the
caller does: `admit` only says so.
"""

from __future__ import annotations

from enum import Enum, auto


class Admission(Enum):
    """What to do with a connection that was just accepted."""

    TAKEN = auto()
    REFUSED = auto()  # its address has as many as it may
    ONE_TOO_MANY = auto()  # taken, and the quietest connection of the broker has to go


class ConnectionLimits:
    """Counts connections for each address and in all.

    `per_ip_overrides` maps addresses to their own limit (`max.connections.per.ip.overrides`). All three may
    change at any time; connections over a lowered limit stay.
    """

    __slots__ = ("_by_ip", "_count", "max_connections", "per_ip", "per_ip_overrides")

    def __init__(self, max_connections: int, per_ip: int, per_ip_overrides: dict[str, int]) -> None:
        self.max_connections = max_connections
        self.per_ip = per_ip
        self.per_ip_overrides = per_ip_overrides
        self._by_ip: dict[str, int] = {}
        self._count = 0

    @property
    def count(self) -> int:
        """Connections that are open now."""
        return self._count

    def admit(self, ip: str) -> Admission:
        """Count a new connection in, unless its address is full (then nothing is counted)."""
        here = self._by_ip.get(ip, 0)
        if here >= self.per_ip_overrides.get(ip, self.per_ip):
            return Admission.REFUSED
        self._by_ip[ip] = here + 1
        self._count += 1
        return Admission.ONE_TOO_MANY if self._count > self.max_connections else Admission.TAKEN

    def release(self, ip: str) -> None:
        """Count a connection out that was admitted."""
        here = self._by_ip[ip] - 1
        assert here >= 0, f"more connections of {ip} released than admitted"
        if here:
            self._by_ip[ip] = here
        else:
            del self._by_ip[ip]
        self._count -= 1
