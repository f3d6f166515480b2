"""UpdateFeatures: which levels may be finalized, and what is written (KIP-584, KIP-778).

Pure. All updates of a request are made or none: the first one that is refused refuses them all, with Kafka's
text. A level can be raised by an upgrade only and lowered by a safe or unsafe downgrade only; asking for the
level in force is fine with either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from protocol.errors import ErrorCode
from replication.controller.outcomes import Refused
from replication.metadata import paths
from replication.metadata.features import NO_NODE, SUPPORTED, FeatureImage, encode_features
from replication.metadata.store import Create, Operation, Put

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
_TYPES: Final = (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE)


@dataclass(slots=True, frozen=True)
class FeatureUpdate:
    """One feature and the level that it is to have; `upgrade_type` as in the protocol."""

    feature: str
    level: int
    upgrade_type: int = UPGRADE


def plan_features(
    image: FeatureImage,
    updates: Iterable[FeatureUpdate],
    controller_id: int,
    brokers: Mapping[int, Mapping[str, int]] | None = None,
) -> list[Operation]:
    """What to write; nothing where the levels are finalized as they shall be. `brokers` are the levels that
    the others know, where there are others. Raises Refused (95) with the reason.
    """
    image = replace(image, limits=None)
    levels = image.levels()
    for update in updates:
        reason = _refusal_of(update, levels.get(update.feature, 0), controller_id) or _unknown_to(
            update, brokers or {}
        )
        if reason is not None:
            raise Refused(
                ErrorCode.INVALID_UPDATE_VERSION,
                "The update failed for all features since the following feature had an error: "
                f"Invalid update version {update.level} for feature {update.feature}. {reason}",
            )
        levels[update.feature] = update.level
    if levels == image.levels():
        return []
    value = encode_features(levels)
    if image.version == NO_NODE:
        return [Create(paths.FEATURES, value)]
    return [Put(paths.FEATURES, value, image.version)]


def _refusal_of(update: FeatureUpdate, current: int, controller_id: int) -> str | None:
    if update.upgrade_type not in _TYPES:
        return "The controller does not support the given upgrade type."
    if update.level < 0:
        return "A feature version cannot be less than 0."
    supported = SUPPORTED.get(update.feature)
    if supported is None and update.level == 0:
        return f"Feature {update.feature} not found."
    if supported is None:
        return f"Local controller {controller_id} does not support this feature."
    lowest, highest = supported
    if not lowest <= update.level <= highest:
        return f"Local controller {controller_id} only supports versions {lowest}-{highest}"
    if update.level < current and update.upgrade_type == UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            "unsafe downgrade."
        )
    if update.level > current and update.upgrade_type != UPGRADE:
        return "Can't downgrade to a newer version."
    return None


def _unknown_to(update: FeatureUpdate, brokers: Mapping[int, Mapping[str, int]]) -> str | None:
    """Why a broker of the cluster could not follow."""
    for broker_id, known in brokers.items():
        if update.level > known.get(update.feature, 0):
            return f"Broker {broker_id} does not support this feature."
    return None
