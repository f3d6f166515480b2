"""Which partition of an internal topic keeps a key: group ids, transactional ids, share partitions.

The rule is Java's: String.hashCode over UTF-16 code units, made positive by an absolute value whose one
exception is -2^31, which becomes 0. Every broker and every release has to agree on it.
"""

from __future__ import annotations

from functools import lru_cache

from protocol.java_hash import java_hash

_SIGN = 1 << 31
_KEYS_REMEMBERED = 8192  # heartbeats and commits name the same groups again and again
_LENGTH_REMEMBERED = 256  # longer keys, which may take 128 KiB each, are hashed every time


def partition_for(key: str, partition_count: int) -> int:
    """The partition of the internal topic that keeps `key`; its leader is the coordinator."""
    assert partition_count > 0, "an internal topic has at least one partition"
    if len(key) <= _LENGTH_REMEMBERED:
        return _remembered(key, partition_count)
    return _partition_for(key, partition_count)


def _partition_for(key: str, partition_count: int) -> int:
    code = abs(java_hash(key))
    return 0 if code == _SIGN else code % partition_count


_remembered = lru_cache(_KEYS_REMEMBERED)(_partition_for)
