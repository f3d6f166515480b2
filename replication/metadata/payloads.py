"""The JSON that Kafka keeps at its ZooKeeper paths, to and from typed values (kafka.zk.ZkData, release 3.9).

Integers are JSON numbers except where Kafka quotes them: the version of /cluster/id, timestamps of brokers
and of the controller, the bounds of a producer id block. Unknown fields are ignored when read, so that nodes
written by a later release can be used. Damaged JSON raises `BadPayload` with the path.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from protocol.uuids import uuid_from_text, uuid_to_text

Assignment = dict[int, tuple[int, ...]]
"""Partition index to the ids of the brokers that hold a replica; the first is the preferred leader."""


class BadPayload(Exception):
    """A node of the metadata tree that does not hold what belongs there."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"the metadata node {path} is damaged: {reason}")
        self.path = path


@dataclass(slots=True, frozen=True)
class TopicPayload:
    """/brokers/topics/NAME. `adding` and `removing` name the partitions that are being reassigned."""

    topic_id: bytes | None
    assignment: Assignment
    adding: Assignment
    removing: Assignment


@dataclass(slots=True, frozen=True)
class StatePayload:
    """/brokers/topics/NAME/partitions/INDEX/state. `leader` is -1 while there is none."""

    leader: int
    leader_epoch: int
    controller_epoch: int
    isr: tuple[int, ...]
    recovering: bool = False


@dataclass(slots=True, frozen=True)
class BrokerPayload:
    """/brokers/ids/ID: `endpoints` maps a listener name to (host, port), `protocols` to its security
    protocol. `features` are the highest levels that the broker knows of features of ours: an entry that
    Kafka does not have and passes over, and the mark by which a broker of ours is told from one of Kafka's.
    `cordoned`: all its log directories are (KIP-1066), which Kafka with ZooKeeper does not know.
    """

    endpoints: Mapping[str, tuple[str, int]]
    protocols: Mapping[str, str]
    rack: str | None
    timestamp_ms: int
    features: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    cordoned: bool = False


def encode_cluster_id(cluster_id: str) -> bytes:
    return dump({"version": "1", "id": cluster_id})


def decode_cluster_id(path: str, value: bytes) -> str:
    return str(field_of(path, load_document(path, value), "id", str))


def encode_topic(topic: TopicPayload) -> bytes:
    document: dict[str, Any] = {"version": 3 if topic.topic_id is not None else 2}
    if topic.topic_id is not None:
        document["topic_id"] = uuid_to_text(topic.topic_id)
    document["partitions"] = _assignment_out(topic.assignment)
    document["adding_replicas"] = _assignment_out(topic.adding)
    document["removing_replicas"] = _assignment_out(topic.removing)
    return dump(document)


def decode_topic(path: str, value: bytes) -> TopicPayload:
    """Versions 1 (assignment only), 2 (with reassignment) and 3 (with the topic id)."""
    document = load_document(path, value)
    text = document.get("topic_id")
    try:
        topic_id = uuid_from_text(text) if isinstance(text, str) else None
    except ValueError as error:
        raise BadPayload(path, str(error)) from error
    return TopicPayload(
        topic_id,
        _assignment_in(path, document, "partitions"),
        _assignment_in(path, document, "adding_replicas", optional=True),
        _assignment_in(path, document, "removing_replicas", optional=True),
    )


def encode_state(state: StatePayload) -> bytes:
    document: dict[str, Any] = {
        "version": 1,
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "controller_epoch": state.controller_epoch,
        "isr": list(state.isr),
    }
    if state.recovering:
        document["leader_recovery_state"] = 1
    return dump(document)


def decode_state(path: str, value: bytes) -> StatePayload:
    document = load_document(path, value)
    isr = field_of(path, document, "isr", list)
    if not all(isinstance(member, int) for member in isr):
        raise BadPayload(path, "isr holds something else than broker ids")
    return StatePayload(
        field_of(path, document, "leader", int),
        field_of(path, document, "leader_epoch", int),
        field_of(path, document, "controller_epoch", int),
        tuple(isr),
        document.get("leader_recovery_state", 0) == 1,
    )


def encode_broker(broker: BrokerPayload) -> bytes:
    """Version 5. The top-level host and port are those of the first PLAINTEXT endpoint, else null and -1."""
    host: str | None = None
    port = -1
    for name, (endpoint_host, endpoint_port) in broker.endpoints.items():
        if broker.protocols.get(name) == "PLAINTEXT":
            host, port = endpoint_host, endpoint_port
            break
    document: dict[str, Any] = {
        "version": 5,
        "host": host,
        "port": port,
        "endpoints": [f"{name}://{_host_out(at)}:{port}" for name, (at, port) in broker.endpoints.items()],
        "listener_security_protocol_map": dict(broker.protocols),
        "jmx_port": -1,
        "timestamp": str(broker.timestamp_ms),
        "features": {},
    }
    if broker.rack is not None:
        document["rack"] = broker.rack
    if broker.features:
        document["ottla"] = {"features": dict(broker.features), "cordoned": broker.cordoned}
    return dump(document)


def decode_broker(path: str, value: bytes) -> BrokerPayload:
    """Versions 4 and 5 (3 and 2 name no protocol map: then the listener name is the protocol)."""
    document = load_document(path, value)
    endpoints: dict[str, tuple[str, int]] = {}
    for text in field_of(path, document, "endpoints", list):
        name, _, address = str(text).partition("://")
        host, _, port = address.rpartition(":")
        if not name or not port.isdigit():
            raise BadPayload(path, f"not an endpoint: {text!r}")
        endpoints[name] = (host.strip("[]"), int(port))
    protocols = document.get("listener_security_protocol_map")
    mark = document.get("ottla")
    mark = mark if isinstance(mark, dict) else {}
    rack = document.get("rack")
    return BrokerPayload(
        endpoints,
        {str(k): str(v) for k, v in protocols.items()}
        if isinstance(protocols, dict)
        else {n: n for n in endpoints},
        str(rack) if rack is not None else None,
        integer_of(path, document.get("timestamp", -1)),
        _features_in(mark.get("features")),
        mark.get("cordoned") is True,
    )


def _features_in(features: Any) -> Mapping[str, int]:
    if not isinstance(features, dict):
        return {}
    return {str(name): level for name, level in features.items() if type(level) is int}


def encode_config(values: Mapping[str, str]) -> bytes:
    return dump({"version": 1, "config": dict(values)})


def decode_config(path: str, value: bytes) -> dict[str, str]:
    config = field_of(path, load_document(path, value), "config", dict)
    return {str(key): str(entry) for key, entry in config.items()}


def encode_producer_id_block(broker_id: int, first: int, last: int) -> bytes:
    """`last` is inclusive; both bounds are strings in Kafka's JSON."""
    return dump({"version": 1, "broker": broker_id, "block_start": str(first), "block_end": str(last)})


def decode_producer_id_block(path: str, value: bytes) -> tuple[int, int, int]:
    """(broker id, first, last inclusive)."""
    document = load_document(path, value)
    first, last = field_of(path, document, "block_start", str), field_of(path, document, "block_end", str)
    return field_of(path, document, "broker", int), integer_of(path, first), integer_of(path, last)


def dump(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def load_document(path: str, value: bytes) -> dict[str, Any]:
    try:
        document = json.loads(value)
    except ValueError as error:
        raise BadPayload(path, str(error)) from error
    if not isinstance(document, dict):
        raise BadPayload(path, "not a JSON object")
    return document


def field_of(path: str, document: Mapping[str, Any], name: str, kind: type) -> Any:
    found = document.get(name)
    if not isinstance(found, kind):
        raise BadPayload(path, f"{name} is missing or not {kind.__name__}")
    return found


def integer_of(path: str, value: Any) -> int:
    """A number, or a text that is one."""
    try:
        return int(value)
    except (TypeError, ValueError) as error:
        raise BadPayload(path, f"{value!r} is not a number") from error


def _assignment_out(assignment: Mapping[int, Sequence[int]]) -> dict[str, list[int]]:
    return {str(index): list(replicas) for index, replicas in assignment.items()}


def _assignment_in(path: str, document: Mapping[str, Any], name: str, optional: bool = False) -> Assignment:
    if optional and name not in document:
        return {}
    found: Assignment = {}
    for index, replicas in field_of(path, document, name, dict).items():
        if not index.isdigit() or not isinstance(replicas, list):
            raise BadPayload(path, f"{name} is no map of partitions to broker ids")
        found[int(index)] = tuple(integer_of(path, replica) for replica in replicas)
    return dict(sorted(found.items()))


def _host_out(host: str) -> str:
    return f"[{host}]" if ":" in host else host
