"""A broker without network for tests of handlers: real controller, replica manager and storage, a metadata
store in memory, and every message through the codec of its version in both directions.

    with HandlerBroker(tmp_path) as broker:
        broker.call(m.MetadataRequest(topics=None), 12)

Started again on the same folder with the same `tree`, it is the same broker after a restart.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from broker.config.broker_config import BrokerConfig
from broker.config.dynamic import DynamicConfigs
from broker.config.group_configs import GroupConfigs
from broker.config.rules import DynamicConfigRules
from broker.config.topic_configs import TopicConfigs
from broker.context import BrokerContext
from broker.groups import Groups
from broker.handlers.later import Later
from broker.handlers.request import Request
from broker.handlers.table import HANDLERS
from broker.log_dir_mover import LogDirMover
from broker.loggers import BrokerLoggers
from broker.net.turn import Turn
from broker.producer_ids import ProducerIds
from broker.share.data_path import ShareDataPath
from broker.share_state import ShareState
from broker.transaction.parts import assemble
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.headers import RequestHeader
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from protocol.records.check import check_produced_batch
from protocol.uuids import uuid_to_text
from replication.controller.controller import Controller
from replication.controller.outcomes import ControllerSettings
from replication.delayed_produce import ProducePurgatory
from replication.metadata.cluster_id import ensure_cluster_id
from replication.metadata.image import EndpointImage, ImageHolder
from replication.metadata.memory_store import MemoryStore, MemoryTree
from replication.replica_manager import ReplicaManager
from runtime.system import Env, production_env
from storage.cleaner.manager import CleanerManager
from storage.log_manager import LogManager

ENDPOINTS = {"PLAINTEXT": EndpointImage("broker.test", 9092), "EXTERNAL": EndpointImage("public.test", 19092)}
TOPIC_TIMEOUT_MS = 60_000  # longer than any test stands still
ANSWER_TIMEOUT_S = 60
SINGLE_BROKER = {
    "node.id": "1",
    "broker.id": "1",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
}


@dataclass(slots=True, frozen=True)
class Posted:
    """A request that a handler has."""

    key: ApiKey
    version: int
    answered: asyncio.Future[Any]


class HandlerBroker:
    """See the module. `ctx` is what handlers get."""

    def __init__(
        self,
        path: Path,
        static: Mapping[str, str] | None = None,
        tree: MemoryTree | None = None,
        log_dirs: int = 1,
    ) -> None:
        self.tree = tree or MemoryTree()
        self.config = BrokerConfig({**SINGLE_BROKER, **(static or {})})
        self.paths = [str(path / f"data{number}") for number in range(log_dirs)]
        self.runner = asyncio.Runner()
        self.ctx: BrokerContext

    def __enter__(self) -> HandlerBroker:
        self.runner.run(self._start())
        return self

    async def _start(self) -> None:
        env = production_env(asyncio.get_running_loop())
        self.store = MemoryStore(self.tree)
        await self.store.open()
        cluster_id = await ensure_cluster_id(self.store, uuid_to_text(env.random.uuid()))
        holder = ImageHolder()
        topics = TopicConfigs(self.config)
        dynamic = DynamicConfigs(self.config)
        logs = LogManager(env.files, env.clock, env.random, self.paths, lambda topic: topics.log_config({}))
        logs.producer_settings.verify = self.config.flag("transaction.partition.verification.enable")
        logs.open(cluster_id, 1)
        logs.load()
        dynamic.follow(holder)
        replicas = ReplicaManager(1, holder, logs, lambda topic, overrides: topics.log_config(overrides))
        dynamic.refresh_logs = replicas.refresh_configs
        controller = Controller(
            self.store,
            holder,
            ControllerSettings(
                1,
                self.config.integer("num.partitions"),
                self.config.integer("default.replication.factor"),
            ),
            DynamicConfigRules(self.config, topics),
            env.clock,
            env.random,
            prepare=replicas.prepare,
            settle=replicas.settle,
            run_blocking=env.run_blocking,
        )
        turn = self._turn(env)
        groups = Groups(env, self.config, holder, controller, replicas, turn)
        share_state = ShareState(env, self.config, holder, controller, replicas, turn)
        groups.share_persister = share_state.persister
        transactions = assemble(
            env, self.config, holder, controller, replicas, turn, groups, ProducePurgatory(env.timer), None
        )
        await controller.start(rack="r1", endpoints=dict(ENDPOINTS), unclean=logs.unclean)
        await groups.start()
        await share_state.start()
        await transactions.coordinator.start()
        group_configs = GroupConfigs(self.config, holder)
        self.ctx = BrokerContext(
            env=env,
            config=self.config,
            topic_configs=topics,
            group_configs=group_configs,
            holder=holder,
            controller=controller,
            creator=controller,
            cluster=None,
            replicas=replicas,
            logs=logs,
            mover=LogDirMover(env, self.config, logs, replicas, CleanerManager(logs, env.clock.now_ms)),
            producer_ids=ProducerIds(controller.allocate_producer_ids, env.tasks.spawn),
            loggers=BrokerLoggers(),
            groups=groups,
            share_state=share_state,
            share_data=ShareDataPath(
                env, self.config, replicas, share_state.persister, group_value=group_configs.own_text
            ),
            transactions=transactions,
        )

    def _turn(self, env: Env) -> Turn:
        """What writes the batches of coordinators."""
        return Turn(env.loop, env.clock, lambda _: None)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.runner.run(self._stop())
        self.runner.close()

    async def _stop(self) -> None:
        self.ctx.transactions.coordinator.close()
        self.ctx.groups.close()
        self.ctx.share_data.close()
        self.ctx.share_state.close()
        self.ctx.logs.close()
        await self.store.close()
        await self.ctx.env.aclose()

    def call(self, body: Any, version: int, listener: str = "PLAINTEXT") -> Any:
        """The handler's answer, as a client of that version would read it."""
        return self.answer(self.post(body, version, listener))

    def post(self, body: Any, version: int, listener: str = "PLAINTEXT") -> Posted:
        """Hand a request to its handler; `answer` waits for what it says."""
        key = ApiKey(type(body).API_KEY)
        handler = HANDLERS[key]
        assert handler.min_version <= version <= handler.max_version
        decoded, _ = m.request_class(key).decode(version, body.encode(version))
        request = Request(RequestHeader(key, version, 1, "test"), decoded, listener, "127.0.0.1", 50000)
        return Posted(key, version, self.runner.run(self._begin(handler.handle, request)))

    async def _begin(self, handle: Any, request: Request[Any]) -> asyncio.Future[Any]:
        response = handle(self.ctx, request)
        if inspect.iscoroutine(response):
            return asyncio.ensure_future(response)
        answered = self.ctx.env.loop.create_future()
        if isinstance(response, Later):
            response.then(answered.set_result)
        else:
            answered.set_result(response)
        return answered

    def answer(self, posted: Posted) -> Any:
        """The answer to a posted request, when it is there."""
        response = self.runner.run(self._wait(posted.answered))
        answer, _ = m.response_class(posted.key).decode(posted.version, response.encode(posted.version))
        return answer

    async def _wait(self, answered: asyncio.Future[Any]) -> Any:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            return await answered

    def is_answered(self, posted: Posted) -> bool:
        """Whether the answer is there now."""
        self.runner.run(asyncio.sleep(0))
        return posted.answered.done()

    def create(
        self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> m.CreateTopicsResponse.CreatableTopicResult:
        """Create a topic and insist on it."""
        request = m.CreateTopicsRequest
        topic = request.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[
                request.CreatableTopicConfig(name=key, value=value) for key, value in (configs or {}).items()
            ],
        )
        answer = self.call(request(topics=[topic], timeout_ms=TOPIC_TIMEOUT_MS), 7)
        assert answer.topics[0].error_code == 0, answer
        return answer.topics[0]

    def produce(
        self, topic: str, partition: int, values: Sequence[tuple[int, bytes]], codec: int = 0
    ) -> None:
        """Append one batch of (timestamp, value) to a partition."""
        found = self.ctx.replicas.get(topic, partition)
        assert found is not None
        records = [Record(0, timestamp, None, value) for timestamp, value in values]
        batch = build_batch(records, codec=codec)
        now_ms = self.ctx.env.clock.now_ms()
        found.append(check_produced_batch(batch, 0, len(batch), found.log.config.rules(), now_ms), 1, now_ms)
        found.write_pending()
