"""Names that stand in a request again and again."""

from __future__ import annotations

from broker.handlers.repeats import REPEATS_MAX, bounded


def test_all_names_stay_in_their_order_with_what_is_named_a_few_times():
    assert bounded(["b", "a", "b", ""]) == ["b", "a", "b", ""]
    assert bounded([]) == []


def test_a_name_that_stands_there_too_often_is_cut_to_the_bound():
    assert bounded(["a", "b"] * 10_000) == ["a", "b"] * REPEATS_MAX
