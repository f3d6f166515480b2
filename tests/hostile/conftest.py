"""A broker to attack, new for each test, because memory is measured."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hostile.victim import Victim


@pytest.fixture
def victim() -> Iterator[Victim]:
    """Our broker as a process of its own."""
    with Victim() as started:
        yield started
        assert started.serves()
