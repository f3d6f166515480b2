"""Topics as groups see them: subscriptions by name against what exists, and a hash that tells of changes.

The hash (KIP-1101) is of the subscribed topics that exist: name, id, partitions and their racks. It is
compared with what this broker wrote before; another kind of broker has another hash, which costs its groups
one assignment, as any change does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from struct import Struct

from coordinator.ports import TopicFacts, Topics

NO_TOPICS_HASH = 0
_COUNT = Struct(">i")


def existing_names(topics: Topics, subscriptions: Iterable[Iterable[str]]) -> set[str]:
    """The names in any of these that exist. What members subscribe to may be 40,000 names each, of topics
    that are not there: those are never gone through one by one.
    """
    known = frozenset(topics.names())
    found: set[str] = set()
    for names in subscriptions:
        found |= known.intersection(names)
    return found


def known_topics(topics: Topics, names: Iterable[str]) -> dict[bytes, TopicFacts]:
    """The topics of these names that exist, by id, in the order of their names."""
    known = {topic.name: topic for name in names if (topic := topics.topic(name)) is not None}
    return {known[name].topic_id: known[name] for name in sorted(known)}


def metadata_hash(topics: Topics, names: Iterable[str]) -> int:
    """A signed 64 bit number for the state of these topics; 0 where none of them exists."""
    digest = hashlib.blake2b(digest_size=8)
    known = known_topics(topics, names)
    if not known:
        return NO_TOPICS_HASH
    for topic in known.values():
        parts = [topic.topic_id, topic.name.encode()]
        parts += [rack.encode() for racks in topic.racks for rack in (*racks, "")]
        digest.update(_COUNT.pack(topic.partition_count))
        for part in parts:
            digest.update(_COUNT.pack(len(part)))
            digest.update(part)
    return int.from_bytes(digest.digest(), "big", signed=True)
