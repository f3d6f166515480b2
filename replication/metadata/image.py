"""What a broker knows of the cluster at one moment: an immutable picture, replaced as a whole when something
changes.

Readers take `holder.current` once and use it to the end of their work; nothing in an image ever changes, so
two equal references mean that nothing changed. A new image shares every untouched topic with the old one, and
`changes_between` tells the difference by identity, without a look into unchanged topics.

The holder calls its subscribers synchronously and in the order in which they subscribed; when `publish`
returns, the replica manager has applied the image, so an answer sent afterwards names leaders that already
serve.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from replication.metadata.configs import ConfigResource
from replication.metadata.features import FeatureImage

NO_LEADER = -1

Configs = Mapping[ConfigResource, Mapping[str, str]]


@dataclass(slots=True, frozen=True)
class PartitionImage:
    """One partition. `partition_epoch` is the version of its state node; `leader` is -1 while there is
    none. `offline` are replicas on log directories that have failed.
    """

    index: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    recovering: bool = False
    offline: tuple[int, ...] = ()


@dataclass(slots=True, frozen=True)
class TopicImage:
    """One topic; `partitions[i].index == i`."""

    name: str
    topic_id: bytes
    partitions: tuple[PartitionImage, ...]

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].replicas)


@dataclass(slots=True, frozen=True)
class EndpointImage:
    """Where a listener of a broker is reached."""

    host: str
    port: int
    security_protocol: str = "PLAINTEXT"


@dataclass(slots=True, frozen=True)
class BrokerImage:
    """A live broker. `endpoints` by listener name; `epoch` is the id of the transaction that registered
    it. `features` are the levels of ours that its registration names, if that was read, and `cordoned`
    whether it says that all its log directories take no new partitions.
    """

    broker_id: int
    epoch: int
    endpoints: Mapping[str, EndpointImage]
    rack: str | None = None
    features: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    cordoned: bool = False


@dataclass(slots=True, frozen=True)
class ClusterImage:
    """All of it. `configs` holds overrides only; a resource is in it if it has a node in the store."""

    cluster_id: str = ""
    controller_id: int = -1
    controller_epoch: int = 0
    brokers: Mapping[int, BrokerImage] = field(default_factory=lambda: MappingProxyType({}))
    topics: Mapping[str, TopicImage] = field(default_factory=lambda: MappingProxyType({}))
    topics_by_id: Mapping[bytes, TopicImage] = field(default_factory=lambda: MappingProxyType({}))
    configs: Configs = field(default_factory=lambda: MappingProxyType({}))
    features: FeatureImage = field(default_factory=FeatureImage)

    def overrides(self, resource: ConfigResource) -> Mapping[str, str]:
        """The overrides of a resource, empty where it has none."""
        return self.configs.get(resource, MappingProxyType({}))

    def partition(self, topic: str, index: int) -> PartitionImage | None:
        found = self.topics.get(topic)
        return found.partitions[index] if found is not None and 0 <= index < len(found.partitions) else None

    def with_topics(self, changed: Iterable[TopicImage], removed: Iterable[str] = ()) -> ClusterImage:
        """The image after topics were added, replaced or removed."""
        topics, by_id = dict(self.topics), dict(self.topics_by_id)
        for name in removed:
            by_id.pop(topics.pop(name).topic_id, None)
        for topic in changed:
            before = topics.get(topic.name)
            if before is not None:
                by_id.pop(before.topic_id, None)
            topics[topic.name] = topic
            by_id[topic.topic_id] = topic
        return replace(self, topics=MappingProxyType(topics), topics_by_id=MappingProxyType(by_id))

    def with_configs(self, changed: Configs) -> ClusterImage:
        """The image after resources got these overrides; an empty mapping removes the resource."""
        configs = dict(self.configs)
        for resource, values in changed.items():
            if values:
                configs[resource] = MappingProxyType(dict(values))
            else:
                configs.pop(resource, None)
        return replace(self, configs=MappingProxyType(configs))

    def with_brokers(self, brokers: Mapping[int, BrokerImage]) -> ClusterImage:
        """The image with this set of live brokers."""
        return replace(self, brokers=MappingProxyType(dict(sorted(brokers.items()))))


@dataclass(slots=True)
class ImageChanges:
    """The difference of two images. A topic that was deleted and made anew under the same name is in both
    `deleted` and `created`.
    """

    created: list[TopicImage] = field(default_factory=list)
    deleted: list[TopicImage] = field(default_factory=list)
    changed: list[tuple[TopicImage, TopicImage]] = field(default_factory=list)
    configs: list[ConfigResource] = field(default_factory=list)

    def with_new_partitions(self) -> list[TopicImage]:
        """The topics that are new or have grown."""
        grown = [now for before, now in self.changed if len(now.partitions) > len(before.partitions)]
        return self.created + grown


def changes_between(old: ClusterImage, new: ClusterImage) -> ImageChanges:
    """What happened on the way from `old` to `new`."""
    changes = ImageChanges()
    if old.topics is not new.topics:
        for name, topic in old.topics.items():
            now = new.topics.get(name)
            if now is None or now.topic_id != topic.topic_id:
                changes.deleted.append(topic)
        for name, topic in new.topics.items():
            before = old.topics.get(name)
            if before is None or before.topic_id != topic.topic_id:
                changes.created.append(topic)
            elif before is not topic:
                changes.changed.append((before, topic))
    if old.configs is not new.configs:
        for resource in {**old.configs, **new.configs}:
            if old.configs.get(resource) is not new.configs.get(resource):
                changes.configs.append(resource)
    return changes


Subscriber = Callable[[ClusterImage, ClusterImage], None]


class ImageHolder:
    """Owns the current image and tells subscribers `(old, new)` when it is replaced."""

    def __init__(self, image: ClusterImage | None = None) -> None:
        self.current = image if image is not None else ClusterImage()
        self._subscribers: list[Subscriber] = []

    def subscribe(self, subscriber: Subscriber) -> None:
        self._subscribers.append(subscriber)

    def publish(self, image: ClusterImage) -> None:
        """Make `image` the current one, then tell the subscribers."""
        old, self.current = self.current, image
        if old is not image:
            for subscriber in self._subscribers:
                subscriber(old, image)
