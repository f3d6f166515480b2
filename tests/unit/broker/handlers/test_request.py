"""The request as handlers see it."""

from __future__ import annotations

from broker.handlers.request import Request
from protocol import messages as m
from protocol.headers import RequestHeader


def test_the_version_is_that_of_the_header() -> None:
    request = Request(RequestHeader(3, 9, 1, None), m.MetadataRequest(), "PLAINTEXT")
    assert (request.version, request.peer_ip, request.peer_port) == (9, "", 0)
