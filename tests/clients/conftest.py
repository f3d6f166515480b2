"""One broker for the client matrix, with every data set written to it by each library and codec.

The flights are dealt out over the cells of the matrix (library x codec), so that together they hold each
flight once; every cell has a topic of its own with two partitions.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.clients.datasets import Row, flights, vega
from tests.clients.writers import CODECS, WRITERS
from tests.support.ottla_process import OttlaProcess

PARTITIONS = 2


@dataclass(slots=True)
class Matrix:
    """The broker and what each of its topics must hold, for each partition in order."""

    broker: OttlaProcess
    topics: dict[str, list[list[Row]]] = field(default_factory=dict)

    def topic(self, library: str, codec: str) -> str:
        return f"flights.{library}.{codec}"


def dealt(rows: list[Row], hands: int, hand: int) -> list[Row]:
    """The rows of one cell, in order."""
    return rows[hand::hands]


@contextlib.contextmanager
def uncollected() -> Iterator[None]:
    """Keeps the collector out while a million objects are made: to look at them takes as long again."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.fixture(scope="session")
def matrix() -> Iterator[Matrix]:
    with uncollected():
        rows = [*flights(), *vega()]
    cells = [(library, codec) for library in WRITERS for codec in CODECS]
    settings = {"num.partitions": str(PARTITIONS), "log.segment.bytes": str(1 << 20)}
    with OttlaProcess({**settings, "log.retention.ms": "-1"}) as broker:  # the flights are of 2013
        matrix = Matrix(broker)
        with uncollected():
            for hand, (library, codec) in enumerate(cells):
                mine = dealt(rows, len(cells), hand)
                topic = matrix.topic(library, codec)
                WRITERS[library](broker.bootstrap_servers, topic, mine, codec, PARTITIONS)
                matrix.topics[topic] = [mine[p::PARTITIONS] for p in range(PARTITIONS)]
        gc.freeze()
        yield matrix
