"""The transaction coordinator of this broker, over `__transaction_state`. Its life is `broker.coordinators`'.

Every transaction.abort.timed.out.transaction.cleanup.interval.ms transactions that have been open for too
long are aborted, every transaction.remove.expired.transaction.cleanup.interval.ms ids that nobody has used
are forgotten. Which version of transactions clients may use is the finalized feature transaction.version.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from broker.coordinators import CoordinatorLife, Names
from replication.controller.outcomes import NewTopic

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.config.broker_config import BrokerConfig
    from coordinator.transaction.manager import TransactionManager
    from coordinator.transaction.shard import Endings
    from replication.controller.door import TopicCreator
    from replication.metadata.image import ImageHolder, TopicImage
    from replication.produce import WriteTurn
    from replication.replica_manager import ReplicaManager
    from runtime.pieces import Steps
    from runtime.system import Env

TOPIC: Final = "__transaction_state"


class Transactions(CoordinatorLife["TransactionManager"]):
    """See the module. A key is a transactional id."""

    topic = TOPIC
    modules = ("coordinator.transaction.manager", "coordinator.transaction.shard")
    names = Names(
        who="Transactional ids",
        partitions="transaction.state.log.num.partitions",
        load_buffer="transaction.state.log.load.buffer.size",
    )

    def __init__(
        self,
        env: Env,
        config: BrokerConfig,
        holder: ImageHolder,
        creator: TopicCreator,
        replicas: ReplicaManager,
        turn: WriteTurn,
        make_endings: Callable[[Transactions], Endings],
        version: Callable[[], int],
    ) -> None:
        """`version` tells the finalized level of transaction.version."""
        self._make_endings, self._version = make_endings, version
        super().__init__(env, config, holder, creator, replicas, turn)

    def _new_topic(self) -> NewTopic:
        config = self._config
        return NewTopic(
            TOPIC,
            config.integer("transaction.state.log.num.partitions"),
            config.integer("transaction.state.log.replication.factor"),
            configs=(
                ("cleanup.policy", "compact"),
                ("compression.type", "uncompressed"),
                ("segment.bytes", str(config.integer("transaction.state.log.segment.bytes"))),
                ("min.insync.replicas", str(config.integer("transaction.state.log.min.isr"))),
                ("unclean.leader.election.enable", "false"),
            ),
        )

    def _make(self) -> TransactionManager:
        from broker.adapters.steady_clock import SteadyClock
        from coordinator.runtime import Context
        from coordinator.transaction.manager import TransactionManager
        from coordinator.transaction.shard import ShardSettings, TransactionShard

        clock = SteadyClock(self._env.clock)
        endings = self._make_endings(self)
        settings = ShardSettings(
            endings,
            self._version,
            self._config.integer("transactional.id.expiration.ms"),
        )

        def make_shard(context: Context) -> TransactionShard:
            return TransactionShard(context, clock, settings)

        return TransactionManager(self._runtime(clock, make_shard), endings)

    def _begin(self, manager: TransactionManager) -> None:
        config = self._config
        abort_ms = config.integer("transaction.abort.timed.out.transaction.cleanup.interval.ms")
        forget_ms = config.integer("transaction.remove.expired.transaction.cleanup.interval.ms")
        self._over_partitions("abort of transactions that take too long", abort_ms, manager.abort_timed_out)
        self._over_partitions("expiry of transactional ids", forget_ms, manager.forget_expired)

    def _over_partitions(self, name: str, interval_ms: int, work: Callable[[int], Steps[None]]) -> None:
        """The work of each partition, in pieces: there may be very many ids."""

        async def repeat() -> None:
            while True:
                await asyncio.sleep(interval_ms / 1000)
                for partition in self.manager().runtime.active_partitions():
                    for _ in work(partition):
                        await asyncio.sleep(0)

        self._env.tasks.spawn(name, repeat())

    def _topics_deleted(self, manager: TransactionManager, deleted: list[TopicImage]) -> None:
        """Their markers count as written when they are sent the next time."""
