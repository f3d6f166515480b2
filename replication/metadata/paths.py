"""Where cluster metadata lies in the tree: Kafka's ZooKeeper paths (kafka.zk.ZkData, release 3.9).

The same paths are used in every store, so that a tree means the same on SQLite and on ZooKeeper.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

CLUSTER_ID = "/cluster/id"
BROKER_IDS = "/brokers/ids"
BROKER_SEQUENCE = "/brokers/seqid"
TOPICS = "/brokers/topics"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
CONFIG = "/config"
CONFIG_CHANGES = "/config/changes"
DELETE_TOPICS = "/admin/delete_topics"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
PREFERRED_ELECTION = "/admin/preferred_replica_election"
ISR_CHANGES = "/isr_change_notification"
LOG_DIR_EVENTS = "/log_dir_event_notification"
KAFKA_FEATURE = "/feature"
"""Kafka's own finalized features, which a controller must have made before Kafka's brokers start."""
PRODUCER_ID_BLOCK = "/latest_producer_id_block"
OTTLA = "/ottla"
FEATURES = "/ottla/features"
"""Not Kafka's: finalized features of a cluster of Ottla brokers, made by the first change of one."""

CONFIG_TYPES = ("topics", "clients", "users", "brokers", "ips", "client-metrics", "groups")
"""The folders below /config. Kafka's own tree has none for client metrics and groups."""

DEFAULT_ENTITY = "<default>"
"""The name that stands for all entities of a type that have no setting of their own."""

ROOTS = (
    "/consumers",
    BROKER_IDS,
    TOPICS,
    CONFIG_CHANGES,
    DELETE_TOPICS,
    BROKER_SEQUENCE,
    ISR_CHANGES,
    PRODUCER_ID_BLOCK,
    OTTLA,
    LOG_DIR_EVENTS,
    *(f"{CONFIG}/{kind}" for kind in CONFIG_TYPES),
)
"""Created empty, where missing, at each start."""


def broker(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def topic(name: str) -> str:
    return f"{TOPICS}/{name}"


def partitions(name: str) -> str:
    return f"{TOPICS}/{name}/partitions"


def partition(name: str, index: int) -> str:
    return f"{TOPICS}/{name}/partitions/{index}"


def partition_state(name: str, index: int) -> str:
    return f"{TOPICS}/{name}/partitions/{index}/state"


def config(kind: str, entity: str) -> str:
    """`kind` is one of CONFIG_TYPES, `entity` already sanitized where the type asks for it."""
    return f"{CONFIG}/{kind}/{entity}"


def sanitize(name: str) -> str:
    """A user or client id as a node name: URL-encoded, space as %20 and `*` as %2A (Kafka's Sanitizer)."""
    return quote(name, safe="-._~").replace("~", "%7E")


def desanitize(name: str) -> str:
    """The reverse of `sanitize`."""
    return unquote(name)
