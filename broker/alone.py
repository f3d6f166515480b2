"""A broker that is its whole cluster: its own controller over a store in its first log directory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from broker.config.rules import DynamicConfigRules
from protocol.uuids import ZERO_UUID
from replication.controller.adoption import LogOnDisk
from replication.controller.controller import Controller
from replication.replica_manager import ReplicaManager

if TYPE_CHECKING:
    from broker.membership import Parts
    from replication.controller.door import ControllerDoor, TopicCreator
    from replication.metadata.image import EndpointImage


class Alone:
    """See `broker.membership.Membership`."""

    cluster = None

    def __init__(self, parts: Parts) -> None:
        env, config = parts.env, parts.config
        self._config = config
        self._logs = parts.logs
        self.replicas = ReplicaManager(
            config.node_id,
            parts.holder,
            parts.logs,
            lambda _, overrides: parts.topic_configs.log_config(overrides),
        )
        self._controller = Controller(
            parts.store,
            parts.holder,
            parts.controller_settings(),
            DynamicConfigRules(config, parts.topic_configs),
            env.clock,
            env.random.fork("controller"),
            prepare=self.replicas.prepare,
            settle=self.replicas.settle,
            run_blocking=env.run_blocking,
        )
        self.controller: ControllerDoor = self._controller
        self.creator: TopicCreator = self._controller

    async def allocate_producer_ids(self) -> tuple[int, int]:
        return await self._controller.allocate_producer_ids()

    async def join(self, endpoints: Mapping[str, EndpointImage]) -> None:
        logs = self._logs
        await self._controller.start(
            rack=self._config.text("broker.rack") or None,
            endpoints=dict(endpoints),
            unclean=logs.unclean,
            lost=self._lost,
            on_disk=(
                LogOnDisk(
                    each.topic,
                    each.partition,
                    each.topic_id if each.topic_id != ZERO_UUID else None,
                    each.leader_epochs.latest_epoch,
                )
                for each in logs
            ),
            shared=logs.shared_with_kafka,
        )
        if not logs.shared_with_kafka:  # there they may be of topics that Kafka knows
            self.replicas.set_strays_aside()

    def _lost(self, topic: str, index: int) -> bool:
        """Whether a partition has no log although all log directories are here."""
        all_here = len(self._logs.online_dirs()) == len(self._logs.dirs)
        return all_here and self._logs.get(topic, index) is None

    def serve(self, look: Callable[[Callable[[], None]], None]) -> None:
        """There is nothing to look at before an append."""

    async def depart(self) -> None:
        """Nobody else could take over."""

    async def wind_down(self) -> None:
        """There is nobody else."""

    def dir_failed(self) -> None:
        """Nobody else is to know."""

    async def close(self) -> None:
        """Nothing runs."""
