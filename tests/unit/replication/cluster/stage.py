"""Several brokers' replicas in one process, moved step by step: no loop, no task, no waiting.

`Stage` plays controller, network and clock. A node has real logs on simulated files, which outlive its
crashes. Requests and answers go through the codec and the session cache of the leader, as on a connection.
"""

from __future__ import annotations

import asyncio

from broker.handlers.fetch_answers import encode_fetch
from protocol import messages as m
from protocol.errors import ErrorCode
from replication.cluster.channel import ChannelLost
from replication.cluster.control_fence import ControlFence
from replication.cluster.fetcher import Fetcher, FetcherSettings, World
from replication.cluster.follower_session import Identity
from replication.cluster.leader_and_isr import LeaderAndIsr
from replication.cluster.replicas import ClusterReplicas
from replication.cluster.stop_replica import StopReplica
from replication.cluster.throttle import FOLLOWER_REPLICAS, ReplicationQuota
from replication.cluster.update_metadata import UpdateMetadata
from replication.fetch import FetchParams, Wanted
from replication.fetch_sessions import FetchSessions
from replication.follower_fetch import FollowerFetch
from replication.leadership import IsrVerdict
from replication.list_offsets import OffsetQuery, find_offset
from replication.metadata.image import ImageHolder
from replication.partition import Partition
from runtime.entropy import SeededRandom
from runtime.files import FileRegion
from runtime.pieces import at_once
from storage.log_config import LogConfig
from tests.simulation.files import SimFileSystem
from tests.support.logs import FixedClock, open_manager
from tests.unit.replication.cluster import produce
from tests.unit.replication.test_purgatory import Clockwork

TOPIC, TOPIC_ID = "t", bytes(range(1, 17))
FETCH, LIST_OFFSETS = 17, 9
LAG_MS, BACKOFF_MS = 30_000, 1_000


def run(coroutine):
    """The result of a coroutine that waits for nobody but itself."""
    while True:
        try:
            coroutine.send(None)
        except StopIteration as ended:
            return ended.value


async def until(condition, turns=1000):
    """Let the loop go on until the condition holds."""
    for _ in range(turns):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to that")


class Wire:
    """A channel of one node to another: answered at once, or cut."""

    def __init__(self, stage, asker, broker_id):
        self.stage, self.asker, self.broker_id = stage, asker, broker_id
        self.aborted = 0

    async def ask(self, request, version=None):
        if not self.stage.reaches(self.asker, self.broker_id):
            raise ChannelLost("cut")
        return self.stage.nodes[self.broker_id].serve(request)

    def abort(self):
        self.aborted += 1

    async def close(self):
        pass


class Copying:
    """Implements `Fetching` with fetchers that the test drives."""

    def __init__(self, node):
        self.node, self.fetchers = node, {}

    def follow(self, partition):
        self.forget(partition)
        fetcher = self.fetchers.get(partition.leader_id)
        if fetcher is None:
            wire = Wire(self.node.stage, self.node.id, partition.leader_id)
            fetcher = Fetcher(partition.leader_id, wire, self.node.fetching, self.node.world)
            self.fetchers[partition.leader_id] = fetcher
        fetcher.add(partition)

    def forget(self, partition):
        for fetcher in self.fetchers.values():
            fetcher.remove((partition.topic, partition.index))


class Node:
    """One broker. `crash` gives its files to the next incarnation."""

    def __init__(self, stage, broker_id, files=None, epoch=1):
        self.stage, self.id, self.epoch = stage, broker_id, epoch
        self.files = files or SimFileSystem()
        self.logs = open_manager(self.files, config=stage.config, clock=stage.clock, broker_id=broker_id)
        self.holder = ImageHolder()
        self.proposals = []
        self.quota = ReplicationQuota(FOLLOWER_REPLICAS, broker_id)
        self.holder.subscribe(self.quota.follow)
        self.fetching = FetcherSettings(Identity(broker_id), BACKOFF_MS)
        self.timer = Clockwork()
        now_ms = stage.monotonic_ms
        self.world = World(now_ms, stage.clock.now_ms, lambda: self.epoch, self.timer, self.quota)
        self.replicas = ClusterReplicas(
            broker_id,
            self.holder,
            self.logs,
            lambda topic, overrides: stage.config,
            lag_max_ms=LAG_MS,
            now_ms=now_ms,
            propose=lambda partition, change: self.proposals.append((partition, change)),
        )
        self.copying = self.replicas.fetching = Copying(self)
        self.sessions = FetchSessions(self.replicas.wanted_partition, SeededRandom(b"sessions"))
        self.fence = ControlFence(lambda: self.epoch)
        self.leader_and_isr = LeaderAndIsr(self.replicas, self.fence)
        self.stop_replica = StopReplica(self.replicas, self.fence)
        self.update_metadata = UpdateMetadata(self.holder, self.fence)

    def partition(self, index=0, topic=TOPIC) -> Partition:
        found = self.replicas.get(topic, index)
        assert found is not None, f"no {topic}-{index} on node {self.id}"
        return found

    @property
    def log(self):
        return self.partition().log

    @property
    def epochs(self):
        return self.log.leader_epochs.entries

    @property
    def ends(self):
        """Log end and high watermark."""
        return self.log.end_offset, self.log.high_watermark

    def produce(self, count=1, acks=1, size=20, index=0):
        return produce(self.partition(index), count, acks=acks, size=size)

    def batches(self):
        """The bytes of the whole log."""
        log, found, at = self.log, [], self.log.start_offset
        while at < log.end_offset:
            piece = log.read(at, 1 << 20, log.end_offset).to_bytes()
            if not piece:
                break
            found.append(piece)
            last = 0
            while last < len(piece):
                size = int.from_bytes(piece[last + 8 : last + 12], "big") + 12
                delta = int.from_bytes(piece[last + 23 : last + 27], "big")
                at = int.from_bytes(piece[last : last + 8], "big") + delta + 1
                last += size
        return b"".join(found)

    # As a server

    def serve(self, request):
        if isinstance(request, m.FetchRequest):
            return self.serve_fetch(m.FetchRequest.decode(FETCH, request.encode(FETCH))[0])
        if isinstance(request, m.ListOffsetsRequest):
            return self.serve_offsets(request)
        raise AssertionError(request)

    def serve_fetch(self, request):
        state = request.replica_state
        params = FetchParams(FETCH, 0, 1, request.max_bytes, replica_id=state.replica_id)
        wanted = [
            Wanted(
                topic.topic,
                topic.topic_id,
                each.partition,
                each.fetch_offset,
                each.partition_max_bytes,
                each.current_leader_epoch,
                each.last_fetched_epoch,
                each.log_start_offset,
            )
            for topic in request.topics
            for each in topic.partitions
        ]
        gone = [
            (topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions
        ]
        now_ms = self.stage.monotonic_ms()
        context = self.sessions.open(params, request.session_id, request.session_epoch, wanted, gone, now_ms)
        follower = FollowerFetch(state.replica_id, now_ms, state.replica_epoch)
        answer = context.read(follower)
        follower.settle()
        error, session_id, rows = context.respond(answer, now_ms)
        parts = encode_fetch(FETCH, 0, rows, error=error, session_id=session_id)
        frame = b"".join(part.read() if isinstance(part, FileRegion) else bytes(part) for part in parts)
        return m.FetchResponse.decode(FETCH, frame, 9)[0]

    def serve_offsets(self, request):
        asked = request.topics[0].partitions[0]
        found = self.replicas.find(request.topics[0].name, asked.partition_index)
        answer = m.ListOffsetsResponse.ListOffsetsPartitionResponse(partition_index=asked.partition_index)
        if isinstance(found, Partition):
            query = OffsetQuery(asked.timestamp, asked.current_leader_epoch)
            offset = find_offset(found, query, version=9, now_ms=0, replica_id=request.replica_id)
            answer.error_code, answer.offset = offset.error, offset.offset
        else:
            answer.error_code = found
        topic = m.ListOffsetsResponse.ListOffsetsTopicResponse(
            name=request.topics[0].name, partitions=[answer]
        )
        return m.ListOffsetsResponse(topics=[topic])

    # As a follower

    def fetch(self, times=1):
        """Rounds of all fetchers; the requests that were sent."""
        requests = []
        for _ in range(times):
            for fetcher in list(self.copying.fetchers.values()):
                request = fetcher.build()
                if request is not None:
                    requests.append(request)
                    self._round(fetcher, request)
        return requests

    def _round(self, fetcher, request):
        stage, leader_id = self.stage, fetcher.leader_id
        if not stage.reaches(self.id, leader_id):
            fetcher.lost()
            return
        response = stage.nodes[leader_id].serve(request)
        if stage.loses_reply(self.id, leader_id):
            fetcher.lost()
            return
        run(fetcher.find_offsets(at_once(fetcher.take(response))))

    def decide(self, error=ErrorCode.NONE):
        """The controller answers the latest proposal: it is stored, or refused."""
        partition, change = self.proposals.pop()
        stored = self.stage.stored[partition.index]
        if error == ErrorCode.NONE:
            stored["isr"], stored["version"] = list(change.isr), stored["version"] + 1
        verdict = IsrVerdict(error, stored["epoch"], stored["version"], tuple(stored["isr"]))
        return partition.leadership.decided(change, verdict)


class Stage:
    """`size` brokers with ids from 1. `stored` is what the controller has of each partition."""

    def __init__(self, size=2, partitions=1, **config):
        self.clock = FixedClock()
        self.config = LogConfig(**config)
        self.nodes: dict[int, Node | None] = {each: Node(self, each) for each in range(1, size + 1)}
        self.replicas = list(self.nodes)
        self.stored = [
            {"leader": -1, "epoch": -1, "version": -1, "isr": self.replicas} for _ in range(partitions)
        ]
        self.controller_epoch = 1
        self.cut: list[tuple[int, int]] = []
        self.lossy: list[tuple[int, int]] = []
        self.update_all()

    def monotonic_ms(self):
        return self.clock.ms

    def __getitem__(self, broker_id) -> Node:
        node = self.nodes[broker_id]
        assert node is not None, f"node {broker_id} is down"
        return node

    @property
    def live(self):
        return {broker_id: node for broker_id, node in self.nodes.items() if node is not None}

    def reaches(self, asker, broker_id):
        return self.nodes[broker_id] is not None and (asker, broker_id) not in self.cut

    def loses_reply(self, asker, broker_id):
        return (asker, broker_id) in self.lossy

    # The controller

    def lead(self, leader, isr=None, index=0, tell=None, replicas=None, is_new=False):
        """Elect; tell the live nodes, or only those of `tell`. Returns the answers by node."""
        stored = self.stored[index]
        stored.update(leader=leader, epoch=stored["epoch"] + 1, version=stored["version"] + 1)
        stored["isr"] = list(stored["isr"] if isr is None else isr)
        stored["replicas"] = list(replicas or self.replicas)
        self.update_all()
        told = [node for broker_id, node in self.live.items() if tell is None or broker_id in tell]
        return {node.id: self.tell(node, index, is_new) for node in told}

    def tell(self, node, index=0, is_new=False, **fields):
        """LeaderAndIsr of one partition to one node; the partition's error."""
        request = self.request(node, index, is_new, **fields)
        response = run(node.leader_and_isr.handle(request))
        if response.error_code:
            return ErrorCode(response.error_code)
        return ErrorCode(response.topics[0].partition_errors[0].error_code)

    def request(self, node, index=0, is_new=False, topic_id=TOPIC_ID, **fields):
        stored = {**self.stored[index], **fields}
        state = m.LeaderAndIsrRequest.LeaderAndIsrPartitionState(
            partition_index=index,
            controller_epoch=self.controller_epoch,
            leader=stored["leader"],
            leader_epoch=stored["epoch"],
            isr=list(stored["isr"]),
            partition_epoch=stored["version"],
            replicas=list(stored.get("replicas", self.replicas)),
            is_new=is_new,
        )
        return m.LeaderAndIsrRequest(
            controller_id=0,
            controller_epoch=self.controller_epoch,
            broker_epoch=node.epoch,
            topic_states=[
                m.LeaderAndIsrRequest.LeaderAndIsrTopicState(
                    topic_name=TOPIC, topic_id=topic_id, partition_states=[state]
                )
            ],
        )

    def metadata(self, node):
        """UpdateMetadata with everything."""
        states = [
            m.UpdateMetadataRequest.UpdateMetadataPartitionState(
                partition_index=index,
                leader=stored["leader"],
                leader_epoch=stored["epoch"],
                isr=stored["isr"],
                zk_version=stored["version"],
                replicas=stored.get("replicas", self.replicas),
            )
            for index, stored in enumerate(self.stored)
        ]
        return m.UpdateMetadataRequest(
            controller_id=0,
            controller_epoch=self.controller_epoch,
            broker_epoch=node.epoch,
            topic_states=[
                m.UpdateMetadataRequest.UpdateMetadataTopicState(
                    topic_name=TOPIC, topic_id=TOPIC_ID, partition_states=states
                )
            ],
            live_brokers=[m.UpdateMetadataRequest.UpdateMetadataBroker(id=each) for each in self.live],
        )

    def update_all(self):
        for node in self.live.values():
            response = run(node.update_metadata.handle(self.metadata(node)))
            assert response.error_code == 0

    # Faults

    def stop(self, broker_id, checkpoint=True):
        """Kill a node; its page cache stays, and its checkpoint of high watermarks if it was written."""
        node = self[broker_id]
        if checkpoint:
            node.logs.checkpoint_high_watermarks()
        node.logs.abandon()
        self.nodes[broker_id] = None
        self.update_all()

    def start(self, broker_id, node):
        """A new incarnation of a node that was stopped."""
        self.nodes[broker_id] = Node(self, broker_id, node.files, node.epoch + 1)
        self.update_all()
        return self.nodes[broker_id]

    def bounce(self, broker_id, checkpoint=True):
        node = self[broker_id]
        self.stop(broker_id, checkpoint)
        return self.start(broker_id, node)

    def sync(self, rounds=4):
        """Let every follower fetch until nothing is left."""
        for _ in range(rounds):
            for node in self.live.values():
                node.fetch()
