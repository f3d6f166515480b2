"""DescribeShareGroupOffsets through a broker."""

from __future__ import annotations

from pathlib import Path

from protocol import messages as m
from protocol.errors import ErrorCode as E
from tests.support.handler_broker import HandlerBroker
from tests.unit.broker.handlers.share_group_requests import (
    alter,
    describe,
    rows,
    share_broker,
    turn_off,
)


def test_start_offsets_and_lag(tmp_path: Path) -> None:
    with share_broker(tmp_path) as broker:
        broker.produce("t", 1, [(1, b"a"), (2, b"b"), (3, b"c")])
        alter(broker, p1=1)
        assert rows(describe(broker)) == {("t", 1): (1, 2)}
        assert rows(describe(broker, version=0)) == {("t", 1): (1, -1)}
        assert rows(describe(broker, t=[0, 1])) == {("t", 0): (-1, -1), ("t", 1): (1, 2)}
        [topic] = describe(broker, absent=[4]).topics
        assert (topic.topic_id, topic.partitions[0].start_offset) == (bytes(16), -1)


def test_partitions_that_do_not_exist_have_no_offsets(tmp_path: Path) -> None:
    with share_broker(tmp_path) as broker:
        assert rows(describe(broker, t=[7, 7])) == {("t", 7): (-1, -1)}


def test_groups_of_which_nothing_is_known(tmp_path: Path) -> None:
    with share_broker(tmp_path) as broker:
        group = describe(broker)
        assert (group.error_code, group.topics) == (E.NONE, [])
        assert broker.call(m.DescribeShareGroupOffsetsRequest(), 1).groups == []
        turn_off(broker)
        assert describe(broker).error_code == E.UNSUPPORTED_VERSION


def test_without_a_coordinator(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path) as broker:
        group = describe(broker)
        assert (group.error_code, group.error_message) == (
            E.NOT_COORDINATOR,
            E.NOT_COORDINATOR.message,
        )
