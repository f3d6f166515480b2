"""What `ottla reassign-partitions` asks a cluster: where replicas are, what moves, and to move them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from ottla.cli.controller_calls import ask_controller
from ottla.cli.reassignment_file import Partition, Replica, Targets, failed
from ottla.client import ClientError, KafkaClient, check
from protocol import messages as m
from protocol.errors import ErrorCode

TIMEOUT_MS = 60_000
TOPIC, BROKER = 2, 4
SET, DELETE = 0, 1
UNKNOWN = "org.apache.kafka.common.errors.UnknownTopicOrPartitionException"


@dataclass(slots=True, frozen=True)
class Moving:
    """A reassignment in progress."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class ReassignmentCluster:
    """A cluster through a client."""

    def __init__(self, client: KafkaClient) -> None:
        self._client = client
        self.racks = cache(self._racks)

    def _racks(self) -> dict[int, str | None]:
        """The brokers with their racks."""
        answer: m.DescribeClusterResponse = self._client.call(m.DescribeClusterRequest())
        check(answer.error_code, answer.error_message)
        return {broker.broker_id: broker.rack for broker in answer.brokers}

    def replicas_of_topics(self, topics: Iterable[str]) -> Targets:
        """The replicas of all partitions of topics, which must exist."""
        found: Targets = {}
        for topic in self._client.metadata(list(topics)):
            if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise failed(f"{UNKNOWN}: Topic {topic.name} not found.")
            check(topic.error_code)
            for row in topic.partitions:
                found[topic.name or "", row.partition_index] = tuple(row.replica_nodes)
        return found

    def replicas_of(self, partitions: Iterable[Partition]) -> Targets:
        """The replicas of partitions, which must exist."""
        wanted = dict.fromkeys(partitions)
        found = self.replicas_of_topics(dict.fromkeys(topic for topic, _ in wanted))
        missing = [f"{topic}-{partition}" for topic, partition in wanted if (topic, partition) not in found]
        if missing:
            raise failed(f"{UNKNOWN}: Unable to find partition: {', '.join(missing)}")
        return {partition: found[partition] for partition in wanted}

    def replicas_if_known(self, partition: Partition) -> tuple[int, ...]:
        """The replicas of a partition; none where it does not exist."""
        for topic in self._client.metadata([partition[0]]):
            for row in topic.partitions:
                if row.partition_index == partition[1]:
                    return tuple(row.replica_nodes)
        return ()

    def log_dirs(self, replicas: Targets) -> dict[Replica, str]:
        """The directory of each replica, as far as the brokers tell."""
        asked = [(partition, broker) for partition, brokers in replicas.items() for broker in brokers]
        return {replica: now for replica, (now, _) in self.directories(asked).items() if now is not None}

    def directories(self, replicas: Iterable[Replica]) -> dict[Replica, tuple[str | None, str | None]]:
        """Where each replica is and where it is moving to, as far as its broker tells."""
        found: dict[Replica, tuple[str | None, str | None]] = {}
        by_broker: dict[int, dict[str, list[int]]] = {}
        for (topic, partition), broker in replicas:
            by_broker.setdefault(broker, {}).setdefault(topic, []).append(partition)
        kind = m.DescribeLogDirsRequest.DescribableLogDirTopic
        for broker, topics in by_broker.items():
            asked = [kind(topic=topic, partitions=rows) for topic, rows in topics.items()]
            try:
                answer: m.DescribeLogDirsResponse = self._client.call(
                    m.DescribeLogDirsRequest(topics=asked), broker
                )
            except ClientError:
                continue  # the broker is down: its directories are any
            for directory in answer.results:
                for described in directory.topics:
                    for row in described.partitions:
                        replica = (described.name, row.partition_index), broker
                        now, to = found.get(replica, (None, None))
                        if row.is_future_key:
                            to = directory.log_dir
                        else:
                            now = directory.log_dir
                        found[replica] = now, to
        return found

    def move(self, wanted: Mapping[Replica, str]) -> dict[Replica, ErrorCode]:
        """Ask brokers to move replicas between their directories; what each one says."""
        kind = m.AlterReplicaLogDirsRequest
        outcomes: dict[Replica, ErrorCode] = {}
        for broker in dict.fromkeys(broker for _, broker in wanted):
            paths: dict[str, dict[str, list[int]]] = {}
            for ((topic, partition), at), log_dir in wanted.items():
                if at == broker:
                    paths.setdefault(log_dir, {}).setdefault(topic, []).append(partition)
            dirs = [
                kind.AlterReplicaLogDir(
                    path=path,
                    topics=[
                        kind.AlterReplicaLogDirTopic(name=t, partitions=rows) for t, rows in topics.items()
                    ],
                )
                for path, topics in paths.items()
            ]
            for topic in self._client.call(kind(dirs=dirs), broker).results:
                for row in topic.partitions:
                    outcomes[(topic.topic_name, row.partition_index), broker] = ErrorCode(row.error_code)
        return outcomes

    def under_way(self, partitions: Iterable[Partition] | None) -> dict[Partition, Moving]:
        """The reassignments in progress, of these partitions or of all."""
        topics: dict[str, list[int]] = {}
        for topic, partition in partitions or ():
            topics.setdefault(topic, []).append(partition)
        kind = m.ListPartitionReassignmentsRequest
        rows = [
            kind.ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes)
            for name, indexes in topics.items()
        ]
        answer: m.ListPartitionReassignmentsResponse = ask_controller(
            self._client, kind(timeout_ms=TIMEOUT_MS, topics=None if partitions is None else rows)
        )
        check(answer.error_code, answer.error_message)
        return {
            (topic.name, row.partition_index): Moving(
                tuple(row.replicas), tuple(row.adding_replicas), tuple(row.removing_replicas)
            )
            for topic in answer.topics
            for row in topic.partitions
        }

    def alter(self, targets: Mapping[Partition, tuple[int, ...] | None]) -> dict[Partition, str]:
        """Move partitions, or cancel where the target is None; what was refused, with the reason."""
        kind = m.AlterPartitionReassignmentsRequest
        topics: dict[str, list[m.AlterPartitionReassignmentsRequest.ReassignablePartition]] = {}
        for (topic, partition), replicas in targets.items():
            row = kind.ReassignablePartition(
                partition_index=partition, replicas=None if replicas is None else list(replicas)
            )
            topics.setdefault(topic, []).append(row)
        asked = [kind.ReassignableTopic(name=name, partitions=rows) for name, rows in topics.items()]
        answer: m.AlterPartitionReassignmentsResponse = ask_controller(
            self._client, kind(timeout_ms=TIMEOUT_MS, topics=asked)
        )
        check(answer.error_code, answer.error_message)
        return {
            (topic.name, row.partition_index): row.error_message or ErrorCode(row.error_code).message
            for topic in answer.responses
            for row in topic.partitions
            if row.error_code != ErrorCode.NONE
        }

    def configure(self, kind: int, name: str, values: Mapping[str, str | None]) -> None:
        """Set overrides of a topic or broker; None takes one away."""
        request = m.IncrementalAlterConfigsRequest
        rows = [
            request.AlterableConfig(name=key, config_operation=DELETE if text is None else SET, value=text)
            for key, text in values.items()
        ]
        resource = request.AlterConfigsResource(resource_type=kind, resource_name=name, configs=rows)
        node = int(name) if kind == BROKER else -1
        answer = self._client.call(request(resources=[resource]), node)
        for result in answer.responses:
            check(result.error_code, result.error_message)
