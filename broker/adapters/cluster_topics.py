"""The topics of the cluster image, as the group coordinator asks about them.

Versions are numbers, as groups remember them for as long as they are there: an image would be kept with it.

Invariant: `names_version` changes only when a topic has come into the image that was not there before, so
that changes of leaders do not have subscriptions by pattern compared with all names again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from coordinator.ports import TopicFacts
from replication.metadata.image import ClusterImage, ImageHolder, TopicImage


class ClusterTopics:
    """coordinator.ports.Topics over the current image."""

    def __init__(self, holder: ImageHolder) -> None:
        self._holder = holder
        self._known: Mapping[str, TopicImage] = holder.current.topics
        self._version = self._names_version = 1

    def version(self) -> int:
        """A count of the images with other topics, as far as somebody asked."""
        self._look()
        return self._version

    def names_version(self) -> int:
        """A count of the times that topics were added, as far as somebody asked."""
        self._look()
        return self._names_version

    def topic(self, name: str) -> TopicFacts | None:
        """The topic of this name."""
        image = self._holder.current
        topic = image.topics.get(name)
        if topic is None:
            return None
        return TopicFacts(topic.name, topic.topic_id, len(topic.partitions), _racks(topic, image))

    def name_of(self, topic_id: bytes) -> str | None:
        """The name of the topic with this id."""
        topic = self._holder.current.topics_by_id.get(topic_id)
        return None if topic is None else topic.name

    def names(self) -> Iterable[str]:
        """All topics, internal ones too."""
        return self._holder.current.topics

    def _look(self) -> None:
        """Each image that changes a topic has a mapping of its own."""
        topics = self._holder.current.topics
        if topics is not self._known:
            self._version += 1
            if topics.keys() - self._known.keys():
                self._names_version += 1
            self._known = topics


def _racks(topic: TopicImage, image: ClusterImage) -> tuple[tuple[str, ...], ...]:
    """Without racks, the usual case, nothing is gone through."""
    racks = {broker_id: broker.rack for broker_id, broker in image.brokers.items() if broker.rack is not None}
    if not racks:
        return ()
    return tuple(
        tuple(sorted({racks[replica] for replica in partition.replicas if replica in racks}))
        for partition in topic.partitions
    )
