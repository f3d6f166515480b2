"""Replica placement as Kafka's AdminUtils does it."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replication.controller.placement import PlacementImpossible, alternate_racks, place_replicas


def plain(count):
    return dict.fromkeys(range(count))


def test_without_racks_as_kafka_places_them():
    # Kafka's own example: 5 brokers, 10 partitions, 3 replicas, start 0 and shift 0.
    assert place_replicas(plain(5), 10, 3, start=0, shift=0) == [
        (0, 1, 2),
        (1, 2, 3),
        (2, 3, 4),
        (3, 4, 0),
        (4, 0, 1),
        (0, 2, 3),
        (1, 3, 4),
        (2, 4, 0),
        (3, 0, 1),
        (4, 1, 2),
    ]


def test_racks_alternate():
    racks = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}
    assert alternate_racks(racks) == [0, 3, 1, 5, 4, 2]
    del racks[5]
    assert alternate_racks(racks) == [0, 3, 1, 4, 2]


def test_with_racks_as_kafka_places_them():
    racks = {0: "rack1", 1: "rack2", 2: "rack2", 3: "rack3", 4: "rack3", 5: "rack1"}
    assert alternate_racks(racks) == [0, 1, 3, 5, 2, 4]
    racks = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}
    placed = place_replicas(racks, 7, 3, start=0, shift=0)
    assert placed[0] == (0, 3, 1)
    assert placed[5] == (2, 0, 3)
    assert placed[6] == (0, 4, 2)


def test_a_later_start_goes_on_where_the_first_partitions_ended():
    whole = place_replicas(plain(4), 9, 2, start=1, shift=2)
    # shifts depend on how often the round was full since partition 0, so the same start and shift go on alike
    assert place_replicas(plain(4), 1, 2, start=1, shift=2, first_partition=0) == whole[:1]
    assert place_replicas(plain(4), 3, 2, start=1, shift=2, first_partition=1) == whole[1:4]


@pytest.mark.parametrize(
    ("brokers", "factor", "reason"),
    [
        ({}, 1, "only 0 broker"),
        (plain(2), 3, "The target replication factor of 3 cannot be reached because only 2 broker"),
        ({1: "a", 2: None}, 1, "Not all brokers have rack information"),
    ],
)
def test_impossible(brokers, factor, reason):
    with pytest.raises(PlacementImpossible, match=reason):
        place_replicas(brokers, 1, factor, start=0, shift=0)


@given(st.data())
def test_replicas_are_distinct_leaders_even_and_racks_spread(data):
    brokers = data.draw(st.lists(st.integers(0, 50), min_size=1, max_size=9, unique=True))
    names = st.sampled_from("abc")
    racks = {b: data.draw(names) for b in brokers} if data.draw(st.booleans()) else dict.fromkeys(brokers)
    factor = data.draw(st.integers(1, len(brokers)))
    start, shift = (data.draw(st.integers(0, len(brokers) - 1)) for _ in range(2))
    rounds = data.draw(st.integers(1, 3))
    placed = place_replicas(racks, rounds * len(brokers), factor, start=start, shift=shift)
    assert all(len(set(replicas)) == factor for replicas in placed)
    assert set(Counter(replicas[0] for replicas in placed).values()) == {rounds}
    if None not in racks.values():
        spread = min(factor, len(set(racks.values())))
        assert all(len({racks[b] for b in replicas}) == spread for replicas in placed)
