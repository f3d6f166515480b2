"""One ZooKeeper for all tests of clusters; each cluster has a chroot of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.cluster_process import PATIENT_MS
from tests.support.zookeeper_process import ZookeeperProcess


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[ZookeeperProcess]:
    with ZookeeperProcess(max_session_ms=PATIENT_MS) as server:
        yield server
