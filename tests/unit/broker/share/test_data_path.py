"""The life of share groups' data path in a broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.metadata.features import FeatureImage
from replication.metadata.image import ClusterImage
from replication.share.ports import ShareState
from tests.support.net_broker import frame
from tests.support.share_net import ShareNet


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[ShareNet]:
    with ShareNet(tmp_path) as running:
        yield running


def test_it_is_made_when_it_is_needed(broker: ShareNet) -> None:
    data = broker.ctx.share_data
    data.connection_gone(object())
    data.close()
    assert data.parts is data.parts
    assert data.parts.fetch_max_bytes == 57_671_680


def test_deleted_topics_leave_it(broker: ShareNet) -> None:
    topic_id = bytes(broker.create("t").topic_id)
    broker.member(topic_id).fetch(max_wait_ms=0)
    parts = broker.ctx.share_data.parts
    assert len(parts.partitions) == 1
    broker.call(m.DeleteTopicsRequest(topic_names=["t"], timeout_ms=60_000), 5)
    assert len(parts.partitions) == 0


def test_a_group_whose_clients_are_gone_leaves_it(broker: ShareNet) -> None:
    topic_id = bytes(broker.create("t").topic_id)
    ann, bob = broker.member(topic_id), broker.member(topic_id, member_id="bob")
    ann.fetch(max_wait_ms=0)
    bob.fetch(max_wait_ms=0)
    parts = broker.ctx.share_data.parts
    ann.wire.client.lose()
    assert len(parts.partitions) == 1
    bob.wire.client.lose()
    assert len(parts.partitions) == 0
    assert len(parts.sessions) == 0


def test_a_start_by_time_is_searched_for(broker: ShareNet, monkeypatch: pytest.MonkeyPatch) -> None:
    topic_id = bytes(broker.create("t").topic_id)
    now_ms = broker.ctx.env.clock.now_ms()
    broker.produce("t", 0, [(now_ms - 7_200_000, b"old")])
    broker.produce("t", 0, [(now_ms - 60_000, b"young")])
    broker.persister.read = lambda *given: given[-1](ErrorCode.NONE, ShareState(0, -1))  # type: ignore[method-assign]
    data = broker.ctx.share_data
    texts = {"share.auto.offset.reset": "by_duration:PT1H"}
    monkeypatch.setattr(data, "_group_value", lambda group, name: texts.get(name))
    assert broker.member(topic_id).fetch(max_wait_ms=5000).acquired == [(1, 1, 1)]


def test_waiting_fetches_are_answered_at_the_end(broker: ShareNet) -> None:
    topic_id = bytes(broker.create("t").topic_id)
    ann = broker.member(topic_id)

    ann.fetch(max_wait_ms=0)
    ann.wire.client.send(frame(ann.fetch_request(max_wait_ms=60_000), 2, 9))
    broker.run()
    assert ann.wire.client.answers() == []
    broker.ctx.share_data.close()
    broker.run()
    assert [answered for answered, _ in ann.wire.client.answers()] == [9]


def test_it_begins_anew_when_share_groups_were_off(broker: ShareNet) -> None:
    topic_id = bytes(broker.create("t").topic_id)
    broker.values("t", 2)
    ann, bob = broker.member(topic_id), broker.member(topic_id, member_id="bob")
    assert ann.fetch(max_wait_ms=0).acquired == [(0, 1, 1)]
    bob.fetch(max_wait_ms=0)
    bob.wire.client.send(frame(bob.fetch_request(max_wait_ms=60_000), 2, 9))
    on, off = ClusterImage(), ClusterImage(features=FeatureImage({"share.version": 0}, 1))
    data = broker.ctx.share_data
    data.follow(off, on)
    data.follow(on, on)
    assert len(data.parts.sessions) == 2
    data.follow(on, off)
    broker.run()
    assert [answered for answered, _ in bob.wire.client.answers()] == [9]
    assert (len(data.parts.sessions), len(data.parts.partitions)) == (0, 0)
    assert ann.fetch(max_wait_ms=0).error == ErrorCode.SHARE_SESSION_NOT_FOUND
    cat = broker.member(topic_id, member_id="cat")
    assert cat.fetch(max_wait_ms=0).acquired == [(0, 1, 1)]
