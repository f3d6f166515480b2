"""All partitions that this broker hosts: found by name or by topic id, made and removed as images say.

Subscribed to the ImageHolder, so that a published image is applied before the controller's answer leaves. The
logs come from the log manager; a partition whose log cannot be made (full or failed disk) is kept in `failed`
and answers 56 until the next attempt.

The error of a partition that is not here: unknown to the image 3 (by id: 100), in the image but on another
broker 6, on a failed disk 56.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

from protocol.errors import ErrorCode
from replication.fetch import Wanted
from replication.metadata.configs import ConfigResource, ConfigType
from replication.metadata.image import (
    ClusterImage,
    ImageHolder,
    PartitionImage,
    TopicImage,
    changes_between,
)
from replication.partition import Partition
from storage.errors import StorageError
from storage.log_config import LogConfig

if TYPE_CHECKING:
    from storage.future_logs import FutureLogs
    from storage.partition_log import PartitionLog

_log = logging.getLogger(__name__)


class Logs(Protocol):
    """What is needed of storage's LogManager."""

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        """The log of a partition, if there is one on this broker."""

    def get_or_create(
        self, topic: str, partition: int, topic_id: bytes, config: LogConfig, *, is_new: bool = True
    ) -> PartitionLog:
        """The log, made in the directory with the fewest partitions if there is none. Raises StorageError.

        One that is not new is not made while a directory is offline, where it may lie.
        """

    def delete(self, topic: str, partition: int) -> None:
        """Set the log aside under another name at once; its files go later."""

    @property
    def futures(self) -> FutureLogs:
        """Copies of logs that are on their way to another directory."""

    def set_aside(self, topic: str, partition: int, kind: str) -> None:
        """Close the log and rename its directory with the suffix `kind` (`stray`: kept for good)."""

    def __iter__(self) -> Iterator[PartitionLog]: ...


_AT_ONCE = 10  # logs that are made or set aside without a pause, at 50-200 us each

TopicConfigOf = Callable[[str, Mapping[str, str]], LogConfig]
"""Builds the settings of a topic's logs from its name and overrides, over the broker's defaults."""


class ReplicaManager:
    """The partitions of this broker. `wanted_partition` is the Lookup of replication.fetch."""

    def __init__(self, node_id: int, holder: ImageHolder, logs: Logs, config_of: TopicConfigOf) -> None:
        self._node_id = node_id
        self._holder = holder
        self._logs = logs
        self._config_of = config_of
        self._by_name: dict[tuple[str, int], Partition] = {}
        self._by_id: dict[tuple[bytes, int], Partition] = {}
        self._prepared: dict[tuple[bytes, int], Partition] = {}
        self._removed: dict[tuple[str, int], None] = {}  # their logs are still to be set aside
        self.failed: dict[tuple[str, int], StorageError] = {}
        self._unmade: dict[tuple[str, int], None] = {}  # of those, new ones: no disk holds their log
        self._dir_failed = False
        self._on_change: list[Callable[[], None]] = []
        self._started = False  # the first image was applied: topics that come later are new
        holder.subscribe(self.apply)

    def __len__(self) -> int:
        return len(self._by_name)

    def __iter__(self) -> Iterator[Partition]:
        return iter(list(self._by_name.values()))

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener()` after roles, topics or topic configurations changed: remembered request shapes
        go.
        """
        self._on_change.append(listener)

    # Finding

    def get(self, topic: str, index: int) -> Partition | None:
        """The hosted partition, or None; then `error_of` says why."""
        return self._by_name.get((topic, index))

    def get_by_id(self, topic_id: bytes, index: int) -> Partition | None:
        """The hosted partition, or None; then `error_of_id` says why."""
        return self._by_id.get((topic_id, index))

    @property
    def any_offline(self) -> bool:
        """Whether there may be partitions for which `is_offline` holds."""
        return self._dir_failed or bool(self.failed)

    def is_offline(self, topic: str, index: int) -> bool:
        """Whether the log of a partition of this broker is on a disk that failed, or could not be made."""
        found = self._by_name.get((topic, index))
        return (topic, index) in self.failed if found is None else found.offline

    def error_of(self, topic: str, index: int) -> ErrorCode:
        """Why `get` found nothing: 56, 6 or 3."""
        if (topic, index) in self.failed:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if self._holder.current.partition(topic, index) is not None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def error_of_id(self, topic_id: bytes, index: int) -> ErrorCode:
        """Why `get_by_id` found nothing: 100 for an unknown id, else as `error_of`."""
        topic = self._holder.current.topics_by_id.get(topic_id)
        return ErrorCode.UNKNOWN_TOPIC_ID if topic is None else self.error_of(topic.name, index)

    def find(self, topic: str, index: int) -> Partition | ErrorCode:
        """The hosted partition or the reason why it is not here."""
        found = self._by_name.get((topic, index))
        return found if found is not None else self.error_of(topic, index)

    def wanted_partition(self, wanted: Wanted) -> Partition | ErrorCode:
        """The partition that a fetch names by id (v13+) or by name."""
        if wanted.topic:
            return self.find(wanted.topic, wanted.index)
        found = self._by_id.get((wanted.topic_id, wanted.index))
        if found is None:
            return self.error_of_id(wanted.topic_id, wanted.index)
        return found if found.log.topic_id == wanted.topic_id else ErrorCode.INCONSISTENT_TOPIC_ID

    # Images

    def apply(self, old: ClusterImage, new: ClusterImage) -> None:
        """Follow the cluster from one image to the next; see ImageHolder."""
        changes = changes_between(old, new)
        for topic in changes.deleted:
            self._remove_topic(topic)
        for topic in changes.created:
            self._host(new, topic, topic.partitions)
        for before, topic in changes.changed:
            known = before.partitions
            changed = [
                partition
                for partition in topic.partitions
                if partition.index >= len(known) or partition is not known[partition.index]
            ]
            self._host(new, topic, changed)
        self._follow_configs(new, changes.configs)
        self._started = True
        if changes.deleted or changes.created or changes.changed or changes.configs:
            self.changed()

    async def prepare(self, image: ClusterImage) -> None:
        """Make the logs that `image` needs and that are not there yet, before it is published.

        Each log costs some work on the disk; the loop gets its turn in between, so that a topic with
        thousands of partitions does not stop everybody else. What fails here is tried again, and told, by
        `apply`.
        """
        self._prepared.clear()
        made = 0
        for topic in changes_between(self._holder.current, image).with_new_partitions():
            config = self._topic_config(image, topic.name)
            for state in topic.partitions:
                if self._node_id not in state.replicas or (topic.name, state.index) in self._by_name:
                    continue
                try:
                    log = self._log_of(topic, state.index, config, self._started)
                except StorageError:
                    break
                partition = Partition(topic.name, state.index, topic.topic_id, log)
                partition.apply(state, self._node_id)
                self._prepared[topic.topic_id, state.index] = partition
                made += 1
                if made % _AT_ONCE == 0:
                    await asyncio.sleep(0)

    async def settle(self) -> None:
        """Set the logs of deleted topics aside, after the image without them was published.

        The partitions serve no more; as in `prepare` the loop gets its turn in between. A crash before the
        end leaves logs that belong to no topic, which the next start keeps as strays.
        """
        done = 0
        while self._removed:
            self._set_aside(next(iter(self._removed)))
            done += 1
            if done % _AT_ONCE == 0:
                await asyncio.sleep(0)

    def set_strays_aside(self) -> int:
        """After the first image: rename the directories of logs that belong to no topic, and keep them; how
        many.

        They are left over from a topic whose deletion was cut short, or belong to another cluster's
        metadata.
        """
        strays = [log for log in self._logs if (log.topic, log.partition) not in self._by_name]
        for log in strays:
            _log.warning(
                "%s-%d is in no topic of this cluster; it is kept as stray", log.topic, log.partition
            )
            self._logs.set_aside(log.topic, log.partition, "stray")
        return len(strays)

    def make_missing(self) -> int:
        """Try again to make the logs of new partitions that found no room; how many there are now."""
        image, made = self._holder.current, 0
        for name, index in list(self._unmade):
            topic, state = image.topics.get(name), image.partition(name, index)
            if topic is None or state is None:
                del self._unmade[name, index]
                continue
            self._host(image, topic, [state])
            made += (name, index) not in self._unmade
        if made:
            self.changed()
        return made

    def directory_failed(self) -> None:
        """A log directory went offline: who waits for its partitions hears so."""
        self._dir_failed = True
        for partition in self:
            if partition.offline:
                partition.tell_watches()
                partition.wake()
        self.changed()

    def changed(self) -> None:
        """Tell those who remember what they found here."""
        for listener in self._on_change:
            listener()

    def refresh_configs(self) -> None:
        """The broker's defaults changed: build the settings of all logs anew."""
        image = self._holder.current
        for topic in image.topics.values():
            self._follow_topic_config(image, topic)
        self.changed()

    def _host(
        self,
        image: ClusterImage,
        topic: TopicImage,
        partitions: tuple[PartitionImage, ...] | list[PartitionImage],
    ) -> None:
        config = self._topic_config(image, topic.name)
        for state in partitions:
            if self._node_id not in state.replicas:
                continue
            prepared = self._prepared.pop((topic.topic_id, state.index), None)
            if prepared is not None:
                self._add(prepared)
                continue
            partition = self._by_name.get((topic.name, state.index))
            if partition is None:
                partition = self._make(topic, state.index, config, is_new=self._started)
            if partition is not None:
                try:
                    partition.apply(state, self._node_id)
                except StorageError as error:  # its role is taken; requests meet the failed disk themselves
                    _log.error("The new leader epoch of %s is not on disk: %s", partition, error)

    def _make(self, topic: TopicImage, index: int, config: LogConfig, is_new: bool) -> Partition | None:
        key = (topic.name, index)
        try:
            log = self._log_of(topic, index, config, is_new)
        except StorageError as error:
            _log.error("No log for %s-%d: %s", topic.name, index, error)
            self.failed[key] = error
            if is_new:
                self._unmade[key] = None
            return None
        partition = Partition(topic.name, index, topic.topic_id, log)
        self._add(partition)
        return partition

    def _log_of(self, topic: TopicImage, index: int, config: LogConfig, is_new: bool) -> PartitionLog:
        if (topic.name, index) in self._removed:  # of the topic that had this name before
            self._set_aside((topic.name, index))
        return self._logs.get_or_create(topic.name, index, topic.topic_id, config, is_new=is_new)

    def _add(self, partition: Partition) -> None:
        key = partition.topic, partition.index
        self.failed.pop(key, None)
        self._unmade.pop(key, None)
        self._by_name[key] = partition
        self._by_id[partition.topic_id, partition.index] = partition

    def _remove_topic(self, topic: TopicImage) -> None:
        for state in topic.partitions:
            self.failed.pop((topic.name, state.index), None)
            self._by_id.pop((topic.topic_id, state.index), None)
            partition = self._by_name.pop((topic.name, state.index), None)
            if partition is None:
                continue
            partition.retire()
            self._removed[topic.name, state.index] = None

    def _set_aside(self, key: tuple[str, int]) -> None:
        del self._removed[key]
        try:
            self._logs.delete(*key)
        except StorageError as error:
            _log.error("The log of deleted %s-%d stays on disk: %s", *key, error)

    def _topic_config(self, image: ClusterImage, topic: str) -> LogConfig:
        return self._config_of(topic, image.overrides(ConfigResource(ConfigType.TOPIC, topic)))

    def _follow_configs(self, image: ClusterImage, resources: list[ConfigResource]) -> None:
        for resource in resources:
            topic = image.topics.get(resource.name)
            if resource.type == ConfigType.TOPIC and topic is not None:
                self._follow_topic_config(image, topic)

    def _follow_topic_config(self, image: ClusterImage, topic: TopicImage) -> None:
        config = self._topic_config(image, topic.name)
        for state in topic.partitions:
            partition = self._by_name.get((topic.name, state.index))
            if partition is not None:
                partition.update_config(config)
                future = self._logs.futures.get(topic.name, state.index)
                if future is not None:
                    future.update_config(config)
