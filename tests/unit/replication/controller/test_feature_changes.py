"""Which levels may be finalized. The texts are those of Apache Kafka 4.4.0."""

from __future__ import annotations

from dataclasses import replace

import pytest

from protocol.errors import ErrorCode
from replication.controller.feature_changes import (
    SAFE_DOWNGRADE,
    UNSAFE_DOWNGRADE,
    UPGRADE,
    FeatureUpdate,
    plan_features,
)
from replication.controller.outcomes import Refused
from replication.metadata import paths
from replication.metadata.features import FeatureImage, encode_features
from replication.metadata.store import Create, Put

FRESH = FeatureImage()
OFF = FeatureImage({"group.version": 0, "share.version": 0, "transaction.version": 2}, 6)
FAILED = "The update failed for all features since the following feature had an error: "
BOTH_OFF = encode_features({"group.version": 0, "share.version": 0, "transaction.version": 2})


@pytest.mark.parametrize(
    ("image", "update", "reason"),
    [
        (FRESH, FeatureUpdate("nope", 1), "Local controller 7 does not support this feature."),
        (FRESH, FeatureUpdate("nope", 0, SAFE_DOWNGRADE), "Feature nope not found."),
        (FRESH, FeatureUpdate("group.version", 5), "Local controller 7 only supports versions 0-1"),
        (FRESH, FeatureUpdate("group.version", -1), "A feature version cannot be less than 0."),
        (
            FRESH,
            FeatureUpdate("group.version", 0),
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            "unsafe downgrade.",
        ),
        (OFF, FeatureUpdate("group.version", 1, SAFE_DOWNGRADE), "Can't downgrade to a newer version."),
        (OFF, FeatureUpdate("group.version", 1, UNSAFE_DOWNGRADE), "Can't downgrade to a newer version."),
        (OFF, FeatureUpdate("nope", -1, 0), "The controller does not support the given upgrade type."),
        (OFF, FeatureUpdate("nope", -1, 4), "The controller does not support the given upgrade type."),
    ],
)
def test_refusals_in_kafkas_words(image: FeatureImage, update: FeatureUpdate, reason: str):
    with pytest.raises(Refused) as refused:
        plan_features(image, [update], 7)
    assert refused.value.error == ErrorCode.INVALID_UPDATE_VERSION
    told = f"Invalid update version {update.level} for feature {update.feature}. {reason}"
    assert refused.value.message == FAILED + told


def test_a_broker_that_does_not_know_the_level_stands_against_it():
    on = [FeatureUpdate("group.version", 1)]
    limited = replace(OFF, limits={})
    with pytest.raises(Refused, match=r"Broker 3 does not support this feature\."):
        plan_features(limited, on, 7, {7: {"group.version": 1}, 3: {}})
    assert plan_features(limited, on, 7, {7: {"group.version": 1}}) == [
        Put(paths.FEATURES, encode_features({**OFF.stored, "group.version": 1}), 6)
    ]


def test_off_is_finalized_although_a_broker_keeps_the_feature_off_as_it_is():
    limited = FeatureImage(limits={})
    off = [FeatureUpdate(name, 0, SAFE_DOWNGRADE) for name in ("group.version", "share.version")]
    assert plan_features(limited, off, 7, {3: {}}) == [Create(paths.FEATURES, BOTH_OFF)]


def test_one_refusal_refuses_all():
    updates = [FeatureUpdate("group.version", 0, SAFE_DOWNGRADE), FeatureUpdate("share.version", 9)]
    with pytest.raises(Refused, match=r"share\.version"):
        plan_features(FRESH, updates, 7)


@pytest.mark.parametrize("kind", [UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE])
def test_the_level_in_force_is_fine_with_any_type_and_nothing_is_written(kind: int):
    assert plan_features(FRESH, [FeatureUpdate("group.version", 1, kind)], 7) == []
    assert plan_features(FRESH, [], 7) == []


def test_the_first_change_makes_the_node_and_later_ones_replace_what_was_read():
    off = [FeatureUpdate(name, 0, SAFE_DOWNGRADE) for name in ("group.version", "share.version")]
    assert plan_features(FRESH, off, 7) == [Create(paths.FEATURES, BOTH_OFF)]
    on = plan_features(OFF, [FeatureUpdate("share.version", 1)], 7)
    levels = {"group.version": 0, "share.version": 1, "transaction.version": 2}
    assert on == [Put(paths.FEATURES, encode_features(levels), 6)]
