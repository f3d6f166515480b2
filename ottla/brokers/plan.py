"""What each of several brokers of one machine is told: pure.

Broker i of N (from 0) has the id `first + i`, where `first` is the configured id, or 1. Each of its listeners
has the configured port plus `i * stride`; the stride is the smallest that keeps all ports apart, so it is 1
where there is one listener. Port 0 stays: a free one, which the broker keeps when it is started again. Its
data lie in the sub-directory `broker_<id>` of each log directory: a name that no partition can have, so a
broker that is alone refuses such a directory. All share one cluster file.

Internal topics have as many replicas as configured, but not more than there are brokers. Where nobody has
said how many must be in sync, one broker may be missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count as numbers
from typing import Final

from broker.config.broker_config import BrokerConfig
from broker.config.listeners import Listener, parse_listeners
from broker.config.load import LoadedConfig, load_config
from broker.config.values import ConfigError

CLUSTER_FILE: Final = "cluster.sqlite"
FOLDER_PREFIX: Final = "broker_"
FIRST_ID: Final = 1
LAST_PORT: Final = 65535
FACTORS: Final = {
    "offsets.topic.replication.factor": "",
    "transaction.state.log.replication.factor": "transaction.state.log.min.isr",
    "share.coordinator.state.topic.replication.factor": "share.coordinator.state.topic.min.isr",
}
"""Factor of an internal topic: its key for the least number in sync, where it has one."""

Addresses = Sequence[tuple[str, str, int]]
"""Listener, host and port, as clients are told."""


@dataclass(slots=True, frozen=True)
class BrokerPlan:
    """One broker: its whole configuration."""

    node_id: int
    settings: Mapping[str, str]

    def load(self) -> LoadedConfig:
        """Raises ConfigError."""
        return load_config(b"", [f"{name}={text}" for name, text in self.settings.items()])

    def with_ports(self, addresses: Addresses) -> BrokerPlan:
        """With the ports that its listeners of port 0 were given. One that is advertised at another port is
        left: nobody was told its own.
        """
        listeners = parse_listeners(BrokerConfig(self.settings))
        told = {name: port for name, _, port in addresses}
        hidden = [each.name for each in listeners.advertised if each.port]
        bound = [
            each if each.port or each.name in hidden else replace(each, port=told.get(each.name, 0))
            for each in listeners.bound
        ]
        return replace(self, settings={**self.settings, "listeners": _text(bound)})


@dataclass(slots=True, frozen=True)
class ClusterPlan:
    """All brokers, and lines for the log. `folders` are the log directories that hold theirs."""

    brokers: tuple[BrokerPlan, ...]
    folders: tuple[str, ...]
    cluster_file: str
    notices: tuple[str, ...]


def plan_cluster(loaded: LoadedConfig, count: int) -> ClusterPlan:
    """Raises ConfigError, with lines that say what cannot be."""
    config = loaded.config
    if config.text("zookeeper.connect").strip():
        raise ConfigError(
            "--brokers starts a cluster of this machine's own, which needs no ZooKeeper. Remove "
            "zookeeper.connect, or start each broker of the ZooKeeper cluster by a command of its own."
        )
    first = FIRST_ID if config.configured_node_id is None else config.configured_node_id
    file = config.text("ottla.cluster.file").strip() or f"{config.metadata_dir}/{CLUSTER_FILE}"
    shared = {**config.static, "ottla.cluster.file": file, **_internal_topics(config, count)}
    ports = _Ports(loaded, count)
    brokers = []
    for index in range(count):
        node_id = first + index
        own = {
            "node.id": str(node_id),
            "broker.id": str(node_id),
            "log.dirs": ",".join(folder_of(node_id, folder) for folder in config.log_dirs),
            **ports.of(index),
        }
        if cordoned := config.names("cordoned.log.dirs"):
            own["cordoned.log.dirs"] = ",".join(
                path if path == "*" else folder_of(node_id, path) for path in cordoned
            )
        plan = BrokerPlan(node_id, {**shared, **own})
        plan.load()
        brokers.append(plan)
    lowered = [key for key in FACTORS if config.is_set(key) and config.integer(key) > count]
    notices = [f"{key} is {count}, as many as there are brokers" for key in lowered]
    return ClusterPlan(tuple(brokers), config.log_dirs, file, tuple(notices))


def folder_of(node_id: int, folder: str) -> str:
    """Where a broker keeps its data, below a configured log directory."""
    return f"{folder}/{FOLDER_PREFIX}{node_id}"


def _internal_topics(config: BrokerConfig, count: int) -> dict[str, str]:
    settings = {}
    for key, min_isr_key in FACTORS.items():
        factor = min(config.integer(key), count)
        settings[key] = str(factor)
        if min_isr_key:
            most = factor if config.is_set(min_isr_key) else factor - 1
            settings[min_isr_key] = str(max(1, min(config.integer(min_isr_key), most)))
    return settings


class _Ports:
    """The listeners of each broker."""

    def __init__(self, loaded: LoadedConfig, count: int) -> None:
        self._bound = loaded.listeners.bound
        self._advertised = loaded.listeners.advertised if loaded.config.names("advertised.listeners") else ()
        kinds = [{each.port: None for each in some if each.port} for some in (self._bound, self._advertised)]
        self._stride = next(by for by in numbers(1) if all(_apart(ports, by, count) for ports in kinds))
        last = max((port for ports in kinds for port in ports), default=0) + self._stride * (count - 1)
        if last > LAST_PORT:
            raise ConfigError(f"The listeners of {count} brokers would need ports up to {last}")

    def of(self, index: int) -> dict[str, str]:
        settings = {"listeners": _text(self._moved(self._bound, index))}
        if self._advertised:
            settings["advertised.listeners"] = _text(self._moved(self._advertised, index))
        return settings

    def _moved(self, listeners: Iterable[Listener], index: int) -> list[Listener]:
        by = index * self._stride
        return [replace(each, port=each.port + by if each.port else 0) for each in listeners]


def _apart(ports: Iterable[int], stride: int, count: int) -> bool:
    """Whether no two brokers would have the same port."""
    taken = [port + stride * index for port in ports for index in range(count)]
    return len(taken) == len(dict.fromkeys(taken))


def _text(listeners: Iterable[Listener]) -> str:
    return ",".join(str(each) for each in listeners)
