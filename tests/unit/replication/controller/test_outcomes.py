"""Refusals of single topics and resources."""

from __future__ import annotations

from protocol.errors import ErrorCode
from replication.controller.outcomes import Refused


def test_a_refusal_without_words_names_its_code():
    assert str(Refused(ErrorCode.INVALID_PARTITIONS)) == "INVALID_PARTITIONS"
    assert Refused(ErrorCode.INVALID_PARTITIONS).message is None
    assert str(Refused(ErrorCode.INVALID_PARTITIONS, "too few")) == "too few"
