"""What handlers work on: one bundle for a broker, made once at start.

Owns nothing itself. A handler takes the current image once and uses it to the end of its work; whatever
changes the cluster goes through the controller.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker.net.big_bodies import BigBodies

if TYPE_CHECKING:
    from broker.cluster.services import ClusterServices
    from broker.config.broker_config import BrokerConfig
    from broker.config.group_configs import GroupConfigs
    from broker.config.topic_configs import TopicConfigs
    from broker.groups import Groups
    from broker.log_dir_mover import LogDirMover
    from broker.loggers import BrokerLoggers
    from broker.producer_ids import ProducerIds
    from broker.share.data_path import ShareDataPath
    from broker.share_state import ShareState
    from broker.transaction.parts import TransactionParts
    from replication.controller.door import ControllerDoor, TopicCreator
    from replication.metadata.image import ClusterImage, ImageHolder
    from replication.replica_manager import ReplicaManager
    from runtime.pieces import Pieces
    from runtime.system import Env
    from storage.log_manager import LogManager


@dataclass(slots=True)
class BrokerContext:
    """The parts of a running broker."""

    env: Env
    config: BrokerConfig
    topic_configs: TopicConfigs
    group_configs: GroupConfigs
    holder: ImageHolder
    controller: ControllerDoor
    creator: TopicCreator
    cluster: ClusterServices | None
    replicas: ReplicaManager
    logs: LogManager
    mover: LogDirMover
    producer_ids: ProducerIds
    loggers: BrokerLoggers
    groups: Groups
    share_state: ShareState
    share_data: ShareDataPath
    transactions: TransactionParts
    big_bodies: BigBodies = field(default_factory=BigBodies)

    @property
    def pieces(self) -> Pieces:
        """Whose turn it is to do a piece of long work."""
        return self.env.pieces

    @property
    def image(self) -> ClusterImage:
        """The cluster as it is now."""
        return self.holder.current

    @property
    def in_cluster(self) -> ClusterServices:
        """For handlers that only a broker in a cluster has."""
        assert self.cluster is not None, "served in a cluster only"
        return self.cluster

    @property
    def node_id(self) -> int:
        """This broker's id."""
        return self.config.node_id
