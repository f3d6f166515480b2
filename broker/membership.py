"""How a broker belongs to its cluster: the port between the broker's life and the two ways of being a member.

`broker.alone` is a broker that is the whole cluster, `broker.cluster.member` one of several.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from replication.controller.outcomes import ControllerSettings

if TYPE_CHECKING:
    from broker.cluster.services import ClusterServices
    from broker.config.broker_config import BrokerConfig
    from broker.config.topic_configs import TopicConfigs
    from replication.controller.door import ControllerDoor, TopicCreator
    from replication.metadata.image import EndpointImage, ImageHolder
    from replication.metadata.store import MetadataStore
    from replication.replica_manager import ReplicaManager
    from runtime.system import Env
    from storage.log_manager import LogManager


@dataclass(slots=True, frozen=True)
class Parts:
    """What a membership is made of."""

    env: Env
    config: BrokerConfig
    topic_configs: TopicConfigs
    holder: ImageHolder
    logs: LogManager
    store: MetadataStore

    def controller_settings(self) -> ControllerSettings:
        """What topics of this broker's own controller are made by."""
        config = self.config
        return ControllerSettings(
            node_id=config.node_id,
            num_partitions=config.integer("num.partitions"),
            default_replication_factor=config.integer("default.replication.factor"),
            is_cordoned=lambda: all(each.cordoned for each in self.logs.dirs),
        )


class Membership(Protocol):
    """`cluster` is what the handlers of requests between brokers work with, None for a broker alone."""

    @property
    def replicas(self) -> ReplicaManager: ...

    @property
    def controller(self) -> ControllerDoor: ...

    @property
    def creator(self) -> TopicCreator: ...

    @property
    def cluster(self) -> ClusterServices | None: ...

    async def allocate_producer_ids(self) -> tuple[int, int]:
        """A block of ids that is this broker's alone: the first one, and how many."""

    async def join(self, endpoints: Mapping[str, EndpointImage]) -> None:
        """Publish the first image. Nothing is served yet. Raises StoreError and what stops the start."""

    def serve(self, look: Callable[[Callable[[], None]], None]) -> None:
        """Requests are served from now on. What is given to `look` is called before a turn's first append."""

    async def depart(self) -> None:
        """The broker is about to stop, and still serves: give away what others can take over."""

    async def wind_down(self) -> None:
        """All brokers of the cluster are about to stop: nobody takes over from `depart` on, or elects."""

    def dir_failed(self) -> None:
        """A log directory has gone offline, and others are left."""

    async def close(self) -> None:
        """End what runs. The store is closed later, by its owner."""
