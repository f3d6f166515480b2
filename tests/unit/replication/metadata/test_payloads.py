"""Kafka's JSON at those paths, also as other releases write it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from protocol.uuids import uuid_from_text
from replication.metadata import payloads

TOPIC_ID = uuid_from_text("AAECAwQFBgcICQoLDA0ODw")


def test_cluster_id_has_its_version_as_a_string():
    encoded = payloads.encode_cluster_id("abc")
    assert json.loads(encoded) == {"version": "1", "id": "abc"}
    assert payloads.decode_cluster_id("/cluster/id", encoded) == "abc"


def test_a_topic_as_kafka_3_writes_it():
    kafka = (
        b'{"removing_replicas":{},"partitions":{"1":[2,1],"0":[1,2]},'
        b'"topic_id":"AAECAwQFBgcICQoLDA0ODw","adding_replicas":{"1":[3]},"version":3}'
    )
    topic = payloads.decode_topic("/t", kafka)
    assert topic == payloads.TopicPayload(TOPIC_ID, {0: (1, 2), 1: (2, 1)}, {1: (3,)}, {})
    assert list(topic.assignment) == [0, 1]
    assert json.loads(payloads.encode_topic(topic)) == json.loads(kafka)


@pytest.mark.parametrize("version", [1, 2])
def test_older_topics_have_no_id(version):
    document = {"version": version, "partitions": {"0": [1]}}
    if version == 2:
        document |= {"adding_replicas": {}, "removing_replicas": {}}
    topic = payloads.decode_topic("/t", json.dumps(document).encode())
    assert topic == payloads.TopicPayload(None, {0: (1,)}, {}, {})
    assert "topic_id" not in json.loads(payloads.encode_topic(topic))


def test_partition_state():
    state = payloads.StatePayload(1, 4, 2, (1, 3))
    encoded = payloads.encode_state(state)
    assert json.loads(encoded) == {
        "version": 1,
        "leader": 1,
        "leader_epoch": 4,
        "controller_epoch": 2,
        "isr": [1, 3],
    }
    assert payloads.decode_state("/s", encoded) == state
    recovering = payloads.StatePayload(-1, 5, 2, (1,), recovering=True)
    assert json.loads(payloads.encode_state(recovering))["leader_recovery_state"] == 1
    assert payloads.decode_state("/s", payloads.encode_state(recovering)) == recovering


def test_a_broker_names_its_first_plaintext_endpoint_at_the_top():
    broker = payloads.BrokerPayload(
        {"TLS": ("h", 9093), "IN": ("::1", 9092)}, {"TLS": "SSL", "IN": "PLAINTEXT"}, "r1", 123
    )
    document = json.loads(payloads.encode_broker(broker))
    assert (document["version"], document["host"], document["port"]) == (5, "::1", 9092)
    assert document["endpoints"] == ["TLS://h:9093", "IN://[::1]:9092"]
    assert document["listener_security_protocol_map"] == {"TLS": "SSL", "IN": "PLAINTEXT"}
    assert (document["timestamp"], document["jmx_port"], document["rack"]) == ("123", -1, "r1")
    assert document["features"] == {}
    assert payloads.decode_broker("/b", payloads.encode_broker(broker)) == broker


def test_a_broker_of_ours_says_which_levels_of_features_it_knows():
    broker = payloads.BrokerPayload({"P": ("h", 1)}, {"P": "PLAINTEXT"}, None, 1, {"group.version": 1})
    document = json.loads(payloads.encode_broker(broker))
    assert document["features"] == {}
    assert document["ottla"] == {"features": {"group.version": 1}, "cordoned": False}
    assert payloads.decode_broker("/b", payloads.encode_broker(broker)) == broker
    cordoned = replace(broker, cordoned=True)
    assert payloads.decode_broker("/b", payloads.encode_broker(cordoned)) == cordoned
    for mark in (None, 1, {}, {"features": 1}, {"features": {"group.version": "1"}, "cordoned": 1}):
        document["ottla"] = mark
        read = payloads.decode_broker("/b", json.dumps(document).encode())
        assert (read.features, read.cordoned) == ({}, False)


def test_a_broker_without_plaintext_and_rack():
    broker = payloads.BrokerPayload({"S": ("h", 1)}, {"S": "SASL_SSL"}, None, 1)
    document = json.loads(payloads.encode_broker(broker))
    assert (document["host"], document["port"]) == (None, -1)
    assert "rack" not in document


def test_an_old_broker_has_protocols_for_names():
    old = {"version": 2, "host": "h", "port": 9092, "endpoints": ["PLAINTEXT://h:9092"], "timestamp": "5"}
    broker = payloads.decode_broker("/b", json.dumps(old).encode())
    assert broker.protocols == {"PLAINTEXT": "PLAINTEXT"}
    assert broker.endpoints == {"PLAINTEXT": ("h", 9092)}


def test_configs_and_producer_id_blocks():
    assert json.loads(payloads.encode_config({"k": "v"})) == {"version": 1, "config": {"k": "v"}}
    assert payloads.decode_config("/c", b'{"version":1,"config":{"k":"1"}}') == {"k": "1"}
    block = payloads.encode_producer_id_block(1, 1000, 1999)
    assert json.loads(block) == {"version": 1, "broker": 1, "block_start": "1000", "block_end": "1999"}
    assert payloads.decode_producer_id_block("/p", block) == (1, 1000, 1999)


@pytest.mark.parametrize(
    ("decode", "value"),
    [
        (payloads.decode_topic, b""),
        (payloads.decode_topic, b"[]"),
        (payloads.decode_topic, b"{}"),
        (payloads.decode_topic, b'{"partitions":{"x":[1]}}'),
        (payloads.decode_topic, b'{"partitions":{"0":1}}'),
        (payloads.decode_topic, b'{"partitions":{"0":["one"]}}'),
        (payloads.decode_topic, b'{"partitions":{"0":[1]},"topic_id":"short"}'),
        (payloads.decode_state, b'{"leader":1,"leader_epoch":0,"controller_epoch":1}'),
        (payloads.decode_state, b'{"leader":1,"leader_epoch":0,"controller_epoch":1,"isr":["a"]}'),
        (payloads.decode_state, b'{"leader":"1","leader_epoch":0,"controller_epoch":1,"isr":[]}'),
        (payloads.decode_broker, b'{"endpoints":["h"]}'),
        (payloads.decode_broker, b'{"endpoints":[],"timestamp":"yesterday"}'),
        (payloads.decode_producer_id_block, b'{"broker":1,"block_start":"0","block_end":"x"}'),
        (payloads.decode_config, b'{"config":[]}'),
        (payloads.decode_cluster_id, b"\xff"),
    ],
)
def test_damaged_nodes_are_named(decode, value):
    with pytest.raises(payloads.BadPayload, match="/the/path"):
        decode("/the/path", value)
