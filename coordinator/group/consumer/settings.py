"""What the consumer groups of a broker have in common, in Kafka's names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from coordinator.group.assignors import builtin
from coordinator.group.modern.target import Assignor

_DEFAULTS = {
    "consumer.session.timeout.ms": 45_000,
    "consumer.heartbeat.interval.ms": 5_000,
    "consumer.assignment.interval.ms": 1_000,
}


class MigrationPolicy(Enum):
    """group.consumer.migration.policy: which groups may change their protocol while they have members."""

    DISABLED = "disabled"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def upgrades(self) -> bool:
        return self in (MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def downgrades(self) -> bool:
        return self in (MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL)


def _default(group_id: str, name: str) -> int:
    return _DEFAULTS[name]


@dataclass(slots=True)
class ConsumerSettings:
    """`group_config(group, name)` gives what a group may have set for itself (KIP-848's group configs):
    consumer.session.timeout.ms, consumer.heartbeat.interval.ms, consumer.assignment.interval.ms.

    `enabled` tells whether the protocol may be used: group.coordinator.rebalance.protocols, group.version.
    The first assignor is the default. `regex_refresh_ms` is group.consumer.regex.refresh.interval.ms.
    """

    enabled: Callable[[], bool] = lambda: True
    group_config: Callable[[str, str], int] = _default
    max_size: int = 2**31 - 1
    assignors: dict[str, Assignor] = field(default_factory=builtin)
    migration: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    regex_refresh_ms: int = 600_000
    classic_max_size: int = 2**31 - 1
