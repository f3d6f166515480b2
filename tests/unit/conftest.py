"""What unit tests have in common: files that are written for real, and not forced to the disk.

No test can see whether fsync has done its work, and thousands of brokers open and close here. What must be on
the disk, and when, is shown on simulated disks that lose what was not synced (`tests/simulation`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def files_stay_in_memory() -> Iterator[None]:
    """A descriptor that is not open is refused as ever."""

    def looked_at(fd: int) -> None:
        os.fstat(fd)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", looked_at)
        yield
