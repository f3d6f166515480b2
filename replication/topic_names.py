"""What a topic may be called (Kafka's Topic class): checked before any file name or node of the metadata tree
is built.

1 to 249 characters of [a-zA-Z0-9._-], neither `.` nor `..`. Two names that become equal when `.` turns into
`_` collide, because metrics cannot tell them apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_NAME_LENGTH = 249

INTERNAL_TOPICS = frozenset(("__consumer_offsets", "__transaction_state", "__share_group_state"))
"""Written by coordinators only; hidden from pattern subscriptions of clients."""

METADATA_TOPIC = "__cluster_metadata"
"""Kafka keeps its own metadata under this name; nobody may create it."""

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+\Z")


def refusal_of(name: str) -> str | None:
    """Why `name` is no topic name, in Kafka's words, or None when it is one. The error code is 17."""
    if not name:
        return "Topic name is invalid: the empty string is not allowed"
    if name in (".", ".."):
        return f"Topic name is invalid: '{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        return (
            f"Topic name is invalid: the length of '{name}' is longer than "
            f"the max allowed length {MAX_NAME_LENGTH}"
        )
    if not _LEGAL.match(name):
        return (
            f"Topic name is invalid: '{name}' contains one or more characters other than "
            "ASCII alphanumerics, '.', '_' and '-'"
        )
    return None


def is_internal(name: str) -> bool:
    """Whether only the broker itself writes to this topic."""
    return name in INTERNAL_TOPICS


class Collisions:
    """Answers which topic a new name would collide with. The index is made when the first name needs it."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = list(names)
        self._folded: dict[str, str] | None = None

    def with_name(self, name: str) -> str | None:
        """An existing name that collides with `name` (equal names are no matter of this class), or None."""
        if "." not in name and "_" not in name:
            return None
        if self._folded is None:
            self._folded = {existing.replace(".", "_"): existing for existing in self._names}
        return self._folded.get(name.replace(".", "_"))

    def add(self, name: str) -> None:
        """A topic was created."""
        self._names.append(name)
        if self._folded is not None:
            self._folded[name.replace(".", "_")] = name
