"""`ottla topics --describe`: a line for the topic and one for each partition, in Kafka's columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click

from ottla.client import KafkaClient, check
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.uuids import uuid_to_text

RESOURCE_TOPIC = 2
SOURCE_DEFAULT = 5

Topic = m.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
Partition = m.DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition


@dataclass(slots=True, frozen=True)
class Filters:
    """Which part of the description is wanted; everything where none is set."""

    topics_with_overrides: bool = False
    under_replicated: bool = False
    unavailable: bool = False
    under_min_isr: bool = False
    at_min_isr: bool = False

    @property
    def partitions_only(self) -> bool:
        """Whether lines of topics are left out."""
        return self.under_replicated or self.unavailable or self.under_min_isr or self.at_min_isr

    def lets_pass(self, partition: Partition, live: Sequence[int], min_isr: int) -> bool:
        """Whether a partition's line is wanted; `live` are the ids of the brokers that are up."""
        if not self.partitions_only:
            return not self.topics_with_overrides
        isr = len(partition.isr_nodes)
        return (
            (self.under_replicated and isr < len(partition.replica_nodes))
            or (self.unavailable and partition.leader_id not in live)
            or (self.under_min_isr and isr < min_isr)
            or (self.at_min_isr and isr == min_isr)
        )


def describe(client: KafkaClient, names: Sequence[str], filters: Filters, page_size: int) -> None:
    """Prints the topics named; ClientError where one is refused."""
    configs = configs_of(client, names)
    for topic in topics_of(client, names, page_size):
        check(topic.error_code, what=f"topic '{topic.name}'")
        name = topic.name or ""
        own = [(key, value) for key, value, is_default in configs[name] if not is_default]
        if not filters.partitions_only and (own or not filters.topics_with_overrides):
            click.echo(topic_line(topic, own))
        min_isr = int({key: value for key, value, _ in configs[name]}.get("min.insync.replicas") or 1)
        for partition in topic.partitions:
            if filters.lets_pass(partition, list(client.nodes), min_isr):
                click.echo(partition_line(name, partition))


def topic_line(topic: Topic, own: Sequence[tuple[str, str | None]]) -> str:
    """The summary of one topic."""
    settings = ",".join(f"{key}={value}" for key, value in own)
    return (
        f"Topic: {topic.name}\tTopicId: {uuid_to_text(topic.topic_id)}"
        f"\tPartitionCount: {len(topic.partitions)}"
        f"\tReplicationFactor: {len(topic.partitions[0].replica_nodes)}\tConfigs: {settings}"
    )


def partition_line(name: str, partition: Partition) -> str:
    """One partition; a broker that does not tell of eligible leaders shows N/A."""
    leader = "none" if partition.leader_id < 0 else partition.leader_id
    eligible, last = (
        "N/A" if ids is None else joined(ids)
        for ids in (partition.eligible_leader_replicas, partition.last_known_elr)
    )
    return (
        f"\tTopic: {name}\tPartition: {partition.partition_index}\tLeader: {leader}"
        f"\tReplicas: {joined(partition.replica_nodes)}\tIsr: {joined(partition.isr_nodes)}"
        f"\tElr: {eligible}\tLastKnownElr: {last}"
    )


def joined(ids: Sequence[int]) -> str:
    """Broker ids as the columns show them."""
    return ",".join(str(each) for each in ids)


def topics_of(client: KafkaClient, names: Sequence[str], page_size: int) -> Iterator[Topic]:
    """The topics in order, by pages where the broker has the API, else from its metadata."""
    if not client.connection().supports(ApiKey.DESCRIBE_TOPIC_PARTITIONS):
        yield from from_metadata(client, names)
        return
    client.metadata([])
    unfinished: Topic | None = None
    cursor = None
    while True:
        request = m.DescribeTopicPartitionsRequest(
            topics=[m.DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in names],
            response_partition_limit=page_size,
            cursor=cursor,
        )
        response: m.DescribeTopicPartitionsResponse = client.call(request)
        for topic in response.topics:
            if unfinished is not None and unfinished.name == topic.name:
                unfinished.partitions.extend(topic.partitions)
                continue
            if unfinished is not None:
                yield unfinished
            unfinished = topic
        following = response.next_cursor
        if following is None:
            break
        cursor = m.DescribeTopicPartitionsRequest.Cursor(
            topic_name=following.topic_name, partition_index=following.partition_index
        )
    if unfinished is not None:
        yield unfinished


def from_metadata(client: KafkaClient, names: Sequence[str]) -> Iterator[Topic]:
    """The same from a Metadata response, without eligible leaders."""
    for topic in client.metadata(names):
        yield Topic(
            error_code=topic.error_code,
            name=topic.name,
            topic_id=topic.topic_id,
            partitions=[
                Partition(
                    partition_index=each.partition_index,
                    leader_id=each.leader_id,
                    replica_nodes=each.replica_nodes,
                    isr_nodes=each.isr_nodes,
                    eligible_leader_replicas=None,
                    last_known_elr=None,
                )
                for each in topic.partitions
            ],
        )


def configs_of(client: KafkaClient, names: Sequence[str]) -> dict[str, list[tuple[str, str | None, bool]]]:
    """Settings of each topic: (name, value, whether it is the default)."""
    resources = [
        m.DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=RESOURCE_TOPIC, resource_name=name, configuration_keys=None
        )
        for name in names
    ]
    found: dict[str, list[tuple[str, str | None, bool]]] = {}
    for result in client.call(m.DescribeConfigsRequest(resources=resources)).results:
        check(result.error_code, result.error_message)
        found[result.resource_name] = [
            (entry.name, entry.value, entry.config_source == SOURCE_DEFAULT) for entry in result.configs
        ]
    return found
