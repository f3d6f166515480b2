"""What may be said about records, and what it does."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from protocol.errors import ErrorCode
from replication.share.acknowledge import Ack, AckRefused, AckType, check_acks
from replication.share.ports import StateBatch
from replication.share.runs import ACKNOWLEDGED, ARCHIVED, AVAILABLE
from replication.share.share_partition import SharePartition
from tests.unit.replication.share.play import log, say, share, take

GAP, ACCEPT, RELEASE, REJECT, RENEW = AckType


@pytest.mark.parametrize(
    "acks",
    [
        [],
        [Ack(0, 9, [ACCEPT])],
        [Ack(0, 2, [ACCEPT, GAP, REJECT])],
        [Ack(0, 4, [ACCEPT]), Ack(4, 9, [RELEASE])],
    ],
)
def test_well_formed(acks: list[Ack]) -> None:
    assert check_acks(acks, True, False)


@pytest.mark.parametrize(
    "acks",
    [
        [Ack(1, 0, [ACCEPT])],
        [Ack(5, 9, [ACCEPT]), Ack(0, 4, [ACCEPT])],
        [Ack(-2, 0, [ACCEPT])],
        [Ack(0, 1, [])],
        [Ack(0, 2, [ACCEPT, ACCEPT])],
        [Ack(0, 0, [5])],
        [Ack(0, 0, [-1])],
        [Ack(0, 0, [RENEW])],
    ],
)
def test_badly_formed(acks: list[Ack]) -> None:
    assert not check_acks(acks, True, False)


def test_renewing_is_for_requests_that_say_so() -> None:
    assert check_acks([Ack(0, 0, [RENEW])], True, True)
    assert not check_acks([Ack(0, 0, [RENEW])], False, True)


def held(*spans: tuple[int, int]) -> SharePartition:
    """What ann holds."""
    found = share()
    take(found, log(*spans), batch_size=1)
    return found


def refused(
    found: SharePartition, acks: Sequence[Ack], member: str = "ann", may_renew: bool = True
) -> tuple[ErrorCode, str]:
    with pytest.raises(AckRefused) as info:
        found.acknowledge(member, acks, 0, may_renew)
    return info.value.error, info.value.message


def test_types_and_what_becomes_of_records() -> None:
    found = held((0, 4))
    assert say(found, 0, 4, GAP, ACCEPT, RELEASE, REJECT, ACCEPT) == [
        StateBatch(0, 0, ARCHIVED, 1),
        StateBatch(1, 1, ACKNOWLEDGED, 1),
        StateBatch(2, 2, AVAILABLE, 1),
        StateBatch(3, 3, ARCHIVED, 1),
        StateBatch(4, 4, ACKNOWLEDGED, 1),
    ]
    assert found.window.start_offset == 2


def test_one_type_for_several_batches() -> None:
    found = held((0, 4), (5, 9))
    assert say(found, 2, 7, ACCEPT) == [StateBatch(2, 7, ACKNOWLEDGED, 1)]
    assert say(found, 0, 1, ACCEPT) == [StateBatch(0, 1, ACKNOWLEDGED, 1)]
    assert found.window.start_offset == 8


def test_below_the_start_nothing_is_said() -> None:
    found = held((0, 4), (5, 9))
    say(found, 0, 4, ACCEPT)
    assert say(found, 0, 3, REJECT) == []
    assert say(found, 3, 6, ACCEPT) == [StateBatch(5, 6, ACKNOWLEDGED, 1)]


def test_who_does_not_hold_it() -> None:
    found = held((0, 4))
    wrong = ErrorCode.INVALID_RECORD_STATE
    assert refused(found, [Ack(0, 4, [ACCEPT])], "bob") == (
        wrong,
        "Member is not the owner of batch record",
    )
    say(found, 0, 0, RELEASE)
    assert refused(found, [Ack(1, 1, [ACCEPT])], "bob") == (wrong, "Member is not the owner of offset")
    assert refused(found, [Ack(0, 0, [ACCEPT])]) == (
        wrong,
        "The offset cannot be acknowledged. The offset is not acquired.",
    )
    whole = held((0, 4))
    say(whole, 0, 4, RELEASE)
    assert refused(whole, [Ack(0, 4, [ACCEPT])]) == (
        wrong,
        "The batch cannot be acknowledged. The batch is not in the acquired state.",
    )


def test_what_is_on_its_way_is_not_said_again() -> None:
    found = held((0, 4))
    found.acknowledge("ann", [Ack(0, 4, [RELEASE])], 0, True)
    assert refused(found, [Ack(0, 4, [ACCEPT])])[0] is ErrorCode.INVALID_RECORD_STATE


def test_beyond_what_was_acquired() -> None:
    found = held((5, 9))
    assert refused(found, [Ack(5, 10, [ACCEPT])]) == (
        ErrorCode.INVALID_REQUEST,
        "Batch record not found. The last offset in request is past acquired records.",
    )
    assert refused(found, [Ack(10, 11, [ACCEPT])]) == (
        ErrorCode.INVALID_REQUEST,
        "Batch record not found. The first offset in request is past acquired records.",
    )
    assert refused(share(), [Ack(0, 1, [ACCEPT])]) == (
        ErrorCode.INVALID_RECORD_STATE,
        "Batch record not found. The request batch offsets are not found in the cache.",
    )


def test_one_wrong_range_undoes_the_others() -> None:
    found = held((0, 4), (5, 9))
    refused(found, [Ack(0, 4, [ACCEPT]), Ack(5, 10, [ACCEPT])])
    assert found.window.complete_count == 0
    assert say(found, 0, 4, ACCEPT) == [StateBatch(0, 4, ACKNOWLEDGED, 1)]


def test_renewing_changes_no_state() -> None:
    found = held((0, 4))
    assert say(found, 0, 4, RENEW, now_ms=700) == []
    assert found.expire(1000) == []
    assert found.expire(1700) == [StateBatch(0, 4, AVAILABLE, 1)]


def test_renewing_may_be_off() -> None:
    assert refused(held((0, 4)), [Ack(0, 4, [RENEW])], may_renew=False) == (
        ErrorCode.INVALID_RECORD_STATE,
        "Renewing acquisition locks is not enabled for the group.",
    )


def test_a_release_at_the_limit_archives() -> None:
    found = share(0, StateBatch(0, 0, AVAILABLE, 4), StateBatch(1, 1, AVAILABLE, 1))
    take(found, log((0, 0)))
    take(found, log((0, 0), (1, 1)))
    assert say(found, 0, 1, RELEASE) == [
        StateBatch(0, 0, ARCHIVED, 5),
        StateBatch(1, 1, AVAILABLE, 2),
    ]
