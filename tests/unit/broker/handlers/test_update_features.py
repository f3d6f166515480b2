"""UpdateFeatures, what ApiVersions shows afterwards, and that it lasts."""

from __future__ import annotations

from pathlib import Path

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.controller.feature_changes import SAFE_DOWNGRADE
from tests.support.handler_broker import HandlerBroker

Update = m.UpdateFeaturesRequest.FeatureUpdateKey


OTHERS = {"share.version": 1, "transaction.version": 2}


def shown(broker: HandlerBroker, version: int = 4) -> tuple[dict[str, tuple[int, int]], dict[str, int], int]:
    """Supported ranges, finalized levels, epoch."""
    request = m.ApiVersionsRequest(client_software_name="test", client_software_version="1")
    answer = broker.call(request, version)
    return (
        {each.name: (each.min_version, each.max_version) for each in answer.supported_features},
        {each.name: each.max_version_level for each in answer.finalized_features},
        answer.finalized_features_epoch,
    )


def update(broker: HandlerBroker, *updates: Update, version: int = 2, validate_only: bool = False):
    request = m.UpdateFeaturesRequest(feature_updates=list(updates), validate_only=validate_only)
    return broker.call(request, version)


def off(feature: str) -> Update:
    return Update(feature=feature, max_version_level=0, upgrade_type=SAFE_DOWNGRADE)


def test_a_fresh_cluster_has_finalized_all_it_supports(tmp_path: Path):
    with HandlerBroker(tmp_path) as broker:
        ranges = {"group.version": (0, 1), "share.version": (0, 1), "transaction.version": (0, 2)}
        assert shown(broker) == (ranges, {"group.version": 1, **OTHERS}, 0)
        assert shown(broker, 3)[0] == {}


@pytest.mark.parametrize("version", [1, 2])
def test_a_level_that_was_lowered_stays_so_over_a_restart(tmp_path: Path, version: int):
    with HandlerBroker(tmp_path) as broker:
        answer = update(broker, off("group.version"), version=version)
        assert (answer.error_code, answer.error_message) == (0, None)
        results = [(each.feature, each.error_code, each.error_message) for each in answer.results]
        assert results == ([("group.version", 0, "NONE")] if version == 1 else [])
        assert shown(broker)[1:] == (OTHERS, 1)
        tree = broker.tree
    with HandlerBroker(tmp_path, tree=tree) as broker:
        assert shown(broker)[1:] == (OTHERS, 1)
        update(broker, Update(feature="group.version", max_version_level=1))
        assert shown(broker)[1:] == ({"group.version": 1, **OTHERS}, 2)


def test_a_refused_update_changes_nothing_and_gives_no_results(tmp_path: Path):
    with HandlerBroker(tmp_path) as broker:
        unknown = Update(feature="nope", max_version_level=1)
        answer = update(broker, off("share.version"), unknown, version=1)
        assert answer.error_code == ErrorCode.INVALID_UPDATE_VERSION
        assert answer.error_message.endswith("Local controller 1 does not support this feature.")
        assert answer.results == []
        assert shown(broker)[2] == 0


def test_validate_only_changes_nothing(tmp_path: Path):
    with HandlerBroker(tmp_path) as broker:
        assert update(broker, off("share.version"), validate_only=True).error_code == 0
        assert shown(broker)[2] == 0


def test_version_0_can_only_upgrade(tmp_path: Path):
    with HandlerBroker(tmp_path) as broker:
        down = Update(feature="share.version", max_version_level=0, allow_downgrade=True)
        assert update(broker, down, version=0).error_code == ErrorCode.INVALID_UPDATE_VERSION
