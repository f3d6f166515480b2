"""A decoded request as handlers see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from protocol.headers import RequestHeader

Body = TypeVar("Body")


@dataclass(slots=True)
class Request(Generic[Body]):
    """Header, body, and where it came from. `listener_name` decides which addresses an answer names.

    `connection` stands for the client while it is connected: what ends with it is kept under it.
    """

    header: RequestHeader
    body: Body
    listener_name: str
    peer_ip: str = ""
    peer_port: int = 0
    connection: object = None

    @property
    def version(self) -> int:
        """The API version that the client chose."""
        return self.header.api_version
