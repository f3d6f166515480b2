"""What both requests of share groups do with acknowledgements of several partitions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.handlers import share_requests
from broker.handlers.share_requests import is_known, leader_hints
from protocol import messages as m
from protocol.errors import ErrorCode
from tests.support.share_member import ACCEPT, RELEASE
from tests.support.share_net import ShareNet


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ShareNet]:
    with ShareNet(tmp_path) as running:
        yield running


def test_each_partition_has_a_result_of_its_own(broker: ShareNet) -> None:
    topic_id = bytes(broker.create("t", 2).topic_id)
    broker.values("t", 2, index=0)
    broker.values("t", 2, index=1)
    ann = broker.member(topic_id, partitions=2)
    assert set(ann.fetch().rows) == {0, 1}
    request = m.ShareAcknowledgeRequest

    def topic(of: bytes, *places: tuple[int, int, int, int]) -> m.ShareAcknowledgeRequest.AcknowledgeTopic:
        partitions = [
            request.AcknowledgePartition(
                partition_index=index,
                acknowledgement_batches=[
                    request.AcknowledgementBatch(
                        first_offset=first, last_offset=last, acknowledge_types=[kind]
                    )
                ],
            )
            for index, first, last, kind in places
        ]
        return request.AcknowledgeTopic(topic_id=of, partitions=partitions)

    body = request(
        group_id="g",
        member_id="ann",
        share_session_epoch=1,
        topics=[
            topic(topic_id, (0, 0, 1, 1), (1, 1, 0, 1), (7, 0, 0, 1)),
            topic(b"\x09" * 16, (0, 0, 0, 1)),
        ],
    )
    answer = ann.wire.send(body, 2)
    assert {
        (found.topic_id == topic_id, each.partition_index): each.error_code
        for found in answer.responses
        for each in found.partitions
    } == {
        (True, 0): 0,
        (True, 1): ErrorCode.INVALID_REQUEST,
        (True, 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        (False, 0): ErrorCode.UNKNOWN_TOPIC_ID,
    }


def test_many_types_are_taken_in_several_turns(broker: ShareNet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_requests, "TYPES_AT_ONCE", 1)
    topic_id = bytes(broker.create("t").topic_id)
    broker.values("t", 5)
    ann = broker.member(topic_id)
    assert ann.fetch().acquired == [(0, 4, 1)]
    assert ann.ack_error((0, 4, ACCEPT, RELEASE, ACCEPT, RELEASE, ACCEPT)) == 0
    assert ann.fetch().acquired == [(1, 1, 2), (3, 3, 2)]


def test_where_the_leader_is(broker: ShareNet) -> None:
    topic_id = bytes(broker.create("t").topic_id)
    errors = {
        (topic_id, 0): ErrorCode.NOT_LEADER_OR_FOLLOWER,
        (topic_id, 1): ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
    leaders, endpoints = leader_hints(broker.ctx, errors, "PLAINTEXT")
    assert leaders == {(topic_id, 0): (1, 0)}
    assert [(each.node_id, each.port) for each in endpoints] == [(1, 9092)]
    assert leader_hints(broker.ctx, {(topic_id, 0): ErrorCode.NONE}, "PLAINTEXT") == ({}, [])


def test_what_the_cluster_knows(broker: ShareNet) -> None:
    topic_id = bytes(broker.create("t").topic_id)
    assert is_known(broker.ctx, (topic_id, 0))
    assert not is_known(broker.ctx, (topic_id, 1))
    assert not is_known(broker.ctx, (topic_id, -1))
    assert not is_known(broker.ctx, (b"\x09" * 16, 0))
