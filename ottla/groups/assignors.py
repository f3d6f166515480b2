"""Who gets which partitions: what the leader of a classic group computes, as Java's consumers do by default.

`range` gives each subscriber of a topic a run of its partitions, in the order of instance ids, then member
ids; the first ones get one more. `cooperative-sticky` balances over all topics and leaves with a member what
it has; a partition that changes its owner is left out once, so that the old owner lets go of it before the
new one gets it (KIP-429): the next rebalance gives it. Racks are not looked at.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ottla.groups.admin import Place
from protocol import messages as m
from protocol.consumer_blobs import decode_subscription, encode_subscription

SUBSCRIPTION_VERSION = 3
NO_GENERATION = -1


@dataclass(slots=True)
class Subscriber:
    """A member as the leader sees it."""

    member_id: str
    instance_id: str | None
    topics: list[str]
    owned: list[Place] = field(default_factory=list)
    generation: int = NO_GENERATION


Assignment = dict[str, list[Place]]  # by member id
Assign = Callable[[Sequence[Subscriber], Mapping[str, int]], Assignment]


def range_assign(subscribers: Sequence[Subscriber], partition_counts: Mapping[str, int]) -> Assignment:
    """The range assignor's partitions of each member; topics without a count are left out."""
    assigned: Assignment = {each.member_id: [] for each in subscribers}
    for topic in sorted({topic for each in subscribers for topic in each.topics}):
        takers = in_order([each for each in subscribers if topic in each.topics])
        share, more = divmod(partition_counts.get(topic, 0), len(takers))
        first = 0
        for index, taker in enumerate(takers):
            end = first + share + (index < more)
            assigned[taker.member_id] += [(topic, partition) for partition in range(first, end)]
            first = end
    return assigned


def in_order(subscribers: Sequence[Subscriber]) -> list[Subscriber]:
    """Static members first, by their instance ids, then the others by their member ids."""
    return sorted(
        subscribers, key=lambda each: (each.instance_id is None, each.instance_id or "", each.member_id)
    )


def cooperative_sticky_assign(
    subscribers: Sequence[Subscriber], partition_counts: Mapping[str, int]
) -> Assignment:
    """The partitions of each member in this round, without those that another member still has."""
    owners = owners_of(subscribers, partition_counts)
    assigned = balanced(subscribers, partition_counts, owners)
    return {
        member_id: [place for place in places if owners.get(place, member_id) == member_id]
        for member_id, places in assigned.items()
    }


def owners_of(subscribers: Sequence[Subscriber], partition_counts: Mapping[str, int]) -> dict[Place, str]:
    """Who has what, from what members say; of two that claim a partition the younger generation's has it."""
    claims: dict[Place, tuple[int, str | None]] = {}
    for each in in_order(subscribers):
        for place in each.owned:
            topic, partition = place
            if topic not in each.topics or partition >= partition_counts.get(topic, 0):
                continue
            generation, _ = claims.get(place, (NO_GENERATION - 1, None))
            if each.generation > generation:
                claims[place] = (each.generation, each.member_id)
            elif each.generation == generation:
                claims[place] = (generation, None)
    return {place: owner for place, (_, owner) in claims.items() if owner is not None}


def balanced(
    subscribers: Sequence[Subscriber], partition_counts: Mapping[str, int], owners: Mapping[Place, str]
) -> Assignment:
    """All partitions given to subscribers of their topics, each as little loaded as that allows.

    No member that could take over a partition has two less than the one that has it.
    """
    takers = {
        topic: [each.member_id for each in in_order(subscribers) if topic in each.topics]
        for topic in sorted({topic for each in subscribers for topic in each.topics})
    }
    places = [(topic, partition) for topic in takers for partition in range(partition_counts.get(topic, 0))]
    holder = {place: owners[place] for place in places if place in owners}
    load = dict.fromkeys((each.member_id for each in subscribers), 0)
    for member_id in holder.values():
        load[member_id] += 1

    def lightest(place: Place) -> str:
        return min(takers[place[0]], key=load.__getitem__)

    for place in places:
        if place not in holder:
            holder[place] = lightest(place)
            load[holder[place]] += 1
    moved = True
    while moved:  # ends: each move lowers the sum of the squares of the loads
        moved = False
        for place in places:
            taker = lightest(place)
            if load[taker] + 1 < load[holder[place]]:
                load[holder[place]] -= 1
                load[taker] += 1
                holder[place] = taker
                moved = True
    assigned: Assignment = {each.member_id: [] for each in subscribers}
    for place in places:
        assigned[holder[place]].append(place)
    return assigned


#: In the order of preference of Java's consumer.
ASSIGNORS: dict[str, Assign] = {
    "range": range_assign,
    "cooperative-sticky": cooperative_sticky_assign,
}


def subscriber(member_id: str, instance_id: str | None, metadata: bytes) -> Subscriber:
    """A member from its subscription blob. Raises MalformedMessage."""
    subscription = decode_subscription(metadata)
    owned = [(each.topic, index) for each in subscription.owned_partitions for index in each.partitions]
    return Subscriber(member_id, instance_id, list(subscription.topics), owned, subscription.generation_id)


def subscription_blob(topics: Sequence[str], assignor: str, generation: int) -> bytes:
    """What a member tells the group's leader; it owns nothing, having given up all before it joins."""
    return encode_subscription(
        m.ConsumerProtocolSubscription(
            topics=sorted(topics),
            user_data=struct.pack(">i", generation) if assignor == "cooperative-sticky" else None,
            owned_partitions=[],
            generation_id=generation,
        ),
        SUBSCRIPTION_VERSION,
    )
