"""Incremental fetch sessions (KIP-227; protocol.md 4.1, S1-S11)."""

from __future__ import annotations

from typing import Any

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from tests.support.wire_client import WireClient

Request = m.FetchRequest


def fetch(
    wire: WireClient,
    session_id: int,
    epoch: int,
    *places: tuple[str, int, int],
    forget: list[tuple[str, list[int]]] = [],  # noqa: B006 - never changed
    version: int = 12,
    **fields: Any,
) -> Any:
    topics: dict[str, list[m.FetchRequest.FetchPartition]] = {}
    for name, partition, offset in places:
        place = Request.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20)
        topics.setdefault(name, []).append(place)
    limits = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, **fields}
    return wire.send(
        Request(
            session_id=session_id,
            session_epoch=epoch,
            topics=[Request.FetchTopic(topic=name, partitions=found) for name, found in topics.items()],
            forgotten_topics_data=[
                Request.ForgottenTopic(topic=name, partitions=found) for name, found in forget
            ],
            **limits,
        ),
        version,
    )


def listed(answer: Any) -> dict[int, int]:
    """Partition to number of record bytes, of the partitions that the answer mentions."""
    return {p.partition_index: len(p.records or b"") for t in answer.responses for p in t.partitions}


@pytest.fixture
def wide(wire: WireClient, name: str) -> str:
    wire.create_topic(name, partitions=4)
    return name


def opened(wire: WireClient, name: str, partitions: int = 4) -> int:
    answer = fetch(wire, 0, 0, *[(name, p, 0) for p in range(partitions)])
    assert answer.session_id > 0
    assert set(listed(answer)) == set(range(partitions))
    return int(answer.session_id)


def test_without_a_session_none_is_made(wire: WireClient, wide: str) -> None:
    assert fetch(wire, 0, -1, (wide, 0, 0)).session_id == 0


def test_an_incremental_fetch_lists_only_what_has_news(wire: WireClient, wide: str) -> None:
    session = opened(wire, wide)
    assert listed(fetch(wire, session, 1)) == {}
    wire.produce_values(wide, b"a", partition=2)
    got = fetch(wire, session, 2)
    assert set(listed(got)) == {2}
    assert listed(got)[2] > 0
    # Not moved on, it is sent again; moved on, there is nothing to tell.
    assert set(listed(fetch(wire, session, 3))) == {2}
    assert listed(fetch(wire, session, 4, (wide, 2, 1))) == {}


def test_a_wrong_epoch_is_71_and_an_unknown_id_70(wire: WireClient, wide: str) -> None:
    session = opened(wire, wide)
    assert fetch(wire, session, 5).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert fetch(wire, 123_456_789, 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    wrong = fetch(wire, 123_456_789, 1, (wide, 0, 0))
    assert (wrong.error_code, wrong.responses) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, [])


def test_epoch_minus_1_closes_the_session(wire: WireClient, wide: str) -> None:
    session = opened(wire, wide)
    closing = fetch(wire, session, -1, (wide, 0, 0))
    assert (closing.session_id, set(listed(closing))) == (0, {0})
    assert fetch(wire, session, 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_epoch_0_replaces_the_session(wire: WireClient, wide: str) -> None:
    session = opened(wire, wide)
    again = fetch(wire, session, 0, (wide, 0, 0))
    assert again.session_id not in (0, session)
    assert fetch(wire, session, 1).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_forgotten_partitions_are_left_out(wire: WireClient, wide: str) -> None:
    session = opened(wire, wide)
    for partition in range(4):
        wire.produce_values(wide, b"a", partition=partition)
    assert set(listed(fetch(wire, session, 1, forget=[(wide, [1, 3])]))) == {0, 2}


def test_forgetting_everything_closes_the_session(wire: WireClient, wide: str) -> None:
    session = opened(wire, wide)
    last = fetch(wire, session, 1, forget=[(wide, [0, 1, 2, 3])])
    assert (last.error_code, last.session_id) == (0, 0)
    assert fetch(wire, session, 2).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_partitions_can_be_added(wire: WireClient, wide: str) -> None:
    session = opened(wire, wide, partitions=2)
    assert set(listed(fetch(wire, session, 1, (wide, 3, 0)))) == {3}
    wire.produce_values(wide, b"a", partition=3)
    assert set(listed(fetch(wire, session, 2))) == {3}


def test_served_partitions_go_to_the_end_of_the_order(wire: WireClient, wide: str) -> None:
    session = opened(wire, wide)
    for partition in range(4):
        wire.produce_values(wide, b"x" * 100, partition=partition)
    order = []
    for epoch in range(1, 5):
        got = listed(fetch(wire, session, epoch, max_bytes=1))
        order.append([partition for partition, size in got.items() if size])
    assert order == [[0], [1], [2], [3]]


def test_an_error_is_told_and_its_end_too(wire: WireClient, wide: str) -> None:
    session = opened(wire, wide)
    moved = fetch(wire, session, 1, (wide, 0, 99))
    assert [p.error_code for t in moved.responses for p in t.partitions] == [ErrorCode.OFFSET_OUT_OF_RANGE]
    back = fetch(wire, session, 2, (wide, 0, 0))
    assert [p.error_code for t in back.responses for p in t.partitions] == [0]
    assert listed(fetch(wire, session, 3)) == {}


def test_a_moved_log_start_is_told(wire: WireClient, wide: str) -> None:
    session = opened(wire, wide)
    wire.produce_values(wide, b"a", b"b", b"c")
    assert set(listed(fetch(wire, session, 1, (wide, 0, 3)))) == {0}
    assert listed(fetch(wire, session, 2)) == {}
    Delete = m.DeleteRecordsRequest
    place = Delete.DeleteRecordsPartition(partition_index=0, offset=2)
    wire.send(Delete(topics=[Delete.DeleteRecordsTopic(name=wide, partitions=[place])], timeout_ms=30_000), 2)
    told = fetch(wire, session, 3)
    assert [(p.partition_index, p.log_start_offset) for t in told.responses for p in t.partitions] == [(0, 2)]


def test_a_session_is_not_bound_to_its_connection(either_broker, wire: WireClient, wide: str) -> None:
    session = opened(wire, wide)
    wire.produce_values(wide, b"a", partition=1)
    with WireClient(either_broker.bootstrap_servers) as other:
        assert set(listed(fetch(other, session, 1))) == {1}


def test_names_and_ids_do_not_mix(wire: WireClient, wide: str) -> None:
    session = opened(wire, wide)
    mixed = fetch(wire, session, 1, version=13)
    assert mixed.error_code == ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_waiting_incremental_fetch_is_woken(either_broker, wire: WireClient, wide: str) -> None:
    session = opened(wire, wide)
    posted = wire.post(
        Request(session_id=session, session_epoch=1, max_wait_ms=50_000, min_bytes=1, max_bytes=1 << 20), 12
    )
    with WireClient(either_broker.bootstrap_servers) as other:
        other.produce_values(wide, b"a", partition=3)
    assert set(listed(wire.receive(posted))) == {3}
