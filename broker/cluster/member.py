"""A broker that is one of several: registered in the store of the cluster, given its roles by the controller.

Start: the configurations are read from the store; the broker registers, which gives it its epoch; it stands
for election. From then on the controller knows it and sends what it leads and follows. When the session with
the store expires, the controller's office is over at once, the broker registers again under a new epoch, and
stands again.

Stop: the controller is asked to move leaderships away while everything is still served; then fetchers,
proposals and the controller end. Where the whole cluster stops, all controllers end first: nobody elects
leaders for brokers that go a moment later, and leaders and ISRs are found again as they were.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from broker.cluster.auto_topics import AutoTopics
from broker.cluster.channels import ChannelSettings, DialledChannels
from broker.cluster.services import ClusterServices
from broker.config.rules import DynamicConfigRules
from replication.cluster import isr_expiry, throttle
from replication.cluster.alter_partition import AlterPartitions, AlterSettings
from replication.cluster.control_fence import ControlFence
from replication.cluster.controller_client import ControllerClient
from replication.cluster.departure import DepartureSettings, depart
from replication.cluster.fetcher import FetcherSettings, World
from replication.cluster.fetchers import Fetchers
from replication.cluster.follower_session import Identity
from replication.cluster.leader_and_isr import LeaderAndIsr
from replication.cluster.preferred_replica import RACK_AWARE
from replication.cluster.producer_id_blocks import ProducerIdBlocks
from replication.cluster.replica_reads import ReplicaReads
from replication.cluster.replicas import ClusterReplicas
from replication.cluster.self_fence import SelfFence
from replication.cluster.stop_replica import StopReplica
from replication.cluster.store_changes import StoreChanges
from replication.cluster.stored_topics import StoredTopics
from replication.cluster.throttle import ReplicationQuota
from replication.cluster.update_metadata import UpdateMetadata
from replication.controller.cluster_admin import ClusterAdmin
from replication.controller.cluster_controller import ClusterController
from replication.controller.office import OfficeSettings
from replication.metadata import controller_payloads, paths
from replication.metadata.features import supported_levels
from replication.metadata.payloads import BrokerPayload
from replication.metadata.registration import Registration
from replication.metadata.retry import retried
from replication.metadata.store import SessionEvent, SessionExpired, StoreError, ensure_path
from runtime.tasks import TaskScope

if TYPE_CHECKING:
    from broker.config.broker_config import BrokerConfig
    from broker.membership import Parts
    from replication.controller.door import ControllerDoor, TopicCreator
    from replication.metadata.image import EndpointImage
    from runtime.network import Address

LOOK_EVERY_S: Final = 0.1

_log = logging.getLogger("ottla.cluster")


class Member:
    """See the module, and `broker.membership.Membership`."""

    def __init__(self, parts: Parts, inter_broker_listener: str) -> None:
        env, config, holder = parts.env, parts.config, parts.holder
        self._env, self._config, self._holder, self._store = env, config, holder, parts.store
        self._logs = parts.logs
        self._listener = inter_broker_listener
        self._tasks = TaskScope(env.loop, "cluster")
        self._endpoints: Mapping[str, EndpointImage] = {}
        self._closed = self._winding_down = False
        self._registration = Registration(parts.store, config.node_id, self._describe)
        self._channels = DialledChannels(env.network, self._channel_settings())
        self._clients: list[ControllerClient] = []
        self._alter = AlterPartitions(
            AlterSettings(config.node_id, timeout_s=config.integer("controller.socket.timeout.ms") / 1000),
            self._channels,
            self._controller_id,
            self._broker_epoch,
        )
        self.replicas = self._members = ClusterReplicas(
            config.node_id,
            holder,
            parts.logs,
            lambda _, overrides: parts.topic_configs.log_config(overrides),
            lag_max_ms=config.integer("replica.lag.time.max.ms"),
            now_ms=self._now_ms,
            propose=self._alter.propose,
        )
        self._fetchers = self._members.fetching = self._make_fetchers()
        self._members.ask_again = self.dir_failed
        self._office = ClusterController(
            parts.store,
            self._channels,
            office_settings(config, inter_broker_listener),
            env.clock,
            env.random.fork("controller"),
            TaskScope(env.loop, "controller"),
        )
        config.subscribe(
            lambda _: self._office.change_settings(office_settings(config, inter_broker_listener))
        )
        holder.subscribe(self._office.follow)
        self._changes = StoreChanges(parts.store, holder, self._now_ms)
        self._blocks = ProducerIdBlocks(
            self._client("producer ids"),
            config.node_id,
            self._broker_epoch,
            config.integer("request.timeout.ms") / 1000,
        )
        self._fence = SelfFence(
            lambda: parts.store.session_timeout_ms,
            self._now_ms,
            lambda: self._now_ms() - parts.store.contact_age_ms(),
            self._members.fence,
        )
        self.cluster = self._make_services(parts)
        self.cluster.leader_and_isr.on_roles.append(self._roles_came)
        self.controller: ControllerDoor = self.cluster.admin
        self.creator: TopicCreator = AutoTopics(self._client("topics"), holder)

    # Parts

    def _client(self, purpose: str) -> ControllerClient:
        """A line of its own to whoever is the controller."""
        client = ControllerClient(self._channels, self._controller_id, purpose)
        self._clients.append(client)
        return client

    def _channel_settings(self) -> ChannelSettings:
        return ChannelSettings(
            client_id=f"broker-{self._config.node_id}",
            software_version="0",
            address_of=self._address_of,
            timeout_s=self._config.integer("replica.socket.timeout.ms") / 1000,
        )

    def _make_fetchers(self) -> Fetchers:
        config = self._config
        quota = self._quota(throttle.FOLLOWER_REPLICAS, throttle.FOLLOWER_RATE)
        fetchers = Fetchers(
            self._channels,
            FetcherSettings(
                Identity(
                    config.node_id,
                    max_wait_ms=config.integer("replica.fetch.wait.max.ms"),
                    min_bytes=config.integer("replica.fetch.min.bytes"),
                    max_bytes=config.integer("replica.fetch.response.max.bytes"),
                    partition_max_bytes=config.integer("replica.fetch.max.bytes"),
                ),
                backoff_ms=config.integer("replica.fetch.backoff.ms"),
                fetchers_per_leader=config.integer("num.replica.fetchers"),
            ),
            World(self._now_ms, self._env.clock.now_ms, self._broker_epoch, self._env.timer, quota),
            self._tasks,
        )
        config.subscribe(lambda _: fetchers.resize(config.integer("num.replica.fetchers")))
        return fetchers

    def _make_services(self, parts: Parts) -> ClusterServices:
        config = self._config
        fence = ControlFence(self._broker_epoch)
        return ClusterServices(
            LeaderAndIsr(self._members, fence),
            StopReplica(self._members, fence),
            UpdateMetadata(self._holder, fence),
            ClusterAdmin(
                self._office,
                self._holder,
                parts.controller_settings(),
                DynamicConfigRules(config, parts.topic_configs),
                self._env.random.fork("topics"),
            ),
            self._changes,
            StoredTopics(parts.store),
            ReplicaReads(
                self._members.wanted_partition,
                lambda: self._holder.current.brokers,
                self._now_ms,
                self._quota(throttle.LEADER_REPLICAS, throttle.LEADER_RATE),
                to_nearest=config.text("replica.selector.class") == RACK_AWARE,
            ),
            self._channels,
        )

    def _quota(self, replicas_key: str, rate_key: str) -> ReplicationQuota:
        """A quota that follows the topics' lists and the broker's rate."""
        quota = ReplicationQuota(replicas_key, self._config.node_id)
        self._holder.subscribe(quota.follow)

        def follow_rate(_: frozenset[str]) -> None:
            quota.limit = self._config.integer(rate_key)

        self._config.subscribe(follow_rate)
        return quota

    # What the parts ask

    def _now_ms(self) -> int:
        return int(self._env.clock.monotonic() * 1000)

    def _broker_epoch(self) -> int:
        return self._registration.epoch

    def _controller_id(self) -> int:
        return self._holder.current.controller_id

    def _address_of(self, broker_id: int) -> Address | None:
        """As the active controller knows it, else as the metadata cache does."""
        endpoint = self._office.endpoint_of(broker_id, self._listener)
        if endpoint is None:
            broker = self._holder.current.brokers.get(broker_id)
            endpoint = None if broker is None else broker.endpoints.get(self._listener)
        return None if endpoint is None else (endpoint.host, endpoint.port)

    def _describe(self) -> BrokerPayload:
        return BrokerPayload(
            {name: (endpoint.host, endpoint.port) for name, endpoint in self._endpoints.items()},
            {name: endpoint.security_protocol for name, endpoint in self._endpoints.items()},
            self._config.text("broker.rack") or None,
            self._env.clock.now_ms(),
            supported_levels(),
            all(each.cordoned for each in self._logs.dirs),
        )

    # Life

    async def allocate_producer_ids(self) -> tuple[int, int]:
        return await self._blocks.allocate()

    async def join(self, endpoints: Mapping[str, EndpointImage]) -> None:
        self._endpoints = endpoints
        while not await self._enter():
            _log.warning("The session with the metadata store has ended before the broker was registered")
            await self._store.open()
        self._store.on_session(self._on_session)
        self._config.subscribe(self._cordons_changed)
        spawn = self._tasks.spawn
        spawn("configurations", self._changes.run())
        spawn("changes of ISRs", self._alter.run())
        lag_max_ms = self._config.integer("replica.lag.time.max.ms")
        spawn("lagging replicas", isr_expiry.expire(lambda: self._members, lag_max_ms))
        spawn("contact to the store", self._watch_contact())
        self._office.start()
        self._office.stand()

    async def _enter(self) -> bool:
        """Read what is stored and register; False if the session ended first."""
        try:
            await asyncio.gather(*(self._make_root(root) for root in paths.ROOTS))
            await self._changes.load()
            await self._registration.register()
        except SessionExpired:
            return False
        return True

    async def _make_root(self, root: str) -> None:
        await retried(self._store, lambda: ensure_path(self._store, root))

    def serve(self, look: Callable[[Callable[[], None]], None]) -> None:
        look(self._fence.look)

    def _on_session(self, event: SessionEvent) -> None:
        if event is SessionEvent.EXPIRED and not self._closed:
            self._fence.session_ended()
            self._tasks.spawn("registration", self._register_again())

    async def _register_again(self) -> None:
        _log.warning("The session with the metadata store has expired; registering anew")
        epoch = await self._registration.renew()
        _log.info("Broker %d is registered again, with epoch %d", self._config.node_id, epoch)
        self._roles_came()
        self._office.stand()

    def _roles_came(self) -> None:
        """The controller may have seen the registration before its epoch is known here, or after."""
        if self.cluster.leader_and_isr.told_epoch == self._registration.epoch:
            self._fence.roles_came()

    def _cordons_changed(self, names: frozenset[str]) -> None:
        if "cordoned.log.dirs" in names and not self._closed:
            self._tasks.spawn("cordons", self._tell_of_cordons())

    async def _tell_of_cordons(self) -> None:
        try:
            await self._registration.update()
        except StoreError as error:  # a new registration tells of them, too
            _log.info("The controller does not hear of cordons yet: %s", error)

    async def _watch_contact(self) -> None:
        while True:
            self._fence.look()
            await asyncio.sleep(LOOK_EVERY_S)

    async def depart(self) -> None:
        config = self._config
        registered = self._registration.epoch >= 0
        if self._winding_down or not registered or not config.flag("controlled.shutdown.enable"):
            return
        settings = DepartureSettings(
            config.integer("controlled.shutdown.max.retries"),
            config.integer("controlled.shutdown.retry.backoff.ms"),
        )
        self._members.departing = True
        client, leads = self._client("controlled shutdown"), self._members.leads_for_others
        await depart(client, config.node_id, self._broker_epoch, settings, self._is_last, leads)

    def _is_last(self) -> bool:
        return not any(other != self._config.node_id for other in self._holder.current.brokers)

    async def wind_down(self) -> None:
        self._winding_down = True
        await self._office.close()

    def dir_failed(self) -> None:
        if not self._closed:
            self._tasks.spawn("note of a failed directory", self._tell_of_directory())

    async def _tell_of_directory(self) -> None:
        note = controller_payloads.encode_log_dir_event(self._config.node_id)
        prefix = f"{paths.LOG_DIR_EVENTS}/log_dir_event_"
        try:
            await retried(self._store, lambda: self._store.create_sequential(prefix, note))
        except StoreError as error:
            _log.error("The controller does not hear of a failed log directory: %s", error)

    async def close(self) -> None:
        self._closed = True
        self._fetchers.close()
        self._changes.close()
        await self._office.close()
        for client in self._clients:
            await client.close()
        await self._tasks.aclose()


def office_settings(config: BrokerConfig, listener: str) -> OfficeSettings:
    """What a controller's decisions depend on, as the broker is configured now."""
    return OfficeSettings(
        config.node_id,
        listener=listener,
        delete_topics=config.flag("delete.topic.enable"),
        unclean=config.flag("unclean.leader.election.enable"),
        auto_balance=config.flag("auto.leader.rebalance.enable"),
        imbalance_percent=config.integer("leader.imbalance.per.broker.percentage"),
        imbalance_check_interval_ms=config.integer("leader.imbalance.check.interval.seconds") * 1000,
    )
