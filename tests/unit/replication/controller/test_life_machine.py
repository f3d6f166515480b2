"""Random lives of a cluster's controllers: what must never be, and where everything ends.

In each leader epoch one broker leads at most; a partition's state becomes only what it may become; a
controller that was replaced writes nothing.
"""

from __future__ import annotations

import pytest

from tests.support.virtual_loop import run
from tests.unit.replication.controller.life import Life


@pytest.mark.parametrize("seed", range(14))
def test_whatever_happens_the_cluster_ends_well(seed):
    life = Life(seed)
    run(life.run(steps=100))
    assert sum(life.done.values()) > 80
