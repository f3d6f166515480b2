"""What members subscribe to: names, and what their regular expressions have matched so far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coordinator.group.consumer.member import Member
from coordinator.group.consumer.tables import NOT_RESOLVED, Resolved
from coordinator.ports import Topics


def topics_of(member: Member, regexes: Mapping[str, Resolved]) -> frozenset[str]:
    """The names of all topics of a member."""
    names = frozenset(member.topics)
    return names | regexes.get(member.regex, NOT_RESOLVED).topics if member.regex else names


def subscribed_topics(members: Iterable[Member], regexes: Mapping[str, Resolved]) -> set[str]:
    """The names of all topics that any member subscribes to."""
    names: set[str] = set()
    for topics in dict.fromkeys(member.topics for member in members):
        names.update(topics)
    for regex in subscribed_regexes(members):
        names |= regexes.get(regex, NOT_RESOLVED).topics
    return names


def subscribed_regexes(members: Iterable[Member]) -> dict[str, None]:
    """The regular expressions of all members, each once."""
    return dict.fromkeys(member.regex for member in members if member.regex)


def topic_ids_of(member: Member, regexes: Mapping[str, Resolved], topics: Topics) -> frozenset[bytes]:
    """The ids of a member's topics that exist."""
    found = (topics.topic(name) for name in topics_of(member, regexes))
    return frozenset(topic.topic_id for topic in found if topic is not None)
