"""ShareFetch on connections. What it answers is compared with Kafka in tests/conformance/test_share_*.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol.errors import ErrorCode
from tests.support.net_broker import decode, frame
from tests.support.share_member import ACCEPT, RELEASE, Fetched
from tests.support.share_net import ShareNet


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ShareNet]:
    with ShareNet(tmp_path) as running:
        yield running


@pytest.fixture
def topic_id(broker: ShareNet) -> bytes:
    return bytes(broker.create("t").topic_id)


@pytest.mark.parametrize("version", [1, 2])
def test_records_and_acknowledgements(broker: ShareNet, topic_id: bytes, version: int) -> None:
    broker.values("t", 3, 2)
    ann = broker.member(topic_id)
    first = ann.fetch(version=version)
    assert (first.error, first.acquired) == (0, [(0, 4, 1)])
    assert first.response.acquisition_lock_timeout_ms == 30_000
    again = ann.fetch((0, 1, RELEASE), (2, 4, ACCEPT), version=version)
    assert (again.acquired, again.rows[0].acknowledge_error_code) == ([(0, 1, 2)], 0)


def test_it_waits_without_a_task(broker: ShareNet, topic_id: bytes) -> None:
    ann = broker.member(topic_id)
    ann.fetch(max_wait_ms=0)
    client = ann.wire.client
    client.send(frame(ann.fetch_request(max_wait_ms=60_000), 2, 9))
    broker.run()
    assert client.answers() == []
    broker.values("t", 2)
    [(answered, data)] = client.answers()
    assert answered == 9
    assert Fetched(decode(78, 2, data)).acquired == [(0, 1, 1)]


def test_a_fetch_that_waits_goes_with_its_connection(broker: ShareNet, topic_id: bytes) -> None:
    ann, bob = broker.member(topic_id), broker.member(topic_id, member_id="bob")
    ann.fetch(max_wait_ms=0)
    ann.wire.client.send(frame(ann.fetch_request(max_wait_ms=60_000), 2, 9))
    ann.wire.client.lose()
    broker.values("t", 2)
    assert bob.fetch().acquired == [(0, 1, 1)]
    assert ann.wire.client.answers() == []


def test_what_a_lost_member_held_is_free(broker: ShareNet, topic_id: bytes) -> None:
    broker.values("t", 2)
    ann, bob = broker.member(topic_id), broker.member(topic_id, member_id="bob")
    assert ann.fetch().acquired == [(0, 1, 1)]
    assert bob.fetch(max_wait_ms=0).acquired == []
    ann.wire.client.lose()
    assert bob.fetch().acquired == [(0, 1, 2)]


def test_the_end_of_a_session_frees_and_the_last_one_takes_the_partition(
    broker: ShareNet, topic_id: bytes
) -> None:
    broker.values("t", 2)
    ann = broker.member(topic_id)
    assert ann.fetch().acquired == [(0, 1, 1)]
    assert ann.fetch((0, 0, ACCEPT), epoch=-1).rows[0].acknowledge_error_code == 0
    assert [(each.start_offset, list(each.batches)) for each in broker.persister.writes] == [
        (0, [(0, 0, 2, 1)]),
        (1, [(1, 1, 0, 1)]),
    ]
    assert len(broker.ctx.share_data.parts.partitions) == 0


def test_who_is_refused(broker: ShareNet, topic_id: bytes) -> None:
    ann = broker.member(topic_id)
    assert ann.fetch(member_id="").error == ErrorCode.INVALID_REQUEST
    assert ann.fetch(member_id="x" * 37).error == ErrorCode.INVALID_REQUEST
    assert ann.fetch(group_id=None).error == ErrorCode.INVALID_REQUEST
    assert ann.fetch(epoch=3).error == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert ann.fetch(is_renew_ack=True).error == ErrorCode.INVALID_REQUEST
    broker.enabled = False
    assert ann.fetch().error == ErrorCode.UNSUPPORTED_VERSION


def test_a_full_table_is_told_when_the_wait_is_over(tmp_path: Path) -> None:
    with ShareNet(tmp_path, group_share_max_share_sessions="1") as broker:
        topic_id = bytes(broker.create("t").topic_id)
        broker.member(topic_id).fetch(max_wait_ms=0)
        late = broker.member(topic_id, member_id="late")
        assert late.fetch(max_wait_ms=0).error == ErrorCode.SHARE_SESSION_LIMIT_REACHED
        late.wire.client.send(frame(late.fetch_request(max_wait_ms=30), 2, 7))
        broker.run()
        assert late.wire.client.answers() == []
        broker.run(late.wire.client.wrote(1))
        [(_, data)] = late.wire.client.answers()
        assert decode(78, 2, data).error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED


def test_unknown_topics(broker: ShareNet) -> None:
    ann = broker.member(b"\x05" * 16)
    assert ann.fetch().rows[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert ann.fetch((0, 0, ACCEPT)).rows[0].acknowledge_error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_state_write_that_fails_is_told(broker: ShareNet, topic_id: bytes) -> None:
    broker.values("t", 2)
    ann = broker.member(topic_id)
    ann.fetch()
    broker.persister.error = ErrorCode.FENCED_STATE_EPOCH
    row = ann.fetch((0, 1, ACCEPT), max_wait_ms=0).rows[0]
    assert row.acknowledge_error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_answers_with_slices_of_files(broker: ShareNet, topic_id: bytes) -> None:
    for _ in range(3):
        broker.produce("t", 0, [(1000, b"y" * 30_000)])
    ann = broker.member(topic_id)
    assert ann.fetch(max_wait_ms=0).acquired == [(0, 2, 1)]
