"""CreateTopics and CreatePartitions: what is refused, and what an accepted request writes.

Pure: an image goes in, outcomes, store operations and the new topics come out. The controller writes the
operations in one transaction, publishes the image, answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from protocol.errors import ErrorCode
from replication import topic_names
from replication.controller.outcomes import (
    ControllerSettings,
    MorePartitions,
    NewTopic,
    PartitionsOutcome,
    Refused,
    TopicOutcome,
)
from replication.controller.placement import PlacementImpossible, place_replicas
from replication.metadata import paths, payloads
from replication.metadata.configs import ConfigRefused, ConfigResource, ConfigRules, ConfigType
from replication.metadata.image import NO_LEADER, ClusterImage, PartitionImage, TopicImage
from replication.metadata.store import Create, Operation, Put
from runtime.entropy import Random

MAX_PARTITIONS_PER_REQUEST = 10_000
NO_SETTINGS = ControllerSettings(node_id=-1)
_NO_TAKERS = "All brokers are currently fenced, or have all their log directories cordoned."
"""Kafka's controller refuses more in one request with 44."""


@dataclass(slots=True)
class TopicChanges:
    """What is to be written and published. `topics` replace or extend those of the image."""

    operations: list[Operation] = field(default_factory=list)
    topics: dict[str, TopicImage] = field(default_factory=dict)
    configs: dict[ConfigResource, Mapping[str, str]] = field(default_factory=dict)

    def image_after(self, image: ClusterImage) -> ClusterImage:
        changed = image.with_topics(self.topics.values()) if self.topics else image
        return changed.with_configs(self.configs) if self.configs else changed


def plan_topics(
    image: ClusterImage,
    wanted: Sequence[NewTopic],
    settings: ControllerSettings,
    rules: ConfigRules,
    random: Random,
) -> tuple[list[TopicOutcome], TopicChanges]:
    """One outcome for each distinct name, in the order of the request."""
    changes = TopicChanges()
    times = Counter(topic.name for topic in wanted)
    taken = topic_names.Collisions(image.topics)
    too_many = _total_partitions(wanted, settings) > MAX_PARTITIONS_PER_REQUEST
    outcomes: dict[str, TopicOutcome] = {}
    for topic in wanted:
        if topic.name in outcomes:
            continue
        try:
            if times[topic.name] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            if too_many:
                raise Refused(
                    ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request."
                )
            outcomes[topic.name] = _plan_topic(image, topic, settings, rules, random, changes, taken)
        except Refused as refused:
            outcomes[topic.name] = TopicOutcome(topic.name, refused.error, refused.message)
    return list(outcomes.values()), changes


def _plan_topic(
    image: ClusterImage,
    wanted: NewTopic,
    settings: ControllerSettings,
    rules: ConfigRules,
    random: Random,
    changes: TopicChanges,
    taken: topic_names.Collisions,
) -> TopicOutcome:
    _check_name(image, wanted.name, taken)
    resource = ConfigResource(ConfigType.TOPIC, wanted.name)
    configs = _check_configs(resource, wanted, rules)
    replicas = _assigned(image, wanted) if wanted.assignments else _placed(image, wanted, settings, random)
    if wanted.assignments:
        _refuse_cordoned(image, replicas, settings)
    topic_id = random.uuid()
    while topic_id in image.topics_by_id:
        topic_id = random.uuid()
    partitions = new_partitions(image, replicas)
    topic = TopicImage(wanted.name, topic_id, partitions)
    if configs:
        changes.operations.append(Create(resource.path, payloads.encode_config(configs)))
        changes.configs[resource] = configs
    changes.operations.append(Create(paths.topic(topic.name), encode_assignment(topic)))
    changes.operations.append(Create(paths.partitions(topic.name), b""))
    changes.operations += state_creations(topic.name, partitions, image.controller_epoch)
    changes.topics[topic.name] = topic
    taken.add(topic.name)
    return TopicOutcome(
        topic.name,
        topic_id=topic_id,
        num_partitions=len(partitions),
        replication_factor=topic.replication_factor,
        configs=configs,
    )


def _check_name(image: ClusterImage, name: str, taken: topic_names.Collisions) -> None:
    if name == topic_names.METADATA_TOPIC:
        raise Refused(
            ErrorCode.INVALID_REQUEST,
            f"Creation of internal topic {topic_names.METADATA_TOPIC} is prohibited.",
        )
    refusal = topic_names.refusal_of(name)
    if refusal is not None:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, refusal)
    if name in image.topics:
        raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    collision = taken.with_name(name)
    if collision is not None:
        raise Refused(
            ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {collision}"
        )


def _check_configs(resource: ConfigResource, wanted: NewTopic, rules: ConfigRules) -> dict[str, str]:
    configs: dict[str, str] = {}
    for key, value in wanted.configs:
        if value is None:
            raise Refused(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {key}")
        configs[key] = value
    try:
        rules.validate(resource, configs)
    except ConfigRefused as refused:
        raise Refused(refused.error, refused.message) from refused
    return configs


def _placed(
    image: ClusterImage, wanted: NewTopic, settings: ControllerSettings, random: Random
) -> list[tuple[int, ...]]:
    factor, count = wanted.replication_factor, wanted.num_partitions
    if factor < -1 or factor == 0:
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if count < -1 or count == 0:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
        )
    factor = settings.default_replication_factor if factor == -1 else factor
    count = settings.num_partitions if count == -1 else count
    brokers = _takers(image, settings)
    if not brokers:
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {factor} time(s): {_NO_TAKERS}",
        )
    try:
        return place_replicas(
            brokers,
            count,
            factor,
            start=random.integer(0, len(brokers) - 1) if brokers else 0,
            shift=random.integer(0, len(brokers) - 1) if brokers else 0,
        )
    except PlacementImpossible as impossible:
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {factor} time(s): {impossible}",
        ) from impossible


def _takers(image: ClusterImage, settings: ControllerSettings) -> dict[int, str | None]:
    """The brokers that take new partitions, with their racks."""
    return {
        each.broker_id: each.rack
        for each in image.brokers.values()
        if not _is_cordoned(image, settings, each.broker_id)
    }


def _is_cordoned(image: ClusterImage, settings: ControllerSettings, broker_id: int) -> bool:
    if broker_id == settings.node_id and settings.is_cordoned():
        return True
    broker = image.brokers.get(broker_id)
    return broker is not None and broker.cordoned


def _refuse_cordoned(
    image: ClusterImage, assigned: Sequence[tuple[int, ...]], settings: ControllerSettings
) -> None:
    for broker_id in dict.fromkeys(each for replicas in assigned for each in replicas):
        if _is_cordoned(image, settings, broker_id):
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"The manual partition assignment includes broker {broker_id}, "
                "but all its log directories are cordoned.",
            )


def _assigned(image: ClusterImage, wanted: NewTopic) -> list[tuple[int, ...]]:
    """The replicas that the request itself names, by partition."""
    for count, what in (
        (wanted.replication_factor, "replication factor"),
        (wanted.num_partitions, "numPartitions"),
    ):
        if count != -1:
            raise Refused(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {what} was not set to -1.",
            )
    by_partition: dict[int, tuple[int, ...]] = {}
    factor = len(wanted.assignments[0][1])
    for index, replicas in wanted.assignments:
        if index in by_partition:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Found multiple manual partition assignments for partition {index}",
            )
        check_replicas(image, replicas, factor)
        by_partition[index] = replicas
    if sorted(by_partition) != list(range(len(by_partition))):
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "partitions should be a consecutive 0-based integer sequence",
        )
    return [by_partition[index] for index in range(len(by_partition))]


def check_replicas(image: ClusterImage, replicas: tuple[int, ...], factor: int) -> None:
    """Refuse (39) an assignment that is empty, repeats a broker, names an unknown one, or differs in
    length.
    """
    where = "The manual partition assignment includes"
    error = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    if not replicas:
        raise Refused(error, f"{where} an empty replica list.")
    for broker in sorted(replicas):
        if broker < 0:
            raise Refused(error, f"{where} an invalid broker id {broker}.")
        if broker not in image.brokers:
            raise Refused(error, f"{where} broker {broker}, but no such broker is registered.")
        if replicas.count(broker) > 1:
            raise Refused(error, f"{where} the broker {broker} more than once.")
    if len(replicas) != factor:
        raise Refused(
            error,
            f"{where} a partition with {len(replicas)} replica(s), but this is not consistent with previous "
            f"partitions, which have {factor} replica(s).",
        )


def new_partitions(
    image: ClusterImage, replicas: Sequence[tuple[int, ...]], first: int = 0
) -> tuple[PartitionImage, ...]:
    """Partitions at their birth: leader is the first live replica, the ISR all live ones, both epochs 0."""
    partitions: list[PartitionImage] = []
    for index, assigned in enumerate(replicas, first):
        live = tuple(broker for broker in assigned if broker in image.brokers)
        partitions.append(PartitionImage(index, live[0] if live else NO_LEADER, 0, 0, live, assigned))
    return tuple(partitions)


def state_creations(
    topic: str, partitions: Sequence[PartitionImage], controller_epoch: int
) -> list[Operation]:
    """The nodes of new partitions below /brokers/topics/TOPIC/partitions."""
    operations: list[Operation] = []
    for partition in partitions:
        operations.append(Create(paths.partition(topic, partition.index), b""))
        operations.append(
            Create(paths.partition_state(topic, partition.index), encode_state(partition, controller_epoch))
        )
    return operations


def encode_state(partition: PartitionImage, controller_epoch: int) -> bytes:
    return payloads.encode_state(
        payloads.StatePayload(
            partition.leader, partition.leader_epoch, controller_epoch, partition.isr, partition.recovering
        )
    )


def encode_assignment(topic: TopicImage) -> bytes:
    return payloads.encode_topic(
        payloads.TopicPayload(
            topic.topic_id,
            {partition.index: partition.replicas for partition in topic.partitions},
            {partition.index: partition.adding for partition in topic.partitions if partition.adding},
            {partition.index: partition.removing for partition in topic.partitions if partition.removing},
        )
    )


def plan_partitions(
    image: ClusterImage, wanted: Sequence[MorePartitions], settings: ControllerSettings = NO_SETTINGS
) -> tuple[list[PartitionsOutcome], TopicChanges]:
    """One outcome for each distinct name of CreatePartitions, in the order of the request."""
    changes = TopicChanges()
    times = Counter(topic.name for topic in wanted)
    outcomes: dict[str, PartitionsOutcome] = {}
    for topic in wanted:
        if topic.name in outcomes:
            continue
        try:
            if times[topic.name] > 1:
                raise Refused(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            _grow(image, topic, settings, changes)
            outcomes[topic.name] = PartitionsOutcome(topic.name)
        except Refused as refused:
            outcomes[topic.name] = PartitionsOutcome(topic.name, refused.error, refused.message)
    return list(outcomes.values()), changes


def _grow(
    image: ClusterImage, wanted: MorePartitions, settings: ControllerSettings, changes: TopicChanges
) -> None:
    topic = image.topics.get(wanted.name)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    present = len(topic.partitions)
    if wanted.count == present:
        raise Refused(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if wanted.count < present:
        raise Refused(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {present} partition(s); "
            f"{wanted.count} would not be an increase.",
        )
    additional = wanted.count - present
    if additional > MAX_PARTITIONS_PER_REQUEST:
        raise Refused(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    if any(partition.adding or partition.removing for partition in topic.partitions):
        raise Refused(ErrorCode.REASSIGNMENT_IN_PROGRESS, f"A partition of {topic.name} is being reassigned.")
    replicas = _more_replicas(image, topic, wanted, additional, settings)
    added = new_partitions(image, replicas, present)
    grown = replace(topic, partitions=topic.partitions + added)
    changes.operations.append(Put(paths.topic(topic.name), encode_assignment(grown)))
    changes.operations += state_creations(topic.name, added, image.controller_epoch)
    changes.topics[topic.name] = grown


def _more_replicas(
    image: ClusterImage,
    topic: TopicImage,
    wanted: MorePartitions,
    additional: int,
    settings: ControllerSettings,
) -> list[tuple[int, ...]]:
    factor, present = topic.replication_factor, len(topic.partitions)
    if wanted.assignments is not None:
        if len(wanted.assignments) != additional:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"Attempted to add {additional} additional partition(s), but only "
                f"{len(wanted.assignments)} assignment(s) were specified.",
            )
        for replicas in wanted.assignments:
            check_replicas(image, replicas, factor)
        _refuse_cordoned(image, wanted.assignments, settings)
        return list(wanted.assignments)
    brokers = _takers(image, settings)
    if not brokers:
        raise Refused(ErrorCode.INVALID_REPLICATION_FACTOR, _NO_TAKERS)
    first_leader = topic.partitions[0].replicas[0]
    start = next((i for i, broker in enumerate(sorted(brokers)) if broker >= first_leader), 0)
    try:
        return place_replicas(brokers, additional, factor, start=start, shift=start, first_partition=present)
    except PlacementImpossible as impossible:
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {factor} time(s): {impossible}",
        ) from impossible


def _total_partitions(wanted: Sequence[NewTopic], settings: ControllerSettings) -> int:
    total = 0
    for topic in wanted:
        if topic.assignments:
            total += len(topic.assignments)
        elif topic.num_partitions == -1:
            total += settings.num_partitions
        else:
            total += max(topic.num_partitions, 0)
    return total
