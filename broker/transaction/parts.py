"""The parts of a broker that have to do with transactions, wired together.

What needs the coordinator's code is imported when it is first used, so that a broker without transactions
starts without it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from broker.transaction.markers import MarkerWriter
from broker.transactions import Transactions
from replication.metadata.features import TRANSACTION_VERSION

if TYPE_CHECKING:
    from broker.config.broker_config import BrokerConfig
    from broker.coordinators import CountPartitions
    from broker.groups import Groups
    from broker.transaction.verifier import Verifier
    from coordinator.transaction.shard import Endings
    from replication.cluster.channel import Channels
    from replication.controller.door import TopicCreator
    from replication.delayed_produce import ProducePurgatory
    from replication.metadata.image import ImageHolder
    from replication.produce import WriteTurn
    from replication.replica_manager import ReplicaManager
    from runtime.system import Env


class TransactionParts:
    """`coordinator` looks after transactional ids, `markers` ends transactions on partitions led here."""

    def __init__(
        self, coordinator: Transactions, markers: MarkerWriter, make_verifier: Callable[[], Verifier]
    ) -> None:
        self.coordinator, self.markers = coordinator, markers
        self._make_verifier = make_verifier
        self._verifier: Verifier | None = None

    @property
    def verifier(self) -> Verifier:
        """Asks coordinators, here and elsewhere, about the transactions of batches that come."""
        if self._verifier is None:
            self._verifier = self._make_verifier()
        return self._verifier


def assemble(
    env: Env,
    config: BrokerConfig,
    holder: ImageHolder,
    creator: TopicCreator,
    replicas: ReplicaManager,
    turn: WriteTurn,
    groups: Groups,
    purgatory: ProducePurgatory,
    channels: Channels | None,
    count_partitions: CountPartitions | None = None,
) -> TransactionParts:
    """The parts of one broker; `channels` and `count_partitions` are None where it is alone."""
    node_id = config.node_id
    markers = MarkerWriter(replicas, groups, turn, purgatory, config.integer("request.timeout.ms"))

    def endings(coordinator: Transactions) -> Endings:
        from broker.transaction.endings import Endings

        return Endings(
            node_id, holder, markers, coordinator.manager, env.timer, env.tasks, channels, count_partitions
        )

    def version() -> int:
        return holder.current.features.level(TRANSACTION_VERSION)

    coordinator = Transactions(env, config, holder, creator, replicas, turn, endings, version)

    def verifier() -> Verifier:
        from broker.transaction.verifier import RetrySettings, Verifier

        retry = RetrySettings(
            config.integer("add.partitions.to.txn.retry.backoff.ms"),
            config.integer("add.partitions.to.txn.retry.backoff.max.ms"),
        )
        return Verifier(node_id, coordinator, env.timer, env.tasks, channels, retry)

    return TransactionParts(coordinator, markers, verifier)
