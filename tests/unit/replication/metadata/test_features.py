"""Levels of features: what a tree says, and what is in force."""

from __future__ import annotations

import pytest

from replication.metadata import paths
from replication.metadata.features import (
    GROUP_VERSION,
    NO_NODE,
    SHARE_VERSION,
    TRANSACTION_VERSION,
    FeatureImage,
    common_levels,
    encode_features,
    read_features,
    supported_levels,
)
from replication.metadata.payloads import BadPayload
from replication.metadata.store import Node


def node(value: bytes, version: int = 0) -> Node:
    return Node(value, version, 1)


def test_a_tree_without_the_node_has_everything_on():
    image = read_features(paths.FEATURES, None)
    assert image.levels() == {GROUP_VERSION: 1, SHARE_VERSION: 1, TRANSACTION_VERSION: 2}
    assert (image.version, image.epoch) == (NO_NODE, 0)


def test_levels_are_read_back_with_the_version_of_the_node():
    image = read_features(paths.FEATURES, node(encode_features({GROUP_VERSION: 0, SHARE_VERSION: 1}), 4))
    assert image.levels() == {GROUP_VERSION: 0, SHARE_VERSION: 1, TRANSACTION_VERSION: 2}
    assert image.epoch == 5


def test_a_feature_that_is_not_named_has_its_highest_level_and_one_from_a_newer_broker_is_capped():
    image = FeatureImage({SHARE_VERSION: 9, "streams.version": 1}, 0)
    assert image.levels() == {GROUP_VERSION: 1, SHARE_VERSION: 1, TRANSACTION_VERSION: 2}
    assert image.level("streams.version") == 0


@pytest.mark.parametrize(
    "value", [b"", b"[]", b"{}", b'{"features":3}', b'{"features":{"group.version":"1"}}']
)
def test_a_damaged_node_is_named(value: bytes):
    with pytest.raises(BadPayload, match="/ottla/features"):
        read_features(paths.FEATURES, node(value))


def test_what_all_brokers_know_is_the_most_that_is_in_force():
    ours, kafka = supported_levels(), {}
    assert ours == {GROUP_VERSION: 1, SHARE_VERSION: 1, TRANSACTION_VERSION: 2}
    newer = {feature: level + 1 for feature, level in ours.items()}
    assert common_levels([]) == common_levels([ours, newer]) == ours
    older = {GROUP_VERSION: 1, TRANSACTION_VERSION: 1}
    assert common_levels([ours, older]) == {**older, SHARE_VERSION: 0}
    mixed = FeatureImage({GROUP_VERSION: 1}, 3, common_levels([ours, kafka]))
    assert mixed.levels() == dict.fromkeys(ours, 0)
    off = FeatureImage({GROUP_VERSION: 0}, 3, common_levels([ours]))
    assert off.levels() == {**ours, GROUP_VERSION: 0}
