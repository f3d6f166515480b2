"""The only source of chance.

`Random` is handed down by constructor. In production it draws from the operating system; a simulation gives a
seeded one, and each component takes its own by `fork(name)`, so that a new draw in one of them does not shift
the draws of the others.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import MutableSequence
from typing import Any, Protocol

_UUID_BYTES = 16


class Random(Protocol):
    """Draws of integers, bytes and ids."""

    def fork(self, name: str) -> Random:
        """An independent source for one component; the same name gives the same draws under one seed."""

    def integer(self, low: int, high: int) -> int:
        """An integer from `low` to `high`, both inclusive."""

    def token(self, size: int) -> bytes:
        """`size` bytes that nobody can guess (in production)."""

    def uuid(self) -> bytes:
        """16 bytes of a version-4 UUID whose base64 text never starts with '-', as Kafka's ids.

        A tool would take such a text for an option.
        """

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """Bring the items into a random order, in place."""


class _Draws:
    """What both sources share; `_source` decides where the bits come from."""

    __slots__ = ("_source",)

    def __init__(self, source: random.Random) -> None:
        self._source = source

    def integer(self, low: int, high: int) -> int:
        return self._source.randint(low, high)

    def token(self, size: int) -> bytes:
        return self._source.randbytes(size)

    def uuid(self) -> bytes:
        while True:
            drawn = bytearray(self.token(_UUID_BYTES))
            drawn[6] = drawn[6] & 0x0F | 0x40
            drawn[8] = drawn[8] & 0x3F | 0x80
            if drawn[0] >> 2 != 62:  # index 62 of the URL-safe base64 alphabet is '-'
                return bytes(drawn)

    def shuffle(self, items: MutableSequence[Any]) -> None:
        self._source.shuffle(items)


class SystemRandom(_Draws):
    """Draws from the operating system; a fork is the same source, for there is no seed to follow."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(random.SystemRandom())

    def fork(self, name: str) -> SystemRandom:
        return self


class SeededRandom(_Draws):
    """Draws that repeat with the seed."""

    __slots__ = ("_seed",)

    def __init__(self, seed: bytes) -> None:
        super().__init__(random.Random(seed))
        self._seed = seed

    def fork(self, name: str) -> SeededRandom:
        return SeededRandom(hashlib.sha256(self._seed + b"/" + name.encode()).digest())
