"""One broker, put together: what is made in which order, and taken apart in the reverse one.

Start: the log directories are locked, so that no second broker touches them; the listeners are bound, so that
a taken port is noticed before anything is written (whoever connects now waits); the metadata store is opened,
the logs are loaded, the controller publishes the first image; then the waiting connections are served. No
answer leaves before everything is loaded: a client must never be told that its topic does not exist.

Stop: no new connections, the staged batches are written and answered, connections close, tasks end, the logs
are synced and closed with Kafka's clean marker, the store is closed, the directories are unlocked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from broker.adapters.metadata_store import is_member, open_store
from broker.alone import Alone
from broker.cleaner import Cleaner
from broker.config.checks import per_ip_limits
from broker.config.dynamic import DynamicConfigs
from broker.config.group_configs import GroupConfigs
from broker.config.topic_configs import TopicConfigs
from broker.context import BrokerContext
from broker.coordinators import CoordinatorLife
from broker.groups import Groups
from broker.handlers.fetch import FetchHandler
from broker.handlers.produce import ProduceHandler
from broker.handlers.table import handlers_of
from broker.log_dir_mover import LogDirMover
from broker.loggers import BrokerLoggers
from broker.membership import Membership, Parts
from broker.metadata_dir import CannotStart, MetadataDir
from broker.net.dispatch import Dispatcher
from broker.net.hub import Hub
from broker.net.idle import IdleSweep
from broker.net.limits import ConnectionLimits
from broker.net.listener import Listener
from broker.parallel_scans import parallel_scans
from broker.producer_ids import ProducerIds
from broker.share.data_path import ShareDataPath
from broker.share_state import ShareState
from broker.transaction.parts import TransactionParts
from broker.transaction.parts import assemble as assemble_transactions
from broker.upkeep import MISSING_LOGS_EVERY_MS, Upkeep
from protocol.api_keys import ApiKey
from protocol.uuids import uuid_to_text
from replication.delayed_produce import ProducePurgatory
from replication.fetch_sessions import FetchSessions
from replication.metadata.broker_ids import next_broker_id
from replication.metadata.cluster_id import ensure_cluster_id
from replication.metadata.features import GROUP_VERSION, SHARE_VERSION
from replication.metadata.image import EndpointImage, ImageHolder
from replication.metadata.sqlite_store import FILE_NAME
from replication.metadata.store import MetadataStore, StoreError
from runtime.stalls import StallWatch
from runtime.workers import Workers
from storage import names
from storage.log_config import LogConfig
from storage.log_dirs import KRAFT_META, ZOOKEEPER_META, LogDir, read_meta
from storage.log_manager import LogManager
from storage.segment_scan import scan_inline

if TYPE_CHECKING:
    from broker.config.load import LoadedConfig
    from runtime.system import Env

log = logging.getLogger("ottla.server")

BACKLOG = 1024  # Kafka's 50 makes a burst of clients wait a second for their second SYN

Address = tuple[str, str, int]
"""Listener name, host and port as clients are told."""


MakeStore: TypeAlias = "Callable[[LoadedConfig, Env], MetadataStore]"


def store_of_config(loaded: LoadedConfig, env: Env) -> MetadataStore:
    """The store that the configuration asks for."""
    return open_store(loaded.config, env)


class Broker:
    """See the module. `failed` is called when the last log directory has gone offline."""

    def __init__(
        self,
        loaded: LoadedConfig,
        env: Env,
        failed: Callable[[], None],
        make_store: MakeStore = store_of_config,
    ) -> None:
        self._env = env
        self._loaded = loaded
        self.config = config = loaded.config
        self._failed = failed
        self._make_store = make_store
        self._topic_configs = TopicConfigs(config)
        self.holder = ImageHolder()
        self.logs = LogManager(
            env.files,
            env.clock,
            env.random.fork("storage"),
            config.log_dirs,
            lambda _: self._default_log_config(),
        )
        self._default_config: LogConfig | None = None
        self._store: MetadataStore | None = None
        self._membership: Membership | None = None
        self._mover: LogDirMover | None = None
        self._metadata_dir: MetadataDir | None = None
        self._groups: Groups | None = None
        self._share_state: ShareState | None = None
        self._transactions: TransactionParts | None = None
        self._coordinators: list[CoordinatorLife[Any]] = []
        self._share_data: ShareDataPath | None = None
        self._listeners: list[Listener] = []
        self.hub = Hub(
            env,
            ConnectionLimits(
                config.integer("max.connections"),
                config.integer("max.connections.per.ip"),
                per_ip_limits(config),
            ),
            config.integer("socket.request.max.bytes"),
        )
        config.subscribe(self._limits_changed)
        self._limits_changed(frozenset())
        self._cleaner = Cleaner(env, config, self.logs)
        self._stalls = StallWatch(env.loop, env.clock.worked)
        self._idle = IdleSweep(self.hub, config.integer("connections.max.idle.ms"))
        self.addresses: Sequence[Address] = ()

    def _limits_changed(self, names: frozenset[str]) -> None:
        """Limits of connections take a dynamic value at once."""
        limits = self.hub.limits
        limits.max_connections = self.config.integer("max.connections")
        limits.per_ip = self.config.integer("max.connections.per.ip")
        limits.per_ip_overrides = per_ip_limits(self.config)
        producers = self.logs.producer_settings
        producers.expiration_ms = self.config.integer("producer.id.expiration.ms")
        producers.verify = self.config.flag("transaction.partition.verification.enable")

    def _default_log_config(self) -> LogConfig:
        """For loading; the overrides of each topic come with the image."""
        if self._default_config is None:
            self._default_config = self._topic_configs.log_config({})
        return self._default_config

    async def start(self) -> None:
        """Until this returns nothing was answered. Raises CannotStart, StorageError, StoreError, OSError."""
        self.logs.on_failure = self._dir_failed
        self.logs.lock()
        if self._make_store is store_of_config and not is_member(self.config):
            path = self.config.metadata_dir
            self._metadata_dir = MetadataDir(self._env.files, path, self.logs.dirs, FILE_NAME)
            self._metadata_dir.open()
        node_id = self._remembered_node_id()
        endpoints = await self._bind()
        store = self._store = self._make_store(self._loaded, self._env)
        await store.open()
        if node_id is None and self.config.configured_node_id is None and is_member(self.config):
            node_id = await next_broker_id(store, self.config.integer("reserved.broker.max.id"))
        self.config.settle_node_id(node_id)
        meta = next((d.meta for d in self.logs.dirs if d.meta is not None and d.meta.cluster_id), None)
        proposed = meta.cluster_id if meta is not None else uuid_to_text(self._env.random.uuid())
        cluster_id = await ensure_cluster_id(store, proposed)
        self.holder.publish(replace(self.holder.current, cluster_id=cluster_id))
        # As Kafka's brokers have it on either side, so that they can take the directories over.
        meta_version = ZOOKEEPER_META if self.config.text("zookeeper.connect") else KRAFT_META
        self.logs.open(cluster_id, self.config.node_id, meta_version)
        if self._metadata_dir is not None:
            self._metadata_dir.check(cluster_id, self.config.node_id, self._env.random)
        await self._load_logs()
        membership = self._assemble(store)
        await membership.join(endpoints)
        self._stalls.start()
        for coordinator in self._coordinators:
            await coordinator.start()
        upkeep = Upkeep(self._env, self.config, self.logs)
        upkeep.start()
        upkeep.also("logs that found no room", MISSING_LOGS_EVERY_MS, membership.replicas.make_missing)
        if self._mover is not None:
            self._mover.resume()
        self._cleaner.start()
        self._idle.start()
        membership.serve(self.hub.turn.look_first)
        for listener in self._listeners:
            await listener.serve()

    async def _load_logs(self) -> None:
        """With worker processes for what an unclean stop leaves to read; they end with it."""
        threads = self.config.integer("num.recovery.threads.per.data.dir") * len(self.logs.dirs)
        count = min(threads, self._env.processors)
        workers = Workers(count)
        try:
            scans = parallel_scans(workers, count, self._env.loop, scan_inline(self._env.files))
            await self._env.run_blocking(self.logs.load, scans)
        finally:
            await workers.aclose()

    def _remembered_node_id(self) -> int | None:
        """What the data directories remember: a broker without a configured id keeps it."""
        remembered: int | None = None
        for directory in self.logs.dirs:
            if not directory.offline:
                directory.meta = read_meta(self._env.files, directory.path_of(names.META_PROPERTIES))
                if directory.meta is not None and remembered is None:
                    remembered = directory.meta.node_id
        return remembered

    async def _bind(self) -> dict[str, EndpointImage]:
        """Bind all listeners; the endpoints that clients are told, with the ports that were really taken."""
        config = self.config
        backlog = BACKLOG
        if config.is_set("socket.listen.backlog.size"):
            backlog = config.integer("socket.listen.backlog.size")
        bound_ports: dict[str, int] = {}
        for wanted in self._loaded.listeners.bound:
            port = wanted.port
            for number, host in enumerate(wanted.bind_hosts):
                listener = Listener(self.hub, wanted.name, host, port)
                try:
                    await listener.open(
                        backlog,
                        config.integer("socket.send.buffer.bytes"),
                        config.integer("socket.receive.buffer.bytes"),
                    )
                except OSError as error:
                    if number:  # the machine has no IPv6
                        log.info("Not listening on %s port %d: %s", host, port, error)
                        continue
                    raise CannotStart(
                        f"Listener {wanted} cannot be opened: {error}. "
                        "Stop what uses the port, or set another one in listeners."
                    ) from error
                port = listener.port
                self._listeners.append(listener)
            bound_ports[wanted.name] = port
        advertised = self._loaded.listeners.resolve(bound_ports, self._env.network.host_name())
        self.addresses = [(each.name, each.host, each.port) for each in advertised]
        return {each.name: EndpointImage(each.host, each.port, each.protocol) for each in advertised}

    def _assemble(self, store: MetadataStore) -> Membership:
        """Everything that needs no waiting, wired together."""
        env, config, topic_configs, holder = self._env, self.config, self._topic_configs, self.holder
        dynamic = DynamicConfigs(config)
        dynamic.follow(holder)  # before the replicas: their logs' settings build on the broker's values
        membership = self._membership = self._member(
            Parts(env, config, topic_configs, holder, self.logs, store)
        )
        replicas, creator = membership.replicas, membership.creator
        replicas.on_change(self.hub.forget_shapes)
        self._mover = LogDirMover(env, config, self.logs, replicas, self._cleaner.manager)
        dynamic.refresh_logs = replicas.refresh_configs
        self._groups = Groups(env, config, holder, creator, replicas, self.hub.turn)
        self._share_state = ShareState(env, config, holder, creator, replicas, self.hub.turn)
        purgatory = ProducePurgatory(env.timer)
        cluster = membership.cluster
        channels = None if cluster is None else cluster.channels
        counting = None if cluster is None else cluster.stored_topics.partition_count
        self._transactions = assemble_transactions(
            env, config, holder, creator, replicas, self.hub.turn, self._groups, purgatory, channels, counting
        )
        self._coordinators = [self._groups, self._share_state, self._transactions.coordinator]
        for coordinator in self._coordinators:
            coordinator.count_partitions = counting
        self._groups.share_persister = self._share_state.persister
        self._groups.consumer_feature = lambda: holder.current.features.level(GROUP_VERSION) > 0
        group_configs = GroupConfigs(config, holder)
        self._share_data = ShareDataPath(
            env,
            config,
            replicas,
            self._share_state.persister,
            enabled=lambda: holder.current.features.level(SHARE_VERSION) > 0,
            group_value=group_configs.own_text,
        )
        self.hub.departures.append(self._share_data.connection_gone)
        holder.subscribe(self._share_data.follow)
        context = BrokerContext(
            env=env,
            config=config,
            topic_configs=topic_configs,
            group_configs=group_configs,
            holder=holder,
            controller=membership.controller,
            creator=creator,
            cluster=membership.cluster,
            replicas=replicas,
            logs=self.logs,
            mover=self._mover,
            producer_ids=ProducerIds(membership.allocate_producer_ids, env.tasks.spawn),
            loggers=BrokerLoggers(),
            groups=self._groups,
            share_state=self._share_state,
            share_data=self._share_data,
            transactions=self._transactions,
        )
        self.hub.dispatcher = self._dispatcher(context, purgatory)
        return membership

    def _dispatcher(self, context: BrokerContext, purgatory: ProducePurgatory) -> Dispatcher:
        sessions = FetchSessions(
            context.replicas.wanted_partition,
            self._env.random.fork("fetch sessions"),
            self.config.integer("max.incremental.fetch.session.cache.slots"),
        )
        fetches = FetchHandler(context, sessions)
        fetches.reads = None if context.cluster is None else context.cluster.reads
        produces = ProduceHandler(context, purgatory)
        return Dispatcher(context, handlers_of(context), {ApiKey.PRODUCE: produces, ApiKey.FETCH: fetches})

    def _member(self, parts: Parts) -> Membership:
        if not is_member(self.config):
            return Alone(parts)
        from broker.cluster.member import Member  # a broker alone needs nothing of it

        return Member(parts, self._loaded.listeners.inter_broker_name)

    def _dir_failed(self, directory: LogDir) -> None:
        """Called on the thread that met the failure."""
        self._env.loop.call_soon_threadsafe(self._stop_serving, directory)

    def _stop_serving(self, directory: LogDir) -> None:
        self.logs.stop_serving(directory)
        if self._membership is not None:
            self._membership.replicas.directory_failed()
        if not self.logs.online_dirs():
            paths = ", ".join(each.path for each in self.logs.dirs)
            log.critical("Shutdown broker because all log dirs in %s have failed", paths)
            self._failed()
        elif self._metadata_dir is not None and self._metadata_dir.failed(directory):
            log.critical("Shutdown broker because the metadata log dir %s has failed", directory.path)
            self._failed()
        elif self._membership is not None:
            self._membership.dir_failed()

    async def wind_down(self) -> None:
        """The whole cluster is about to stop: call it on all brokers, then `stop` on all."""
        if self._membership is not None:
            await self._membership.wind_down()

    async def stop(self) -> None:
        """In good order, also from a start that did not get far."""
        if self._membership is not None:
            await self._membership.depart()
        for listener in self._listeners:
            listener.close()
        self._idle.stop()
        self._stalls.stop()
        held = self._stalls.take()
        log.info(
            "The event loop was held up for at most %d ms, of which it worked %d ms",
            held.seconds * 1000, held.worked * 1000,
        )  # fmt: skip
        self.hub.turn.flush()
        if self._share_data is not None:
            self._share_data.close()
        if self._coordinators:
            for coordinator in self._coordinators:
                coordinator.close()
            await asyncio.sleep(0)  # the handlers that waited for it put their answers
        for connection in list(self.hub.connections):
            connection.shut()
        if self._membership is not None:
            await self._membership.close()
        await self._env.tasks.aclose()
        await self._env.blocking.settled()  # what cancelled tasks began goes on, and must not meet the rest
        self.hub.turn.flush()
        if self.logs.online_dirs() and self._opened():
            await self._env.run_blocking(self.logs.close)
        else:
            self.logs.abandon()
        if self._store is not None:
            try:
                await self._store.close()
            except StoreError as error:  # what it leaves behind goes with the next start
                log.warning("The metadata store was not closed in good order: %s", error)
        if self._metadata_dir is not None:
            self._metadata_dir.close()

    def _opened(self) -> bool:
        return any(directory.loaded for directory in self.logs.dirs)
