"""From the tree to the image."""

from __future__ import annotations

import json

import pytest

from protocol.uuids import uuid_from_text
from replication.metadata.image import PartitionImage
from replication.metadata.load import load_image
from replication.metadata.payloads import BadPayload
from replication.metadata.store import Node
from tests.unit.replication.cluster import topic_resource

ID = "AAECAwQFBgcICQoLDA0ODw"


def tree(**extra):
    nodes = {
        "/cluster/id": {"version": "1", "id": "the-cluster"},
        "/brokers/ids/2": {"version": 5, "endpoints": ["IN://h2:1"], "rack": "r2"},
        "/brokers/ids/10": {
            "version": 5,
            "endpoints": ["IN://h10:1"],
            "listener_security_protocol_map": {"IN": "SSL"},
        },
        "/brokers/topics/t": {"version": 3, "topic_id": ID, "partitions": {"0": [2, 10], "1": [10, 2]}},
        "/brokers/topics/t/partitions/0/state": {
            "leader": 2,
            "leader_epoch": 3,
            "controller_epoch": 1,
            "isr": [2],
        },
        "/config/topics/t": {"version": 1, "config": {"k": "v"}},
        "/config/topics/empty": {"version": 1, "config": {}},
        "/config/users/u": {"version": 1, "config": {"quota": "1"}},
    }
    nodes = {path: Node(json.dumps(value).encode(), 4, 7) for path, value in nodes.items()}
    nodes["/brokers/topics/t/partitions"] = nodes["/config/topics"] = Node(b"", 0, 1)
    return {**nodes, **extra}


def test_the_whole_image():
    image = load_image(tree(), 2, 9)
    assert (image.cluster_id, image.controller_id, image.controller_epoch) == ("the-cluster", 2, 9)
    assert list(image.brokers) == [2, 10]
    assert image.brokers[2].rack == "r2"
    assert image.brokers[2].epoch == 7
    assert image.brokers[10].endpoints["IN"].security_protocol == "SSL"
    topic = image.topics["t"]
    assert image.topics_by_id[uuid_from_text(ID)] is topic
    assert topic.partitions == (
        PartitionImage(0, 2, 3, 4, (2,), (2, 10)),
        PartitionImage(1, -1, -1, -1, (), (10, 2)),  # its creation was cut short
    )
    assert image.overrides(topic_resource("t")) == {"k": "v"}
    assert topic_resource("empty") in image.configs
    assert len(image.configs) == 2


def test_an_empty_tree():
    image = load_image({}, -1, 0)
    assert (image.cluster_id, dict(image.topics), dict(image.brokers)) == ("", {}, {})


def test_a_topic_without_an_id_is_left_out():
    image = load_image(tree(**{"/brokers/topics/old": Node(b'{"partitions":{"0":[2]}}', 0, 1)}), 2, 1)
    assert list(image.topics) == ["t"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/brokers/topics/t", b"not json"),
        ("/brokers/topics/t", f'{{"topic_id":"{ID}","partitions":{{"1":[2]}}}}'.encode()),
        ("/brokers/topics/t", f'{{"topic_id":"{ID}","partitions":{{}}}}'.encode()),
        ("/config/topics/t", b"[]"),
        ("/cluster/id", b"{}"),
    ],
)
def test_damage_is_named_by_its_path(path, value):
    with pytest.raises(BadPayload, match=path):
        load_image(tree(**{path: Node(value, 0, 1)}), 2, 1)
