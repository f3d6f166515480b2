"""Bit fields of authorised operations, as 4.4.0 answered them."""

from __future__ import annotations

from broker.security.operations import CLUSTER_OPERATIONS, DESCRIBE, READ, TOPIC_OPERATIONS, bits


def test_fields() -> None:
    assert TOPIC_OPERATIONS == 3576
    assert CLUSTER_OPERATIONS == 8096
    assert bits(READ, DESCRIBE) == (1 << 3) | (1 << 8)
    assert bits() == 0
