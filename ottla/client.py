"""A blocking client for a whole cluster: who leads what, and requests to the right broker.

Used by the command line tools and by the embedded broker's process. It keeps one connection a broker and
remembers leaders until `refresh` or a refusal; it retries what the broker calls retriable, for a bounded
time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from ottla.connection import ClientError, Connection
from protocol import messages as m
from protocol.errors import ErrorCode

__all__ = ["ClientError", "KafkaClient", "check"]

REQUEST_TIMEOUT_S = 30.0
RETRY_PAUSE_S = 0.1
NO_NODE = -1


def check(error_code: int, message: str | None = None, what: str = "") -> None:
    """Raises ClientError for a code that is not NONE, with the broker's message or else the code's own."""
    if error_code != ErrorCode.NONE:
        error = ErrorCode(error_code)
        text = message or error.message
        raise ClientError(f"{what}: {text}" if what else text, error)


class KafkaClient:
    """Connections to a cluster, found through `bootstrap` ("host:port,host:port")."""

    def __init__(
        self, bootstrap: str, client_id: str = "ottla", timeout_s: float = REQUEST_TIMEOUT_S
    ) -> None:
        self.client_id = client_id
        self.timeout_s = timeout_s
        self.nodes: dict[int, tuple[str, int]] = {}
        self.controller = NO_NODE
        self._leaders: dict[tuple[str, int], int] = {}
        self._connections: dict[int, Connection] = {}
        self._connections[NO_NODE] = self._first_that_answers(addresses(bootstrap))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes all connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def connection(self, node_id: int = NO_NODE) -> Connection:
        """The connection to a broker by its id, opened on first use; any broker for NO_NODE."""
        open_one = self._connections.get(node_id)
        if open_one is None:
            if node_id not in self.nodes:
                self.metadata([])
            if node_id not in self.nodes:
                raise ClientError(f"the cluster has no broker {node_id}")
            open_one = Connection(*self.nodes[node_id], self.client_id, self.timeout_s)
            self._connections[node_id] = open_one
        return open_one

    def call(
        self,
        request: m.Message,
        node_id: int = NO_NODE,
        version: int | None = None,
        timeout_s: float | None = None,
    ) -> Any:
        """One request to one broker, answered or ClientError; error codes inside are the caller's to read."""
        try:
            return self.connection(node_id).call(request, version, timeout_s)
        except ClientError:
            broken = self._connections.pop(node_id, None) if node_id != NO_NODE else None
            if broken is not None:
                broken.close()
            raise

    def call_controller(self, request: m.Message, codes: Callable[[Any], Iterable[int]]) -> Any:
        """One request to the cluster's controller, which is found; `codes` are the error codes of an answer.

        The first broker is asked; where that is not the controller, the one that it names. Where there is
        none, or it moves, or has just ended, it is looked for until the time is over; the last answer is
        returned then.
        """
        deadline = time.monotonic() + self.timeout_s
        node = NO_NODE
        while True:
            answer = self.call(request, node)
            if ErrorCode.NOT_CONTROLLER not in codes(answer) or time.monotonic() > deadline:
                return answer
            if node != NO_NODE:
                time.sleep(RETRY_PAUSE_S)
            node = self._find_controller()

    def _find_controller(self) -> int:
        """The broker that the first one names; that one itself where the other is none, or is not reached."""
        self.metadata([])
        if self.controller not in self.nodes:
            return NO_NODE
        try:
            self.connection(self.controller)
        except ClientError:
            time.sleep(RETRY_PAUSE_S)
            return NO_NODE
        return self.controller

    def metadata(
        self, topics: Sequence[str] | None, create_missing: bool = False
    ) -> list[m.MetadataResponse.MetadataResponseTopic]:
        """Topics as the cluster tells of them, all for None; learns brokers and leaders on the way."""
        named = None if topics is None else [m.MetadataRequest.MetadataRequestTopic(name=t) for t in topics]
        request = m.MetadataRequest(topics=named, allow_auto_topic_creation=create_missing)
        response: m.MetadataResponse = self.call(request)
        self.nodes = {broker.node_id: (broker.host, broker.port) for broker in response.brokers}
        self.controller = response.controller_id
        for topic in response.topics:
            for partition in topic.partitions:
                self._leaders[topic.name or "", partition.partition_index] = partition.leader_id
        return list(response.topics)

    def partitions_of(self, topic: str, create_missing: bool = False) -> list[int]:
        """A topic's partitions; waits for one that is being created; ClientError for what is not there."""
        deadline = time.monotonic() + self.timeout_s
        while True:
            (described,) = self.metadata([topic], create_missing)
            error = ErrorCode(described.error_code)
            waits = error.retriable and (create_missing or error != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if not waits or time.monotonic() > deadline:
                check(described.error_code, what=f"topic '{topic}'")
                return sorted(partition.partition_index for partition in described.partitions)
            time.sleep(RETRY_PAUSE_S)

    def leader(self, topic: str, partition: int) -> int:
        """The node that leads a partition, from memory where it is known; ClientError where there is none."""
        key = (topic, partition)
        if self._leaders.get(key, NO_NODE) == NO_NODE:
            self.metadata([topic])
        node = self._leaders.get(key)
        if node is None:
            check(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, what=f"{topic}-{partition}")
        if node is None or node == NO_NODE:
            check(ErrorCode.LEADER_NOT_AVAILABLE, what=f"{topic}-{partition}")
            raise AssertionError("LEADER_NOT_AVAILABLE is an error")
        return node

    def forget_leader(self, topic: str, partition: int) -> None:
        """Called after a refusal that says another broker leads by now."""
        self._leaders.pop((topic, partition), None)

    def by_leader(self, partitions: Iterable[tuple[str, int]]) -> dict[int, dict[str, list[int]]]:
        """Partitions grouped by leader and topic, in their order."""
        groups: dict[int, dict[str, list[int]]] = {}
        for topic, partition in partitions:
            node = self.leader(topic, partition)
            groups.setdefault(node, {}).setdefault(topic, []).append(partition)
        return groups

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        replication_factor: int = -1,
        config: Mapping[str, str] | None = None,
        assignments: Sequence[Sequence[int]] = (),
    ) -> None:
        """Creates a topic and waits until it exists; -1 leaves a number to the cluster's defaults."""
        topic = m.CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=-1 if assignments else partitions,
            replication_factor=-1 if assignments else replication_factor,
            assignments=[
                m.CreateTopicsRequest.CreatableReplicaAssignment(partition_index=index, broker_ids=list(ids))
                for index, ids in enumerate(assignments)
            ],
            configs=[
                m.CreateTopicsRequest.CreatableTopicConfig(name=key, value=value)
                for key, value in (config or {}).items()
            ],
        )
        request = m.CreateTopicsRequest(topics=[topic], timeout_ms=int(self.timeout_s * 1000))
        created = self.call_controller(request, lambda answer: [each.error_code for each in answer.topics])
        for result in created.topics:
            check(result.error_code, result.error_message)

    def delete_topic(self, name: str) -> None:
        """Deletes a topic."""
        request = m.DeleteTopicsRequest(
            topics=[m.DeleteTopicsRequest.DeleteTopicState(name=name)],
            topic_names=[name],
            timeout_ms=int(self.timeout_s * 1000),
        )
        deleted = self.call_controller(request, lambda answer: [each.error_code for each in answer.responses])
        for result in deleted.responses:
            check(result.error_code, result.error_message, f"topic '{name}'")

    def _first_that_answers(self, candidates: Sequence[tuple[str, int]]) -> Connection:
        refusals = []
        for host, port in candidates:
            try:
                return Connection(host, port, self.client_id, self.timeout_s)
            except ClientError as error:
                refusals.append(str(error))
        raise ClientError("\n".join(refusals))


def addresses(bootstrap: str) -> list[tuple[str, int]]:
    """Parses "host:port,[::1]:port"; ClientError for anything else."""
    found = []
    for part in filter(None, (part.strip() for part in bootstrap.split(","))):
        host, _, port = part.rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 65536:
            raise ClientError(f"'{part}' is no address: write host:port")
        found.append((host.strip("[]"), int(port)))
    if not found:
        raise ClientError("no broker's address is given: write host:port")
    return found
