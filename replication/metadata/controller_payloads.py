"""The JSON of the nodes that only controllers and those who ask them for something read and write.

As payloads.py: Kafka's field names, unknown fields ignored, `BadPayload` with the path for damaged ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from replication.metadata.payloads import dump, field_of, integer_of, load_document

Partition = tuple[str, int]
"""Topic and index."""

_P = TypeVar("_P", bound=Partition)


def encode_controller(broker_id: int, timestamp_ms: int) -> bytes:
    """/controller. The timestamp is a string; -1 says that no KRaft controller has taken over."""
    return dump(
        {
            "version": 2,
            "brokerid": broker_id,
            "timestamp": str(timestamp_ms),
            "kraftControllerEpoch": -1,
        }
    )


def decode_controller(path: str, value: bytes) -> int:
    """The id of the controller's broker."""
    return integer_of(path, load_document(path, value).get("brokerid"))


def encode_reassignment(targets: Mapping[_P, Sequence[int]]) -> bytes:
    """/admin/reassign_partitions."""
    return dump(
        {
            "version": 1,
            "partitions": [
                {"topic": topic, "partition": index, "replicas": list(replicas)}
                for (topic, index), replicas in targets.items()
            ],
        }
    )


def decode_reassignment(path: str, value: bytes) -> dict[Partition, tuple[int, ...]]:
    """The target replicas of each partition; the last one counts where it is named twice."""
    targets: dict[Partition, tuple[int, ...]] = {}
    for entry in _entries(path, value):
        replicas = field_of(path, entry, "replicas", list)
        targets[_partition(path, entry)] = tuple(integer_of(path, broker) for broker in replicas)
    return targets


def encode_partitions(partitions: Iterable[Partition]) -> bytes:
    """/admin/preferred_replica_election and /isr_change_notification/isr_change_N."""
    return dump(
        {
            "version": 1,
            "partitions": [{"topic": topic, "partition": index} for topic, index in partitions],
        }
    )


def decode_partitions(path: str, value: bytes) -> list[Partition]:
    """The partitions in the order of the node, each once."""
    return list(dict.fromkeys(_partition(path, entry) for entry in _entries(path, value)))


def encode_log_dir_event(broker_id: int) -> bytes:
    """/log_dir_event_notification/log_dir_event_N; 1 is the one kind of event: a directory failed."""
    return dump({"version": 1, "broker": broker_id, "event": 1})


def decode_log_dir_event(path: str, value: bytes) -> int:
    """The broker that lost a directory."""
    return integer_of(path, load_document(path, value).get("broker"))


def encode_config_change(entity_path: str) -> bytes:
    """/config/changes/config_change_N; `entity_path` as in topics/NAME."""
    return dump({"version": 2, "entity_path": entity_path})


def decode_config_change(path: str, value: bytes) -> str:
    """The entity path of a note, in the form of version 2 or of version 1 (entity_type and entity_name)."""
    document = load_document(path, value)
    if document.get("version") == 1:
        return (
            f"{field_of(path, document, 'entity_type', str)}/{field_of(path, document, 'entity_name', str)}"
        )
    entity: str = field_of(path, document, "entity_path", str)
    return entity


def encode_kafka_feature() -> bytes:
    """/feature as Kafka 3.9 makes it in a cluster without finalized features: enabled and empty."""
    return dump({"features": {}, "status": 1, "version": 2})


def is_kafka_feature_enabled(path: str, value: bytes) -> bool:
    """Whether the features of the node count (they do not below inter.broker.protocol.version 2.7)."""
    return integer_of(path, load_document(path, value).get("status")) == 1


def _entries(path: str, value: bytes) -> list[dict[str, Any]]:
    return [
        entry
        for entry in field_of(path, load_document(path, value), "partitions", list)
        if isinstance(entry, dict)
    ]


def _partition(path: str, entry: dict[str, Any]) -> Partition:
    return field_of(path, entry, "topic", str), field_of(path, entry, "partition", int)
