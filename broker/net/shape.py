"""The request shapes that a connection remembers (see `handlers/produce_shapes.py` and its likes)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from broker.net.connection import Connection


class Shape(Protocol):
    """A request that repeats itself: all but a few fields of its bytes is known and understood.

    `promises`: it may be served, and answered later, while answers before it wait for replicas.
    """

    promises: bool
    api: int
    before: bytes
    following: Shape

    def serve(
        self, connection: Connection, buf: bytearray, at: int, end: int, correlation_id: int, own: bool
    ) -> int | None:
        """Serve the frame in buf[at:end]; its bytes from at + 12 on start with `before`.

        True: done (answered, staged, or waiting with no need of the bytes). False: to be run again from its
        own bytes once `connection.waiting` is over. None: not like this after all, the decoder has to look.
        A position: done, and so are the frames behind this one up to there (`connection.have` says how far
        there are any). `own`: the buffer holds this frame alone and stays untouched until the turn's write is
        over.
        """
