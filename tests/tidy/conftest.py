"""The syntax trees go when the tidy tests are over: the collector would look at them in all later tests.

While they are made it would look at them again and again, which takes three times as long as making them.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tests.tidy.sources import nodes_of, tree_of


@pytest.fixture(scope="package", autouse=True)
def trees_go() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        nodes_of.cache_clear()
        tree_of.cache_clear()
        gc.enable()
