"""Which offsets are too old, by the state of their group (KIP-211)."""

import pytest

from coordinator.group.offset_expiry import Expiry, expired, expiry_of, is_expired
from coordinator.group.offsets import Commit, Offsets
from coordinator.group.records import Offset, UnknownRecords
from coordinator.journal import Journal

DAY = 1000


def rule(protocol_type: str | None = "consumer", **changes: object) -> Expiry | None:
    state: dict = {"empty": False, "stable": True, "since_ms": 500, "topics": frozenset({"read"})}
    return expiry_of(protocol_type, **(state | changes))


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (rule(empty=True, stable=False), Expiry(500)),
        (rule("connect", empty=True, stable=False), Expiry(500)),
        (rule(empty=True, stable=False, since_ms=-1), Expiry()),
        (rule(), Expiry(kept_topics=frozenset({"read"}))),
        (rule(stable=False), None),
        (rule(topics=None), None),
        (rule("connect"), None),
        (rule(None, empty=True, stable=False), Expiry()),
        (rule("", empty=True, stable=False), Expiry()),
    ],
)
def test_the_state_of_a_group_gives_the_rule(found: Expiry | None, wanted: Expiry | None) -> None:
    assert found == wanted


@pytest.mark.parametrize(
    ("offset", "given", "now_ms", "over"),
    [
        (Offset(1, 0, "", 100), Expiry(500), 500 + DAY - 1, False),
        (Offset(1, 0, "", 100), Expiry(500), 500 + DAY, True),
        (Offset(1, 0, "", 100), Expiry(), 100 + DAY - 1, False),
        (Offset(1, 0, "", 100), Expiry(), 100 + DAY, True),
        (Offset(1, 0, "", 100, 150), Expiry(500), 149, False),
        (Offset(1, 0, "", 100, 150), Expiry(500), 150, True),
        (Offset(1, 0, "", 100, 100 + 5 * DAY), Expiry(), 100 + 4 * DAY, False),
        (Offset(1, 0, "", 100), Expiry(kept_topics=frozenset({"t"})), 10**12, False),
    ],
)
def test_an_offset_is_over_at_the_millisecond(offset: Offset, given: Expiry, now_ms: int, over: bool) -> None:
    assert is_expired(offset, "t", given, now_ms, DAY) is over


def test_what_a_transaction_may_still_move_stays() -> None:
    offsets = Offsets(Journal(), UnknownRecords())
    records, _ = offsets.commit("g", [Commit("t", 0, 1), Commit("t", 1, 1), Commit("u", 0, 1)], 100)
    for number, (key, value) in enumerate(records):
        offsets.replay(key, value, number, -1)
    (pending, _) = offsets.commit("g", [Commit("t", 1, 2)], 100)
    offsets.replay(*pending[0], 3, 77)
    assert expired(offsets, "g", Expiry(kept_topics=frozenset({"u"})), 100 + DAY, DAY) == [("t", 0)]
    offsets.replay_end_marker(77, False)
    assert expired(offsets, "g", Expiry(), 100 + DAY, DAY) == [("t", 0), ("t", 1), ("u", 0)]
    assert expired(offsets, "g", Expiry(), 100 + DAY - 1, DAY) == []
