"""Share sessions and the form of ShareFetch and ShareAcknowledge (KIP-932)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from protocol.errors import ErrorCode
from tests.support.share_member import ACCEPT, RENEW, ShareMember, initialize
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

UNKNOWN_ID = b"\x07" * 16


@pytest.fixture
def member(wire: WireClient, name: str) -> Callable[..., ShareMember]:
    """Makes members of a group of the test's own on a topic with one partition."""
    topic_id = wire.create_topic(name)
    initialize(wire, name, topic_id)
    return lambda member_id="ann", **fields: ShareMember(
        fields.pop("wire", wire), name, topic_id, member_id, **fields
    )


def test_the_first_fetch_begins_a_session_and_epochs_go_up(member: Callable[..., ShareMember]) -> None:
    ann = member()
    assert ann.fetch(max_wait_ms=0).error == 0
    assert ann.fetch(max_wait_ms=0).error == 0
    assert ann.acknowledge().error_code == 0
    assert ann.fetch(max_wait_ms=0).error == 0
    assert ann.epoch == 4


@pytest.mark.parametrize("epoch", [1, 7])
def test_without_a_session_is_122(member: Callable[..., ShareMember], epoch: int) -> None:
    assert member().fetch(epoch=epoch).error == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert member().acknowledge(epoch=epoch).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_ending_what_is_not_there_is_122(member: Callable[..., ShareMember]) -> None:
    assert member().fetch(epoch=-1).error == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert member().acknowledge(epoch=-1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_a_wrong_epoch_is_123_and_changes_nothing(member: Callable[..., ShareMember]) -> None:
    ann = member()
    ann.fetch(max_wait_ms=0)
    assert ann.fetch(epoch=2).error == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert ann.acknowledge(epoch=5).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert ann.fetch(max_wait_ms=0).error == 0
    assert ann.fetch(epoch=1).error == ErrorCode.INVALID_SHARE_SESSION_EPOCH


def test_an_acknowledgement_does_not_begin_a_session(member: Callable[..., ShareMember]) -> None:
    ann = member()
    ann.fetch(max_wait_ms=0)
    assert ann.acknowledge(epoch=0).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH


def test_a_first_fetch_has_nothing_to_acknowledge(member: Callable[..., ShareMember]) -> None:
    ann = member()
    assert ann.fetch((0, 0, ACCEPT), epoch=0).error == ErrorCode.INVALID_REQUEST
    assert ann.fetch(epoch=1).error == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_epoch_0_begins_anew(member: Callable[..., ShareMember]) -> None:
    ann = member()
    ann.fetch(max_wait_ms=0)
    ann.fetch(max_wait_ms=0)
    assert ann.fetch(epoch=0, max_wait_ms=0).error == 0
    assert ann.fetch(epoch=2).error == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert ann.fetch(epoch=1, max_wait_ms=0).error == 0


def test_epoch_minus_1_ends_the_session(member: Callable[..., ShareMember]) -> None:
    ann = member()
    ann.fetch(max_wait_ms=0)
    last = ann.fetch(epoch=-1)
    assert (last.error, last.rows) == (0, {})
    assert ann.fetch(epoch=1).error == ErrorCode.SHARE_SESSION_NOT_FOUND
    ann.fetch(epoch=0, max_wait_ms=0)
    assert ann.acknowledge(epoch=-1).error_code == 0
    assert ann.fetch(epoch=1).error == ErrorCode.SHARE_SESSION_NOT_FOUND


@pytest.mark.parametrize("fields", [{"member_id": ""}, {"member_id": "x" * 37}, {"group_id": None}])
def test_who_does_not_say_who_it_is_is_42(member: Callable[..., ShareMember], fields: dict) -> None:
    assert member().fetch(**fields).error == ErrorCode.INVALID_REQUEST
    assert member().acknowledge(**fields).error_code == ErrorCode.INVALID_REQUEST


def test_members_have_sessions_of_their_own(member: Callable[..., ShareMember]) -> None:
    ann, bob = member("ann"), member("x" * 36)
    assert ann.fetch(max_wait_ms=0).error == 0
    assert bob.fetch(max_wait_ms=0).error == 0
    assert ann.fetch(epoch=-1).error == 0
    assert bob.fetch(max_wait_ms=0).error == 0


def test_a_session_goes_with_its_connection(
    either_broker, member: Callable[..., ShareMember], wire: WireClient
) -> None:
    with WireClient(either_broker.bootstrap_servers) as other:
        ann = member(wire=other)
        ann.fetch(max_wait_ms=0)
        assert member().fetch(epoch=1, max_wait_ms=0).error == 0  # any connection may go on with it
    gone = ErrorCode.SHARE_SESSION_NOT_FOUND
    wait_until(lambda: member().fetch(epoch=9).error == gone, "the session to go")


def test_renewing_asks_for_no_records(member: Callable[..., ShareMember]) -> None:
    ann = member()
    ann.fetch(max_wait_ms=0)
    none = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0, "is_renew_ack": True}
    for name in ("max_wait_ms", "min_bytes", "max_bytes", "max_records"):
        assert ann.fetch(**{**none, name: 1}).error == ErrorCode.INVALID_REQUEST
    assert ann.fetch(**none).error == 0


def test_unknown_topics_and_partitions(wire: WireClient, member: Callable[..., ShareMember]) -> None:
    ann = member()
    ann.topic_id = UNKNOWN_ID
    first = ann.fetch(max_wait_ms=0)
    assert {index: row.error_code for index, row in first.rows.items()} == {0: ErrorCode.UNKNOWN_TOPIC_ID}
    later = ann.fetch(max_wait_ms=0)
    assert {index: row.error_code for index, row in later.rows.items()} == {0: ErrorCode.UNKNOWN_TOPIC_ID}
    bob = member("bob")
    assert {i: r.error_code for i, r in bob.fetch(partitions=[5], max_wait_ms=0).rows.items()} == {
        5: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    }


def test_acknowledging_an_unknown_topic_is_100(member: Callable[..., ShareMember]) -> None:
    ann = member()
    ann.fetch(max_wait_ms=0)
    ann.topic_id = UNKNOWN_ID
    assert ann.ack_error((0, 0, ACCEPT)) == ErrorCode.UNKNOWN_TOPIC_ID


@pytest.mark.parametrize(
    "acks",
    [
        [(1, 0, ACCEPT)],
        [(5, 9, ACCEPT), (0, 4, ACCEPT)],
        [(0, 1)],
        [(0, 2, ACCEPT, ACCEPT)],
        [(0, 0, ACCEPT, ACCEPT)],
        [(0, 0, 5)],
        [(0, 0, -1)],
        [(0, 0, RENEW)],
    ],
)
def test_badly_formed_acknowledgements_are_42(member: Callable[..., ShareMember], acks: list) -> None:
    ann = member()
    ann.fetch(max_wait_ms=0)
    assert ann.ack_error(*acks) == ErrorCode.INVALID_REQUEST


def test_version_1_knows_no_renewal(member: Callable[..., ShareMember]) -> None:
    ann = member()
    ann.fetch(max_wait_ms=0)
    assert ann.ack_error((0, 0, RENEW), version=1) == ErrorCode.INVALID_REQUEST


def test_a_first_answer_names_all_and_a_later_one_what_has_news(wire: WireClient, name: str) -> None:
    topic_id = wire.create_topic(name, 3)
    initialize(wire, name, topic_id, 3)
    ann = ShareMember(wire, name, topic_id, partitions=3)
    assert set(ann.fetch(max_wait_ms=0).rows) <= {0, 1, 2}  # what has been loaded
    assert ann.fetch(max_wait_ms=200).rows == {}
    wire.produce_values(name, b"a", partition=2)
    rows: dict[int, Any] = {}

    def told() -> bool:
        rows.update(ann.fetch().rows)
        return bool(rows)

    wait_until(told, "news")
    assert set(rows) == {2}


def test_the_answer_tells_how_long_locks_last(member: Callable[..., ShareMember]) -> None:
    ann = member()
    assert ann.fetch(max_wait_ms=0).response.acquisition_lock_timeout_ms == 30_000
    assert ann.acknowledge().acquisition_lock_timeout_ms == 30_000
    assert ann.fetch(epoch=9).response.acquisition_lock_timeout_ms == 0
    assert ann.acknowledge(epoch=9).acquisition_lock_timeout_ms == 0
