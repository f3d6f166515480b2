"""Assignments: which partitions of which topics (by id) somebody has.

An Assignment is a plain dict that nobody changes once it is made. Invariant: no topic has an empty set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

Assignment: TypeAlias = dict[bytes, frozenset[int]]
NOTHING: Assignment = {}


def from_wire(topic_partitions: Iterable[Any]) -> Assignment:
    """Structs with `topic_id` and `partitions`, of a request or a record. A topic may come in pieces."""
    found: dict[bytes, frozenset[int]] = {}
    for each in topic_partitions:
        if each.partitions:
            found[each.topic_id] = found.get(each.topic_id, frozenset()).union(each.partitions)
    return found


def to_wire(assignment: Mapping[bytes, Iterable[int]], make: Any) -> list[Any]:
    """The same as structs, made by `make(topic_id=, partitions=)`; topics and partitions are sorted."""
    return [
        make(topic_id=topic_id, partitions=sorted(partitions))
        for topic_id, partitions in sorted(assignment.items())
    ]


def size(assignment: Mapping[bytes, frozenset[int]]) -> int:
    """Partitions in all."""
    return sum(map(len, assignment.values()))
