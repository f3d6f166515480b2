"""Both brokers show the same keys with the same values, sources, types and synonyms.

Left out is what differs because the brokers are set up in their own ways.
"""

from __future__ import annotations

from typing import Any

from tests.conformance.test_configs import BROKER, TOPIC, entries, node
from tests.support.kafka_process import PATIENT, SINGLE_NODE, KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.wire_client import WireClient

SET_UP = {
    "advertised.listeners",
    "controller.listener.names",
    "controller.quorum.voters",
    "listener.security.protocol.map",
    "listeners",
    "log.dirs",
    "min.insync.replicas",  # Kafka 4 writes a cluster default for it when eligible leader replicas are on
    "process.roles",
    *PATIENT,
    *SINGLE_NODE,
}


def shown(wire: WireClient, kind: int, name: str) -> dict[str, tuple[Any, ...]]:
    found = entries(wire, kind, name, include_synonyms=True)
    return {
        key: (
            entry.value,
            entry.config_source,
            entry.config_type,
            entry.read_only,
            entry.is_sensitive,
            [(synonym.name, synonym.value, synonym.source) for synonym in entry.synonyms],
        )
        for key, entry in found.items()
        if key not in SET_UP
    }


def test_a_fresh_topic_and_a_fresh_broker(
    ottla_process: OttlaProcess, apache_kafka: KafkaProcess, name: str
) -> None:
    with (
        WireClient(ottla_process.bootstrap_servers) as ours,
        WireClient(apache_kafka.bootstrap_servers) as kafkas,
    ):
        for wire in (ours, kafkas):
            wire.create_topic(name)
        topics = [shown(wire, TOPIC, name) for wire in (ours, kafkas)]
        brokers = [shown(wire, BROKER, node(wire)) for wire in (ours, kafkas)]
    assert topics[0] == topics[1]
    assert brokers[0] == brokers[1]
    assert len(topics[0]) > 30
    assert len(brokers[0]) > 300
