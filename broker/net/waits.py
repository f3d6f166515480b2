"""What a connection waits for while it serves nothing more, and how it lets go when its client is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from broker.net.connection import Connection


class Waiting(Protocol):
    """What a connection waits for."""

    def cancel(self, connection: Connection) -> None:
        """The connection is gone: let go of everything."""


class _Parked:
    """What a connection waits for whose request will be run again from its own bytes."""

    __slots__ = ()

    def cancel(self, connection: Connection) -> None:
        connection.unpark()
        connection.served()


class _TakingTurns:
    """What a connection waits for that has kept the loop busy for long enough."""

    __slots__ = ()

    def cancel(self, connection: Connection) -> None:
        connection.hub.costly_turns.leave(connection)


class _Unanswered:
    """What a connection waits for whose answers have not all come when the turn ends."""

    __slots__ = ()

    def cancel(self, connection: Connection) -> None:
        """Nothing to let go of: the answers are dropped when they come."""


PARKED = _Parked()
TAKING_TURNS = _TakingTurns()
UNANSWERED = _Unanswered()
