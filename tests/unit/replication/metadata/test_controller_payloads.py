"""The JSON that controllers read and write, byte for byte as Kafka 3.9 has it."""

from __future__ import annotations

import json

import pytest

from replication.metadata import controller_payloads as codec
from replication.metadata.payloads import BadPayload


def test_the_controllers_node():
    value = codec.encode_controller(3, 1700000000000)
    assert json.loads(value) == {
        "version": 2,
        "brokerid": 3,
        "timestamp": "1700000000000",
        "kraftControllerEpoch": -1,
    }
    assert codec.decode_controller("/controller", value) == 3
    assert codec.decode_controller("/controller", b'{"version":1,"brokerid":5,"timestamp":"1"}') == 5


def test_reassignments_of_tools():
    value = codec.encode_reassignment({("t", 0): (1, 2), ("u", 3): (4,)})
    assert json.loads(value) == {
        "version": 1,
        "partitions": [
            {"topic": "t", "partition": 0, "replicas": [1, 2]},
            {"topic": "u", "partition": 3, "replicas": [4]},
        ],
    }
    assert codec.decode_reassignment("/x", value) == {("t", 0): (1, 2), ("u", 3): (4,)}


def test_lists_of_partitions():
    value = codec.encode_partitions([("t", 0), ("t", 2)])
    assert json.loads(value) == {
        "version": 1,
        "partitions": [{"topic": "t", "partition": 0}, {"topic": "t", "partition": 2}],
    }
    assert codec.decode_partitions("/x", value) == [("t", 0), ("t", 2)]


def test_notes():
    value = codec.encode_log_dir_event(4)
    assert json.loads(value) == {"version": 1, "broker": 4, "event": 1}
    assert codec.decode_log_dir_event("/x", value) == 4
    assert json.loads(codec.encode_config_change("topics/t")) == {"version": 2, "entity_path": "topics/t"}


def test_kafkas_features():
    value = codec.encode_kafka_feature()
    assert json.loads(value) == {"version": 2, "status": 1, "features": {}}
    assert codec.is_kafka_feature_enabled("/feature", value)
    assert not codec.is_kafka_feature_enabled("/feature", b'{"version":1,"status":0,"features":{}}')


@pytest.mark.parametrize(
    "value", [b"", b"[]", b"{}", b'{"partitions":[{}]}', b'{"partitions":[{"topic":1}]}']
)
def test_damaged_nodes_name_their_path(value):
    for decode in (codec.decode_controller, codec.decode_reassignment, codec.decode_log_dir_event):
        with pytest.raises(BadPayload, match="/some/path"):
            decode("/some/path", value)
