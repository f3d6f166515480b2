"""Requests from somebody that exists.

`Mutator` makes fields of any value, so an id is never one that the broker gave. This one learns from answers,
and most requests are in everything of one that it knows.
"""

from __future__ import annotations

import random
from abc import abstractmethod
from typing import Any, ClassVar

from protocol.api_keys import ApiKey
from protocol.schema.model import Field
from tests.hostile.mutations import Mutator

LONG = "x" * 32767
KNOWN_AT_ONCE = 16


class KnowingMutator(Mutator):
    """`learn` what answers say. `values` are what fields have that are not known, by their names."""

    apis: ClassVar[tuple[ApiKey, ...]]
    often: ClassVar[tuple[ApiKey, ...]]
    values: ClassVar[dict[str, tuple[Any, ...]]]
    mostly_not_said: ClassVar[tuple[str, ...]] = ()

    def __init__(self, chance: random.Random, ids: list[bytes], versions: dict[int, tuple[int, int]]) -> None:
        super().__init__(chance, ids)
        self.versions = {key: versions[key] for key in self.apis if key in versions}
        self._often = [key for key in self.often if key in self.versions]
        self._known: list[dict[str, Any]] = []
        self._as: dict[str, Any] = {}

    def request(self) -> tuple[int, int, bytes]:
        """API key, version and body of a request that parses."""
        chance = self.chance
        key = chance.choice([*self.versions, *self._often * 4])
        version = chance.randint(*self.versions[key])
        self._as = chance.choice(self._known) if self._known and chance.random() < 0.7 else {}
        body = self.body(key, version)
        if chance.random() < 0.1:
            body = body.replace(LONG[1:].encode(), b"\xff" * (len(LONG) - 1))
        return key, version, bytes(self.damaged(bytearray(body), 0)) if chance.random() < 0.1 else body

    @abstractmethod
    def learn(self, key: int, version: int, body: bytes, response: Any) -> None:
        """Remember who the broker knows now."""

    def remember(self, identity: str, known: dict[str, Any]) -> None:
        """What the fields of a request are in the name of one; of the same identity the last counts."""
        others = [each for each in self._known if each[identity] != known[identity]]
        self._known = [*others[1 - KNOWN_AT_ONCE :], known]

    def values_of(self, name: str, field: Field) -> tuple[Any, ...] | None:
        """What a field of the struct `name` may have; None for anything."""
        return self.values.get(field.attribute)

    def _value(self, name: str, field: Field, version: int) -> Any:
        known = self._as.get(field.attribute)
        if known is not None and not field.is_array and self.chance.random() < 0.95:
            return known
        if field.attribute in self.mostly_not_said and self.chance.random() < 0.7:
            return [] if field.is_array else None
        return super()._value(name, field, version)

    def _one(self, name: str, field: Field, version: int) -> Any:
        values = self.values_of(name, field) if field.struct is None else None
        return self.chance.choice(values) if values is not None else super()._one(name, field, version)
