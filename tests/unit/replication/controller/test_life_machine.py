"""Random lives of a cluster's controllers: what must never be, and where everything ends.

replication.md, section 6: 5 (one leader in each epoch), 6 (what a state may become), 7 (a fenced controller
writes nothing).
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
