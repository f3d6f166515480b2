"""AlterConfigs and IncrementalAlterConfigs in a cluster: any broker writes them, all brokers are notified.

The overrides are read from the store, changed by the rules that a node alone has, and written if nobody else
changed them meanwhile. Then a note in /config/changes tells all brokers to read them. All that goes on over
lost connections and sessions, as in Kafka: a write without its note would be known to nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from replication.controller.config_changes import ConfigPlan
from replication.controller.outcomes import ConfigOutcome
from replication.metadata import controller_payloads, paths, payloads
from replication.metadata.configs import FOLDERS, ConfigResource
from replication.metadata.image import ClusterImage
from replication.metadata.retry import outlasting
from replication.metadata.store import (
    BadVersion,
    ConnectionLost,
    Delete,
    MetadataStore,
    Node,
    NodeExists,
    NoNode,
    Operation,
    Put,
    SessionExpired,
)

CHANGE_PREFIX: Final = f"{paths.CONFIG_CHANGES}/config_change_"

Planner = Callable[[ClusterImage], tuple[list[ConfigOutcome], ConfigPlan]]


async def change_configs(
    store: MetadataStore,
    image: ClusterImage,
    resources: Sequence[ConfigResource],
    plan: Planner,
    *,
    validate_only: bool,
) -> list[ConfigOutcome]:
    """Do what `plan(image)` says of an image with the stored overrides, and note what was changed."""
    unsure: dict[ConfigResource, None] = {}  # they may have been written
    while True:
        nodes = await outlasting(store, lambda: _read(store, resources))
        stored = {
            resource: payloads.decode_config(resource.path, node.value) for resource, node in nodes.items()
        }
        kept = {resource: values for resource, values in image.configs.items() if resource not in resources}
        outcomes, made = plan(replace(image, configs={**kept, **stored}))
        if validate_only:
            return outcomes
        try:
            if made.operations:
                await store.multi([_if_unchanged(operation, nodes) for operation in made.operations])
        except (BadVersion, NodeExists, NoNode):
            continue
        except (ConnectionLost, SessionExpired):
            unsure.update(dict.fromkeys(made.configs))
            continue
        for resource in {**unsure, **dict.fromkeys(made.configs)}:
            await notify(store, resource)
        return outcomes


async def notify(store: MetadataStore, resource: ConfigResource) -> None:
    """Tell all brokers that the overrides of a resource have changed."""
    entity = resource.path.removeprefix(f"{paths.CONFIG}/")
    note = controller_payloads.encode_config_change(entity)
    await outlasting(store, lambda: store.create_sequential(CHANGE_PREFIX, note))


async def _read(store: MetadataStore, resources: Iterable[ConfigResource]) -> dict[ConfigResource, Node]:
    nodes: dict[ConfigResource, Node] = {}
    for resource in resources:
        node = await store.get(resource.path) if resource.type in FOLDERS else None
        if node is not None:
            nodes[resource] = node
    return nodes


def _if_unchanged(operation: Operation, nodes: Mapping[ConfigResource, Node]) -> Operation:
    """The same write, refused if the node is not the one that was read."""
    versions = {resource.path: node.version for resource, node in nodes.items()}
    if isinstance(operation, Put | Delete) and operation.path in versions:
        return replace(operation, version=versions[operation.path])
    return operation
