"""What Apache Kafka 4.4's feature levels are called: `ottla features` works with Kafka's brokers, too."""

from __future__ import annotations

from typing import Final

METADATA_VERSION: Final = "metadata.version"

_METADATA_FIRST: Final = 7
_METADATA_NAMES: Final = (
    "3.3-IV3",
    "3.4-IV0",
    *("3.5-IV0", "3.5-IV1", "3.5-IV2"),
    *("3.6-IV0", "3.6-IV1", "3.6-IV2"),
    *("3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4"),
    "3.8-IV0",
    "3.9-IV0",
    *("4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3"),
    *("4.1-IV0", "4.1-IV1"),
    *("4.2-IV0", "4.2-IV1"),
    "4.3-IV0",
    *("4.4-IV0", "4.4-IV1", "4.4-IV2"),
)

_NOT_RELEASED: Final = "4.5-IV0"

_SINCE: Final = {
    "kraft.version": ((21, 1),),
    "transaction.version": ((24, 2),),
    "group.version": ((22, 1),),
    "eligible.leader.replicas.version": ((26, 1),),
    "share.version": ((28, 1), (31, 2)),
    "streams.version": ((29, 1),),
}
"""From which level of metadata on a new cluster has which level of a feature; in Kafka's order."""

HIGHEST: Final = {
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "kraft.version": 1,
    METADATA_VERSION: _METADATA_FIRST + len(_METADATA_NAMES) - 1,
    "share.version": 2,
    "streams.version": 1,
    "transaction.version": 2,
}
"""The highest level of each feature that Kafka 4.4 knows."""

REQUIRED: Final = {("eligible.leader.replicas.version", 1): (METADATA_VERSION, 23)}
"""The one level that cannot be finalized without another one."""


def described(feature: str, level: int) -> str:
    """`feature=level`, with the release where the level has one."""
    text = level_text(feature, level)
    return f"{feature}={level}" if text == str(level) else f"{feature}={level} ({text})"


def level_text(feature: str, level: int) -> str:
    """A level as tools print it: that of metadata by its release, others by number."""
    at = level - _METADATA_FIRST
    if feature == METADATA_VERSION and 0 <= at < len(_METADATA_NAMES):
        return _METADATA_NAMES[at]
    return str(level)


class UnknownRelease(Exception):
    """There is no such release, in Kafka's words."""


def metadata_level(release: str) -> int:
    """The level of metadata of a release: `4.0-IV1`, or `4.0` for its last. Raises UnknownRelease."""
    for at in reversed(range(len(_METADATA_NAMES))):
        if release in (_METADATA_NAMES[at], _METADATA_NAMES[at].partition("-")[0]):
            return _METADATA_FIRST + at
    raise UnknownRelease(
        f"Unknown metadata.version '{release}'. Supported metadata.version are: "
        + ", ".join((*_METADATA_NAMES, _NOT_RELEASED))
    )


def levels_of_release(release: str) -> dict[str, int]:
    """The level of every feature in a new cluster of a release. Raises UnknownRelease."""
    metadata = metadata_level(release)
    levels = {METADATA_VERSION: metadata}
    for feature, steps in _SINCE.items():
        levels[feature] = max((level for since, level in steps if metadata >= since), default=0)
    return levels


LATEST_RELEASE: Final = _METADATA_NAMES[-1]
