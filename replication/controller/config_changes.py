"""AlterConfigs and IncrementalAlterConfigs: the overrides of each resource after the request.

Pure. Resources are independent of each other, each one is changed as a whole or not at all. A resource that
is named twice is refused (42) in all its entries, which are then answered once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from protocol.errors import ErrorCode
from replication import topic_names
from replication.controller.outcomes import ConfigOutcome, Refused
from replication.metadata import payloads
from replication.metadata.configs import (
    FOLDERS,
    ConfigChange,
    ConfigRefused,
    ConfigResource,
    ConfigRules,
    ConfigType,
    apply_changes,
)
from replication.metadata.image import ClusterImage
from replication.metadata.store import Create, Delete, Operation, Put

Entry = TypeVar("Entry")


@dataclass(slots=True)
class ConfigPlan:
    """What is to be written and published."""

    operations: list[Operation] = field(default_factory=list)
    configs: dict[ConfigResource, Mapping[str, str]] = field(default_factory=dict)


def plan_replacement(
    image: ClusterImage,
    wanted: Sequence[tuple[ConfigResource, Sequence[tuple[str, str | None]]]],
    rules: ConfigRules,
) -> tuple[list[ConfigOutcome], ConfigPlan]:
    """AlterConfigs: the given keys are all the overrides a resource has afterwards."""

    def after(resource: ConfigResource, entries: Sequence[tuple[str, str | None]]) -> dict[str, str]:
        values: dict[str, str] = {}
        for key, value in entries:
            if key in values:
                raise ConfigRefused(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
            if value is None:
                raise ConfigRefused(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {key}")
            values[key] = value
        return values

    return _plan(image, wanted, after, rules)


def plan_increments(
    image: ClusterImage,
    wanted: Sequence[tuple[ConfigResource, Sequence[ConfigChange]]],
    rules: ConfigRules,
) -> tuple[list[ConfigOutcome], ConfigPlan]:
    """IncrementalAlterConfigs: set, delete, append and subtract single keys."""

    def after(resource: ConfigResource, changes: Sequence[ConfigChange]) -> dict[str, str]:
        return apply_changes(resource, image.overrides(resource), changes, rules)

    return _plan(image, wanted, after, rules)


def _plan(
    image: ClusterImage,
    wanted: Sequence[tuple[ConfigResource, Sequence[Entry]]],
    after: Callable[[ConfigResource, Sequence[Entry]], dict[str, str]],
    rules: ConfigRules,
) -> tuple[list[ConfigOutcome], ConfigPlan]:
    plan = ConfigPlan()
    times = Counter(resource for resource, _ in wanted)
    outcomes: dict[ConfigResource, ConfigOutcome] = {}
    for resource, entries in wanted:
        if resource in outcomes:
            continue
        try:
            if times[resource] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            check_resource(image, resource)
            values = after(resource, entries)
            rules.validate(resource, values)
        except (Refused, ConfigRefused) as refused:
            outcomes[resource] = ConfigOutcome(resource, refused.error, refused.message)
            continue
        outcomes[resource] = ConfigOutcome(resource)
        if values != image.overrides(resource):
            plan.operations.append(write_of(image, resource, values))
            plan.configs[resource] = values
    return list(outcomes.values()), plan


def check_resource(image: ClusterImage, resource: ConfigResource) -> None:
    """Refuse what cannot have stored values: unknown topics (3), bad names (17), other brokers (42)."""
    if resource.type not in FOLDERS:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Unsupported resource type {int(resource.type)}")
    if resource.type == ConfigType.TOPIC:
        refusal = topic_names.refusal_of(resource.name)
        if refusal is not None:
            raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, refusal)
        if resource.name not in image.topics:
            raise Refused(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{resource.name}' does not exist."
            )
    elif resource.type == ConfigType.BROKER and resource.name:
        if not resource.name.isascii() or not resource.name.isdigit():
            raise Refused(
                ErrorCode.INVALID_REQUEST,
                f"Node id must be an integer, but it is: {resource.name}",
            )
    elif not resource.name and resource.type != ConfigType.BROKER:
        raise Refused(ErrorCode.INVALID_REQUEST, "Default resources exist for brokers only.")


def write_of(image: ClusterImage, resource: ConfigResource, values: Mapping[str, str]) -> Operation:
    """The node of a resource lives as long as it has overrides."""
    if not values:
        return Delete(resource.path)
    encoded = payloads.encode_config(values)
    return Put(resource.path, encoded) if resource in image.configs else Create(resource.path, encoded)
