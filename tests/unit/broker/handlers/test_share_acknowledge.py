"""ShareAcknowledge on connections. The rules are compared with Kafka in tests/conformance/test_share_*.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.errors import ErrorCode
from tests.support.share_member import ACCEPT, RENEW, ShareMember
from tests.support.share_net import ShareNet


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ShareNet]:
    with ShareNet(tmp_path) as running:
        yield running


@pytest.fixture
def ann(broker: ShareNet) -> ShareMember:
    """She holds records 0 to 4."""
    topic_id = bytes(broker.create("t").topic_id)
    broker.values("t", 5)
    member = broker.member(topic_id)
    assert member.fetch().acquired == [(0, 4, 1)]
    return member


@pytest.mark.parametrize("version", [1, 2])
def test_records_are_done(broker: ShareNet, ann: ShareMember, version: int) -> None:
    answer = ann.acknowledge((0, 4, ACCEPT), version=version)
    [topic] = answer.responses
    [partition] = topic.partitions
    assert (topic.topic_id, partition.partition_index) == (ann.topic_id, 0)
    assert (partition.error_code, partition.error_message) == (0, None)
    assert answer.acquisition_lock_timeout_ms == (30_000 if version == 2 else 0)
    assert [list(each.batches) for each in broker.persister.writes] == [[(0, 4, 2, 1)]]


def test_what_is_wrong_is_told_with_a_text(ann: ShareMember) -> None:
    [topic] = ann.acknowledge((3, 9, ACCEPT)).responses
    assert topic.partitions[0].error_code == ErrorCode.INVALID_REQUEST
    assert topic.partitions[0].error_message.endswith("past acquired records.")


def test_sessions(ann: ShareMember) -> None:
    assert ann.acknowledge(epoch=0).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert ann.acknowledge(epoch=9).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert ann.acknowledge(member_id="bob").error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert ann.acknowledge(epoch=-1).error_code == 0
    assert ann.acknowledge(epoch=1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_the_end_of_a_session_frees_the_rest(broker: ShareNet, ann: ShareMember) -> None:
    ann.acknowledge((0, 1, ACCEPT), epoch=-1)
    assert [list(each.batches) for each in broker.persister.writes] == [[(0, 1, 2, 1)], [(2, 4, 0, 1)]]


def test_renewing_is_not_stored(broker: ShareNet, ann: ShareMember) -> None:
    assert ann.ack_error((0, 4, RENEW), is_renew_ack=True) == 0
    assert ann.ack_error((0, 4, RENEW)) == ErrorCode.INVALID_REQUEST
    assert ann.ack_error((0, 4, RENEW), version=1) == ErrorCode.INVALID_REQUEST
    assert broker.persister.writes == []


def test_who_is_refused(broker: ShareNet, ann: ShareMember) -> None:
    assert ann.acknowledge(group_id=None).error_code == ErrorCode.INVALID_REQUEST
    assert ann.acknowledge(member_id="").error_code == ErrorCode.INVALID_REQUEST
    broker.enabled = False
    assert ann.acknowledge().error_code == ErrorCode.UNSUPPORTED_VERSION
