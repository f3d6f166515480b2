"""The settings of share groups on the data path: the broker's group.share.* keys, over which a group's own
configuration wins (resource type GROUP). Values of groups were checked when they were set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.config.durations import iso_duration_ms
from replication.share.ports import Limits, Reset

if TYPE_CHECKING:
    from broker.config.broker_config import BrokerConfig

GroupValue = Callable[[str, str], str | None]
"""(group id, key) to the text that is set for the group; None where nothing is."""

BY_DURATION = "by_duration:"


def nothing_set(group_id: str, name: str) -> str | None:
    """No group has settings of its own."""
    return None


class ShareGroupSettings:
    """Implements replication.share.ports.ShareSettings."""

    def __init__(self, config: BrokerConfig, group_value: GroupValue = nothing_set) -> None:
        self._defaults = Limits(
            config.integer("group.share.record.lock.duration.ms"),
            config.integer("group.share.delivery.count.limit"),
            config.integer("group.share.partition.max.record.locks"),
        )
        self._of_group = group_value

    def limits(self, group_id: str) -> Limits:
        """See the port."""
        lock_ms, deliveries, locks = self._defaults
        return Limits(
            self._integer(group_id, "share.record.lock.duration.ms", lock_ms),
            self._integer(group_id, "share.delivery.count.limit", deliveries),
            self._integer(group_id, "share.partition.max.record.locks", locks),
        )

    def reset(self, group_id: str) -> tuple[Reset, int]:
        """See the port. Kafka's default is latest."""
        text = (self._of_group(group_id, "share.auto.offset.reset") or Reset.LATEST.value).lower()
        if text.startswith(BY_DURATION):
            return Reset.BY_DURATION, iso_duration_ms(text.removeprefix(BY_DURATION).upper())
        return Reset(text), 0

    def read_committed(self, group_id: str) -> bool:
        """See the port."""
        return (self._of_group(group_id, "share.isolation.level") or "").lower() == "read_committed"

    def renew_allowed(self, group_id: str) -> bool:
        """See the port."""
        return (self._of_group(group_id, "share.renew.acknowledge.enable") or "true").lower() == "true"

    def _integer(self, group_id: str, name: str, default: int) -> int:
        text = self._of_group(group_id, name)
        return default if text is None else int(text)
