"""`ottla cluster` beside Kafka's ClusterTool, on Ottla and on Apache Kafka."""

from __future__ import annotations

import re

from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.tools import assert_same, ottla_tool

Broker = OttlaProcess | KafkaProcess


def test_the_id_of_the_cluster(either_broker: Broker) -> None:
    printed = assert_same("cluster", "cluster-id", "--bootstrap-server", either_broker.bootstrap_servers)
    assert re.fullmatch(r"Cluster ID: [\w-]{22}\n", printed)
    assert assert_same("cluster", "cluster-id", "-b", either_broker.bootstrap_servers) == printed


def test_where_the_brokers_are(either_broker: Broker) -> None:
    printed = assert_same("cluster", "list-endpoints", "--bootstrap-server", either_broker.bootstrap_servers)
    header, row = printed.splitlines()
    assert header.split() == ["ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE"]
    assert row.split()[-3:] == ["null", "unfenced", "broker"]


def test_a_broker_that_does_not_answer() -> None:
    done = ottla_tool("cluster", "cluster-id", "--bootstrap-server", "127.0.0.1:1")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no broker answers at 127.0.0.1:1" in done.stderr
