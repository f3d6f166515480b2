"""Runs of offsets against a model of single offsets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coordinator.share.batches import NO_START, StateBatch, merged, normal

OFFSETS = 24
batches = st.builds(
    lambda first, length, state, count: StateBatch(first, first + length, state, count),
    st.integers(0, OFFSETS),
    st.integers(-1, 8),
    st.sampled_from((0, 2, 4)),
    st.integers(1, 3),
)
arrivals = st.lists(st.tuples(st.lists(batches, max_size=5), st.integers(NO_START, OFFSETS)), max_size=6)


def rewritten(model: dict[int, tuple[int, int]]) -> list[StateBatch]:
    """The longest runs of equal neighbours."""
    found: list[StateBatch] = []
    for offset in sorted(model):
        count, state = model[offset]
        if found and found[-1][1:] == (offset - 1, state, count):
            found[-1] = found[-1]._replace(last_offset=offset)
        else:
            found.append(StateBatch(offset, offset, state, count))
    return found


@given(arrivals)
def test_every_offset_has_the_highest_count_then_state_of_all_that_came(
    steps: list[tuple[list[StateBatch], int]],
) -> None:
    kept: tuple[StateBatch, ...] = ()
    model: dict[int, tuple[int, int]] = {}
    for new, start_offset in steps:
        kept = merged(kept, new, start_offset)
        for each in new:
            for offset in range(each.first_offset, each.last_offset + 1):
                model[offset] = max(model.get(offset, (0, 0)), (each.delivery_count, each.delivery_state))
        model = {offset: entry for offset, entry in model.items() if offset >= start_offset}
        assert list(kept) == rewritten(model)


@given(st.lists(batches, max_size=8), st.randoms(use_true_random=False))
def test_the_order_of_arrival_does_not_matter(new: list[StateBatch], chance: object) -> None:
    one_by_one: tuple[StateBatch, ...] = ()
    shuffled = list(new)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]
    for each in shuffled:
        one_by_one = merged(one_by_one, [each], NO_START)
    assert one_by_one == normal(new)


def test_a_start_cuts_what_lies_below_it() -> None:
    kept = normal([StateBatch(0, 9, 2, 1), StateBatch(10, 19, 0, 1)])
    assert merged(kept, (), 5) == (StateBatch(5, 9, 2, 1), StateBatch(10, 19, 0, 1))
    assert merged(kept, (), 10) == (StateBatch(10, 19, 0, 1),)
    assert merged(kept, [StateBatch(3, 12, 4, 2)], 8) == (StateBatch(8, 12, 4, 2), StateBatch(13, 19, 0, 1))
    assert merged(kept, (), 20) == ()


def test_neighbours_that_say_the_same_become_one_run() -> None:
    kept = normal([StateBatch(0, 4, 2, 1), StateBatch(10, 14, 2, 1)])
    assert merged(kept, [StateBatch(5, 9, 2, 1)], 0) == (StateBatch(0, 14, 2, 1),)


def test_far_runs_are_not_touched() -> None:
    kept = tuple(StateBatch(10 * n, 10 * n + 4, 2, 1) for n in range(1000))
    after = merged(kept, [StateBatch(5002, 5003, 4, 2)], 0)
    assert after[:500] == kept[:500]
    assert after[503:] == kept[501:]
    assert after[500:503] == (
        StateBatch(5000, 5001, 2, 1),
        StateBatch(5002, 5003, 4, 2),
        StateBatch(5004, 5004, 2, 1),
    )
