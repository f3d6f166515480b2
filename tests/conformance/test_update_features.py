"""UpdateFeatures and what ApiVersions tells of features. Each test leaves the levels as it found them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from protocol import messages as m
from tests.support.share_member import ShareMember, initialize
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
    request = m.UpdateFeaturesRequest(timeout_ms=30_000, feature_updates=keys, validate_only=validate_only)
    return wire.send(request, version)


@pytest.fixture
def on(wire: WireClient) -> Iterator[WireClient]:
    """A broker whose groups are on, before and after."""
    before = {feature: level(wire, feature) for feature in ("group.version", "share.version")}
    yield wire
    for feature, as_it_was in before.items():
        update(wire, (feature, as_it_was, UPGRADE))
        wait_until(lambda feature=feature, on=as_it_was: level(wire, feature) == on, "the level as it was")


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
    wait_until(lambda: level(on, "group.version") == 0, "the lower level")
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


def test_share_groups_are_off_at_level_0(on: WireClient) -> None:
    requests: list[tuple[Any, int]] = [
        (m.ShareGroupHeartbeatRequest(group_id="g", member_id="m", subscribed_topic_names=["t"]), 1),
        (m.ShareFetchRequest(group_id="g", member_id="m", share_session_epoch=0), 2),
        (m.ShareAcknowledgeRequest(group_id="g", member_id="m", share_session_epoch=1), 2),
        (m.AlterShareGroupOffsetsRequest(group_id="g", topics=[]), 0),
        (m.DeleteShareGroupOffsetsRequest(group_id="g", topics=[]), 0),
    ]
    offsets = m.DescribeShareGroupOffsetsRequest
    assert update(on, ("share.version", 0, SAFE_DOWNGRADE)).error_code == 0
    wait_until(lambda: on.send(*requests[0]).error_code == 35, "UNSUPPORTED_VERSION")
    assert {on.send(request, version).error_code for request, version in requests} == {35}
    [group] = on.send(m.ShareGroupDescribeRequest(group_ids=["g"]), 1).groups
    assert (group.error_code, group.error_message) == (35, None)
    asked = offsets.DescribeShareGroupOffsetsRequestGroup(group_id="g", topics=None)
    [group] = on.send(offsets(groups=[asked]), 1).groups
    assert (group.error_code, group.error_message) == (35, None)


def test_share_sessions_are_over_when_share_groups_were_off(on: WireClient) -> None:
    topic_id = on.create_topic("features-share")
    on.produce_values("features-share", b"a", b"b")
    initialize(on, "features", topic_id)
    ann, bob = (ShareMember(on, "features", topic_id, member_id) for member_id in ("ann", "bob"))
    assert ann.fetch_until() == [(0, 1, 1)]
    before = level(on, "share.version")
    assert update(on, ("share.version", 0, SAFE_DOWNGRADE)).error_code == 0
    wait_until(lambda: ann.acknowledge(epoch=1).error_code == 35, "UNSUPPORTED_VERSION")
    assert update(on, ("share.version", before, UPGRADE)).error_code == 0
    wait_until(lambda: ann.fetch().error == 122, "SHARE_SESSION_NOT_FOUND")
    assert bob.fetch_until() == [(0, 1, 1)]  # what was with ann is free, as if it never was with her


def test_what_can_be_at_level_0_is_not_told_to_old_clients(wire: WireClient) -> None:
    request = m.ApiVersionsRequest(client_software_name="test", client_software_version="1")
    names = {
        version: {each.name for each in wire.send(request, version).supported_features} for version in (3, 4)
    }
    assert "group.version" not in names[3]
    assert {"group.version", "share.version"} <= names[4]
