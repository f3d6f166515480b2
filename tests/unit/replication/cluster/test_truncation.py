"""Where a follower cuts: the leader's answer against its own epochs."""

from __future__ import annotations

import pytest

from replication.cluster.truncation import truncation_offset
from storage.leader_epochs import EpochEnd


@pytest.mark.parametrize(
    ("diverging", "own", "end_offset", "cut"),
    [
        (EpochEnd(0, 10), EpochEnd(0, 8), 11, 8),  # KIP-279: the own end of a shared epoch is less
        (EpochEnd(0, 1), EpochEnd(0, 2), 2, 1),  # KIP-101: the leader's is
        # T5, three rounds: each epoch that was never here leads further back
        (EpochEnd(4, 140), EpochEnd(4, 149), 201, 140),
        (EpochEnd(3, 130), EpochEnd(2, 129), 140, 129),
        (EpochEnd(2, 120), EpochEnd(1, 119), 129, 119),
        (EpochEnd(2, 200), EpochEnd(2, 150), 120, 120),  # never beyond the end
        (EpochEnd(1, 5), EpochEnd(-1, -1), 9, 5),  # no epochs here
        (EpochEnd(1, 5), EpochEnd(-1, -1), 3, 3),
    ],
)
def test_the_cut(diverging, own, end_offset, cut):
    assert truncation_offset(diverging, own, end_offset) == cut
