"""UpdateFeatures and what ApiVersions tells of features. Each test leaves the levels as it found them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from protocol import messages as m
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

Update = m.UpdateFeaturesRequest.FeatureUpdateKey
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
REFUSED = 95
FAILED = (
    "The update failed for all features since the following feature had an error: Invalid update version "
)
NEEDS_TYPE = (
    "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe "
    "downgrade."
)


def level(wire: WireClient, feature: str) -> int:
    """0 where it is not finalized."""
    request = m.ApiVersionsRequest(client_software_name="test", client_software_version="1")
    answer = wire.send(request, 4)
    return {each.name: each.max_version_level for each in answer.finalized_features}.get(feature, 0)


def update(
    wire: WireClient, *updates: tuple[str, int, int], version: int = 2, validate_only: bool = False
) -> m.UpdateFeaturesResponse:
    keys = [
        Update(feature=name, max_version_level=level)
        if version == 0
        else Update(feature=name, max_version_level=level, upgrade_type=kind)
        for name, level, kind in updates
    ]
    request = m.UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=keys, validate_only=validate_only)
    return wire.send(request, version)


@pytest.fixture
def on(wire: WireClient) -> Iterator[WireClient]:
    """A broker with group.version 1, before and after."""
    yield wire
    update(wire, ("group.version", 1, UPGRADE))
    wait_until(lambda: level(wire, "group.version") == 1, "the level as it was")


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("kind", [SAFE_DOWNGRADE, UNSAFE_DOWNGRADE])
def test_a_level_goes_down_and_up_again(on: WireClient, version: int, kind: int) -> None:
    answer = update(on, ("group.version", 0, kind), version=version)
    assert (answer.error_code, answer.error_message) == (0, None)
    results = [(each.feature, each.error_code, each.error_message) for each in answer.results]
    assert results == ([("group.version", 0, "NONE")] if version == 1 else [])
    wait_until(lambda: level(on, "group.version") == 0, "the lower level")
    assert update(on, ("group.version", 1, UPGRADE), version=version).error_code == 0
    wait_until(lambda: level(on, "group.version") == 1, "the higher level")


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize(
    ("feature", "wanted", "reason"),
    [
        ("nope", 1, "Local controller 1 does not support this feature."),
        ("group.version", 5, "Local controller 1 only supports versions 0-1"),
        ("group.version", -1, "A feature version cannot be less than 0."),
        ("group.version", 0, NEEDS_TYPE),
    ],
)
def test_upgrades_that_are_refused(
    wire: WireClient, version: int, feature: str, wanted: int, reason: str
) -> None:
    answer = update(wire, (feature, wanted, UPGRADE), version=version)
    assert answer.error_code == REFUSED
    assert answer.error_message == f"{FAILED}{wanted} for feature {feature}. {reason}"
    assert answer.results == []


@pytest.mark.parametrize("kind", [0, 7])
def test_an_unknown_upgrade_type_is_refused(wire: WireClient, kind: int) -> None:
    answer = update(wire, ("group.version", 1, kind))
    reason = "The controller does not support the given upgrade type."
    assert answer.error_message == f"{FAILED}1 for feature group.version. {reason}"


def test_a_downgrade_cannot_go_up(on: WireClient) -> None:
    assert update(on, ("group.version", 0, SAFE_DOWNGRADE)).error_code == 0
    answer = update(on, ("group.version", 1, SAFE_DOWNGRADE))
    reason = "Can't downgrade to a newer version."
    assert answer.error_message == f"{FAILED}1 for feature group.version. {reason}"


@pytest.mark.parametrize("version", [0, 1, 2])
def test_nothing_to_do_is_fine(wire: WireClient, version: int) -> None:
    assert update(wire, version=version).error_code == 0
    assert update(wire, ("group.version", 1, UPGRADE), version=version).error_code == 0


@pytest.mark.parametrize("version", [1, 2])
def test_validate_only_changes_nothing(wire: WireClient, version: int) -> None:
    answer = update(wire, ("group.version", 0, SAFE_DOWNGRADE), version=version, validate_only=True)
    assert answer.error_code == 0
    assert level(wire, "group.version") == 1


def test_one_refusal_refuses_all(wire: WireClient) -> None:
    answer = update(wire, ("group.version", 0, SAFE_DOWNGRADE), ("nope", 1, UPGRADE))
    assert answer.error_code == REFUSED
    assert level(wire, "group.version") == 1


def test_consumer_groups_of_the_new_protocol_are_off_at_level_0(on: WireClient) -> None:
    heartbeat = m.ConsumerGroupHeartbeatRequest(
        group_id="features",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    assert update(on, ("group.version", 0, SAFE_DOWNGRADE)).error_code == 0
    wait_until(lambda: on.send(heartbeat, 1).error_code == 35, "UNSUPPORTED_VERSION")
    assert on.send(heartbeat, 1).error_message is None
    [group] = on.send(m.ConsumerGroupDescribeRequest(group_ids=["features"]), 1).groups
    assert (group.error_code, group.error_message) == (35, None)


def test_what_can_be_at_level_0_is_not_told_to_old_clients(wire: WireClient) -> None:
    request = m.ApiVersionsRequest(client_software_name="test", client_software_version="1")
    names = {
        version: {each.name for each in wire.send(request, version).supported_features} for version in (3, 4)
    }
    assert "group.version" not in names[3]
    assert {"group.version", "share.version"} <= names[4]
