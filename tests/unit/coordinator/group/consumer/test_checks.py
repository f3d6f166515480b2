"""Epochs and identities. What is wrong with a request itself is compared with Kafka in tests/conformance."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coordinator.group.consumer import checks
from coordinator.group.consumer.errors import Refused
from coordinator.group.consumer.member import ClassicPart, Current, Member
from protocol import messages as m
from protocol.errors import ErrorCode as E

T = b"t" * 16
CURRENT = Current(5, 4, assigned={T: {0: 3, 1: 5}}, revoking={T: {2: 4}})


def error_of(check: Callable[[], object]) -> E:
    try:
        check()
    except Refused as refused:
        return refused.error if refused.text else E.UNKNOWN_SERVER_ERROR
    return E.NONE


@pytest.mark.parametrize(
    ("epoch", "owned", "wanted"),
    [
        (5, None, E.NONE),
        (0, None, E.NONE),
        (6, None, E.FENCED_MEMBER_EPOCH),
        (4, None, E.FENCED_MEMBER_EPOCH),
        (4, {}, E.NONE),
        (4, {T: frozenset({0})}, E.NONE),
        (4, {T: frozenset({0, 2})}, E.FENCED_MEMBER_EPOCH),
        (3, {T: frozenset({0})}, E.FENCED_MEMBER_EPOCH),
    ],
)
def test_the_epoch_of_a_heartbeat(epoch: int, owned: dict[bytes, frozenset[int]] | None, wanted: E) -> None:
    assert error_of(lambda: checks.check_epoch(CURRENT, epoch, owned)) is wanted


def test_instance_ids() -> None:
    member = Member("m", "i")
    assert checks.check_instance(member, "m", "i", "g") is member
    assert error_of(lambda: checks.check_instance(None, "m", "i", "g")) is E.UNKNOWN_MEMBER_ID
    assert error_of(lambda: checks.check_instance(member, "n", "i", "g")) is E.FENCED_INSTANCE_ID


@pytest.mark.parametrize(
    ("member_id", "epoch", "version", "transactional", "wanted"),
    [
        ("m", 5, 9, False, False),
        ("m", 5, 8, False, E.UNSUPPORTED_VERSION),
        ("m", 5, 3, True, False),
        ("m", 6, 9, False, E.STALE_MEMBER_EPOCH),
        ("m", 4, 9, False, True),
        ("c", 5, 8, False, False),
        ("c", 6, 8, False, E.ILLEGAL_GENERATION),
        ("x", 5, 9, False, E.UNKNOWN_MEMBER_ID),
        ("", -1, 9, False, E.UNKNOWN_MEMBER_ID),
        ("", -1, 3, True, False),
    ],
)
def test_commits(member_id: str, epoch: int, version: int, transactional: bool, wanted: bool | E) -> None:
    members = {"m": Member("m"), "c": Member("c", classic=ClassicPart(1, ()))}
    current = {"m": CURRENT, "c": CURRENT}
    try:
        found: bool | E = checks.check_commit(
            members, current, member_id, epoch, version, transactional=transactional
        )
    except Refused as refused:
        found = refused.error
    assert found == wanted
    assert type(found) is type(wanted)


def test_anybody_commits_to_an_empty_group_without_an_epoch() -> None:
    assert checks.check_commit({}, {}, "", -1, 2, transactional=False) is False
    assert (
        error_of(lambda: checks.check_commit({}, {}, "m", 3, 9, transactional=False)) is E.UNKNOWN_MEMBER_ID
    )


@pytest.mark.parametrize(
    ("epoch", "topic_id", "partition", "wanted"),
    [
        (3, T, 0, E.NONE),
        (4, T, 1, E.STALE_MEMBER_EPOCH),
        (4, T, 2, E.NONE),
        (3, T, 2, E.STALE_MEMBER_EPOCH),
        (4, T, 3, E.STALE_MEMBER_EPOCH),
        (4, None, 0, E.STALE_MEMBER_EPOCH),
    ],
)
def test_a_commit_at_an_older_epoch(epoch: int, topic_id: bytes | None, partition: int, wanted: E) -> None:
    assert checks.commit_epoch_error(Member("m"), CURRENT, epoch, topic_id, partition) is wanted
    classic = Member("c", classic=ClassicPart(1, ()))
    illegal = E.NONE if wanted is E.NONE else E.ILLEGAL_GENERATION
    assert checks.commit_epoch_error(classic, CURRENT, epoch, topic_id, partition) is illegal


@pytest.mark.parametrize(
    ("member_id", "epoch", "wanted"),
    [
        (None, -1, E.NONE),
        ("m", 5, E.NONE),
        ("m", 4, E.STALE_MEMBER_EPOCH),
        ("x", 5, E.UNKNOWN_MEMBER_ID),
        (None, 5, E.UNKNOWN_MEMBER_ID),
        ("", -1, E.UNKNOWN_MEMBER_ID),
    ],
)
def test_fetches(member_id: str | None, epoch: int, wanted: E) -> None:
    members, current = {"m": Member("m")}, {"m": CURRENT}
    assert error_of(lambda: checks.check_fetch(members, current, member_id, epoch, "g")) is wanted


def test_the_group_id_of_a_heartbeat() -> None:
    request = m.ConsumerGroupHeartbeatRequest(group_id=" ", member_id="m", member_epoch=1)
    assert error_of(lambda: checks.check_heartbeat(request, 1, ["uniform"])) is E.INVALID_REQUEST
