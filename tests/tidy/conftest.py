"""The syntax trees go when the tidy tests are over: the collector would look at them in all later tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.tidy.sources import tree_of


@pytest.fixture(scope="package", autouse=True)
def trees_go() -> Iterator[None]:
    yield
    tree_of.cache_clear()
