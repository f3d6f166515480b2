"""CreateTopics, CreatePartitions and DeleteTopics on the controller of a cluster.

What is refused is what a node alone refuses. What is accepted becomes the node that asks for it, a topic's
with its assignment or a deletion's marker, which any broker might have written; the controller then does at
once what it would do when it saw the node.
"""

from __future__ import annotations

from collections.abc import Sequence

from protocol.errors import ErrorCode
from replication.controller import topic_creation, topic_deletion
from replication.controller.ledger import Ledger
from replication.controller.outcomes import (
    ControllerSettings,
    DeletionOutcome,
    MorePartitions,
    NewTopic,
    PartitionsOutcome,
    TopicOutcome,
    TopicToDelete,
)
from replication.controller.reign import Reign
from replication.controller.state_image import image_of
from replication.controller.topic_creation import encode_assignment
from replication.metadata import paths, payloads
from replication.metadata.configs import ConfigResource, ConfigRules, ConfigType
from replication.metadata.image import TopicImage
from replication.metadata.store import Create, NodeExists, NoNode, Operation, Put
from runtime.entropy import Random


async def create_topics(
    reign: Reign,
    wanted: Sequence[NewTopic],
    settings: ControllerSettings,
    rules: ConfigRules,
    random: Random,
    *,
    validate_only: bool,
) -> list[TopicOutcome]:
    """One outcome for each distinct name."""
    image = image_of(reign.state)
    outcomes, changes = topic_creation.plan_topics(image, wanted, settings, rules, random)
    by_name = {outcome.name: outcome for outcome in outcomes}
    for outcome in outcomes:
        if outcome.error is ErrorCode.TOPIC_ALREADY_EXISTS and outcome.name in reign.state.deleting:
            outcome.message = f"Topic '{outcome.name}' is marked for deletion."
    if validate_only or not changes.topics:
        return outcomes
    for name, topic in changes.topics.items():
        configs = changes.configs.get(ConfigResource(ConfigType.TOPIC, name), {})
        try:
            await _create(reign.office.ledger, topic, dict(configs))
        except NodeExists:  # another broker has just created it by itself
            by_name[name] = TopicOutcome(
                name, ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists."
            )
    await reign.topics.on_topics()
    return list(by_name.values())


async def _create(ledger: Ledger, topic: TopicImage, configs: dict[str, str]) -> None:
    """The topic's node with the folder of its partitions, which saves the controller a write, and with its
    configuration, which replaces one that was left there.
    """
    path = ConfigResource(ConfigType.TOPIC, topic.name).path
    operations: list[Operation] = []
    left = await ledger.get(path)
    if left is not None:
        operations.append(Put(path, payloads.encode_config(configs)))
    elif configs:
        operations.append(Create(path, payloads.encode_config(configs)))
    operations.append(Create(paths.topic(topic.name), encode_assignment(topic)))
    operations.append(Create(paths.partitions(topic.name), b""))
    await ledger.write_unfenced(operations)


async def create_partitions(
    reign: Reign, wanted: Sequence[MorePartitions], *, validate_only: bool
) -> list[PartitionsOutcome]:
    """One outcome for each distinct name."""
    outcomes, changes = topic_creation.plan_partitions(image_of(reign.state), wanted)
    by_name = {outcome.name: outcome for outcome in outcomes}
    for name, topic in changes.topics.items():
        outcome = by_name[name]
        if name in reign.state.deleting:
            outcome.error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            outcome.message = f"Topic '{name}' is marked for deletion."
        elif not validate_only:
            try:
                grown = Put(paths.topic(name), encode_assignment(topic))
                await reign.office.ledger.write_unfenced([grown])
            except NoNode:
                outcome.error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            await reign.topics.on_partitions(name)
    return outcomes


async def delete_topics(reign: Reign, wanted: Sequence[TopicToDelete]) -> list[DeletionOutcome]:
    """One outcome for each distinct topic. Deleting a topic that is marked already is no error, unless its
    deletion has begun: then it is unknown.
    """
    outcomes, deletions = topic_deletion.plan_deletions(image_of(reign.state), wanted)
    given = {(topic.name, topic.topic_id): topic for topic in wanted}
    for outcome, topic in zip(outcomes, given.values(), strict=True):
        if outcome.error is ErrorCode.NONE and outcome.name in reign.state.deletion_started:
            by_id = topic.name is None
            unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            outcome.error, outcome.message = unknown, unknown.message
    for name in deletions.removed:
        if name not in reign.state.deleting:
            try:
                await reign.office.ledger.write_unfenced([Create(f"{paths.DELETE_TOPICS}/{name}", b"")])
            except NodeExists:
                continue
    if deletions.removed:
        await reign.deletions.on_markers()
    return outcomes
