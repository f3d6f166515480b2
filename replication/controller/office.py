"""What every part of an active controller works with: the state, the ledger, and the way to the brokers.

An office lasts for one controller epoch. The order of work in it is always the same: decide on the state,
write to the ledger, change the state, send. A part never sends what the ledger has not taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from replication.controller.batches import ControlRequest, RequestBatch
from replication.controller.cluster_state import ControllerState, TopicPartition
from replication.controller.ledger import Ledger
from replication.metadata import payloads
from replication.metadata.configs import ConfigResource, ConfigType

UNCLEAN_KEY = "unclean.leader.election.enable"


@dataclass(slots=True, frozen=True)
class OfficeSettings:
    """Broker settings that decide what a controller does.

    `listener` names the inter-broker listener; `unclean` is the broker's own unclean.leader.election.enable;
    `imbalance_percent` is leader.imbalance.per.broker.percentage.
    """

    broker_id: int
    listener: str = "PLAINTEXT"
    delete_topics: bool = True
    unclean: bool = False
    auto_balance: bool = True
    imbalance_percent: int = 10
    imbalance_check_interval_ms: int = 300_000
    producer_id_block_size: int = 1000


class Outbox(Protocol):
    """Where requests to brokers leave; see control_channels.py."""

    def send(self, requests: Sequence[ControlRequest]) -> None: ...

    def drop(self, broker_id: int) -> None: ...


class Office:
    """See the module."""

    def __init__(
        self,
        state: ControllerState,
        ledger: Ledger,
        settings: OfficeSettings,
        outbox: Outbox,
        follow: Callable[[str], None],
    ) -> None:
        """`follow(path)` has the controller told of changes of a node, from then on."""
        self.state = state
        self.ledger = ledger
        self.settings = settings
        self.follow = follow
        self._outbox = outbox

    def batch(self) -> RequestBatch:
        return RequestBatch(self.state, self.settings.listener)

    async def send(self, batch: RequestBatch) -> None:
        self._outbox.send(await batch.requests())

    def drop(self, broker: int) -> None:
        """Send nothing more to a broker under the registration that it had."""
        self._outbox.drop(broker)

    async def update_metadata(
        self, brokers: Iterable[int], partitions: Iterable[TopicPartition] = ()
    ) -> None:
        """Send UpdateMetadata alone."""
        batch = self.batch()
        batch.update_metadata(brokers, partitions)
        await self.send(batch)

    async def unclean_allowed(self, topic: str) -> bool:
        """Whether a replica that is not in sync may lead a partition of the topic, by its configuration."""
        path = ConfigResource(ConfigType.TOPIC, topic).path
        node = await self.ledger.get(path)
        values = {} if node is None else payloads.decode_config(path, node.value)
        return allows_unclean(values) if UNCLEAN_KEY in values else self.settings.unclean


def allows_unclean(overrides: Mapping[str, str]) -> bool:
    """Whether a topic's own configuration says that unclean leaders may be elected."""
    return overrides.get(UNCLEAN_KEY, "").lower() == "true"
