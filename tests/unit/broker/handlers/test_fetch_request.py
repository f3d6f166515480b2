"""What a Fetch request says at different versions."""

from __future__ import annotations

import pytest

from broker.handlers.fetch_request import (
    CONVERTED_BYTES,
    INT32_MAX,
    forgotten_of,
    params_of,
    session_of,
    wanted_of,
)
from protocol import messages as m

ID = bytes(range(16))


def request(**fields):
    return m.FetchRequest(max_wait_ms=5, min_bytes=7, max_bytes=9_000_000, **fields)


@pytest.mark.parametrize(
    ("version", "limit"),
    [(2, CONVERTED_BYTES), (3, CONVERTED_BYTES), (4, 8_000_000), (12, 8_000_000), (17, 8_000_000)],
)
def test_a_consumer_has_the_least_of_all_limits(version, limit):
    params = params_of(version, request(isolation_level=1), 8_000_000)
    assert (params.version, params.max_wait_ms, params.min_bytes) == (version, 5, 7)
    assert (params.max_bytes, params.isolation, params.replica_id) == (limit, 1, -1)


def test_a_follower_has_its_own_limit_and_says_who_it_is_in_a_tag_since_15():
    asked = request(replica_id=3)
    assert params_of(14, asked, 100).replica_id == 3
    assert params_of(14, asked, 100).max_bytes == 9_000_000
    assert params_of(15, asked, 100).replica_id == -1
    asked.replica_state.replica_id = 4
    assert params_of(15, asked, 100).replica_id == 4


def test_the_oldest_versions_have_no_limit_for_the_whole_answer():
    assert params_of(0, m.FetchRequest(max_bytes=1), INT32_MAX).max_bytes == CONVERTED_BYTES


def test_sessions_begin_with_version_7():
    asked = request(session_id=8, session_epoch=0)
    assert session_of(6, asked) == (0, -1)
    assert session_of(7, asked) == (8, 0)


def test_partitions_come_in_order_and_with_all_that_is_said_of_them():
    place = m.FetchRequest.FetchPartition(
        partition=2,
        fetch_offset=3,
        partition_max_bytes=4,
        current_leader_epoch=5,
        last_fetched_epoch=6,
        log_start_offset=7,
    )
    topics = [
        m.FetchRequest.FetchTopic(topic="b", topic_id=ID, partitions=[place]),
        m.FetchRequest.FetchTopic(topic="a", partitions=[m.FetchRequest.FetchPartition(partition=0)]),
    ]
    first, second = wanted_of(request(topics=topics))
    assert (first.topic, first.topic_id, first.index, first.fetch_offset) == ("b", ID, 2, 3)
    assert (first.max_bytes, first.leader_epoch, first.last_fetched_epoch) == (4, 5, 6)
    assert first.log_start_offset == 7
    assert (second.topic, second.index) == ("a", 0)


def test_the_forgotten_are_named_as_the_version_names_partitions():
    forgotten = m.FetchRequest.ForgottenTopic(topic="t", topic_id=ID, partitions=[1, 2])
    asked = request(forgotten_topics_data=[forgotten])
    assert forgotten_of(12, asked) == [("t", 1), ("t", 2)]
    assert forgotten_of(13, asked) == [(ID, 1), (ID, 2)]
