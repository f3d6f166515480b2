"""Which brokers hold a partition, and which of them are on their way in or out. Pure.

While a partition is reassigned its `replicas` are the target ones followed by those of the origin that are
not among them, `adding` those that are new, `removing` those that go (KIP-455). The order of the origin is
therefore not always known any more when a reassignment is cancelled; Kafka's is not either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from replication.metadata import payloads


@dataclass(slots=True, frozen=True)
class Assignment:
    """The replicas of one partition; the first one is its preferred leader."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def origin(self) -> tuple[int, ...]:
        """The replicas as they were before the reassignment."""
        return tuple(broker for broker in self.replicas if broker not in self.adding)

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas as they will be after it."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)

    @property
    def reassigning(self) -> bool:
        return bool(self.adding or self.removing)

    def towards(self, target: Sequence[int]) -> Assignment:
        """The assignment under which the origin becomes `target`, whatever was under way before."""
        origin = self.origin
        replicas = tuple(dict.fromkeys((*target, *origin)))
        return Assignment(
            replicas,
            tuple(broker for broker in replicas if broker not in origin),
            tuple(broker for broker in replicas if broker not in target),
        )

    def without(self, broker: int) -> Assignment:
        """The assignment after a replica has been removed for good."""
        return Assignment(
            tuple(other for other in self.replicas if other != broker),
            tuple(other for other in self.adding if other != broker),
            tuple(other for other in self.removing if other != broker),
        )


NOWHERE = Assignment(())
"""The assignment of a partition that the controller does not know."""


def assignments_in(stored: payloads.TopicPayload) -> dict[int, Assignment]:
    """The assignments in the node of a topic, by partition."""
    return {
        index: Assignment(replicas, stored.adding.get(index, ()), stored.removing.get(index, ()))
        for index, replicas in stored.assignment.items()
    }


def encode_assignments(topic_id: bytes, assignments: Mapping[int, Assignment]) -> bytes:
    """The value of a topic's node."""
    return payloads.encode_topic(
        payloads.TopicPayload(
            topic_id,
            {index: assignment.replicas for index, assignment in assignments.items()},
            {index: a.adding for index, a in assignments.items() if a.adding},
            {index: a.removing for index, a in assignments.items() if a.removing},
        )
    )
