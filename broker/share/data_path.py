"""Share groups' data path on this broker: when it is made, what it follows, and when it ends.

Nothing of it is imported until somebody fetches for a share group. It follows leadership through the replica
manager, and connections through the hub: a share session ends with the connection on which it began. When
share.version goes to 0 all sessions end; what is stored of share partitions is loaded again later.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from replication.metadata.features import SHARE_VERSION
from storage.errors import CorruptLog, StorageError

if TYPE_CHECKING:
    from broker.config.broker_config import BrokerConfig
    from broker.share.settings import GroupValue
    from protocol.errors import ErrorCode
    from replication.metadata.image import ClusterImage
    from replication.partition import Partition
    from replication.replica_manager import ReplicaManager
    from replication.share.ports import SharePersister, ShareSettings
    from replication.share.share_fetch import ShareFetch, ShareRow, ShareWish
    from replication.share.share_partitions import Place, SharePartitions
    from replication.share.share_sessions import SessionKey, ShareSessions
    from runtime.system import Env

log = logging.getLogger("ottla.share")


class ShareDataPath:
    """See the module. `enabled()`: the feature share.version is on."""

    def __init__(
        self,
        env: Env,
        config: BrokerConfig,
        replicas: ReplicaManager,
        persister: Callable[[], SharePersister],
        *,
        enabled: Callable[[], bool] = lambda: True,
        group_value: GroupValue | None = None,
    ) -> None:
        self._env, self._config, self._replicas = env, config, replicas
        self._persister = persister
        self._group_value = group_value
        self.enabled = enabled
        self._made: _Made | None = None

    @property
    def parts(self) -> _Made:
        """Everything, made at the first call."""
        if self._made is None:
            self._made = _Made(self._env, self._config, self._replicas, self._persister(), self._group_value)
            self._replicas.on_change(self._made.partitions.follow_leadership)
        return self._made

    def connection_gone(self, connection: object) -> None:
        """A client's connection is closed."""
        if self._made is not None:
            self._made.connection_gone(connection)

    def follow(self, old: ClusterImage, new: ClusterImage) -> None:
        """The image has changed."""
        turned_off = old.features.level(SHARE_VERSION) > 0 and new.features.level(SHARE_VERSION) == 0
        if turned_off and self._made is not None:
            self._made.forget_all()

    def close(self) -> None:
        """Serve nothing any more; fetches that wait are answered with nothing."""
        if self._made is not None:
            self._made.forget_all()


class _Made:
    """The data path as it works."""

    def __init__(
        self,
        env: Env,
        config: BrokerConfig,
        replicas: ReplicaManager,
        persister: SharePersister,
        group_value: GroupValue | None,
    ) -> None:
        from broker.share.settings import ShareGroupSettings, nothing_set
        from replication.deadline_buckets import DeadlineBuckets
        from replication.share.share_partitions import SharePartitions
        from replication.share.share_sessions import ShareSessions

        self._env = env
        self.fetch_max_bytes = config.integer("fetch.max.bytes")
        self.settings: ShareSettings = ShareGroupSettings(config, group_value or nothing_set)
        self.deadlines = DeadlineBuckets(env.loop)
        self.partitions: SharePartitions = SharePartitions(
            lambda topic_id, index: (
                replicas.get_by_id(topic_id, index) or replicas.error_of_id(topic_id, index)
            ),
            persister,
            self.settings,
            env.clock,
            env.timer,
            self._search_time,
        )
        self.sessions: ShareSessions = ShareSessions(
            config.integer("group.share.max.share.sessions"), self.release
        )
        self._waiting: dict[object, ShareFetch] = {}

    def fetch(
        self,
        wish: ShareWish,
        places: Sequence[Place],
        connection: object,
        done: Callable[[list[ShareRow]], None],
    ) -> None:
        """Begin a fetch; it ends without an answer if its connection goes."""
        from replication.share.share_fetch import ShareFetch

        answered = False

        def answer(rows: list[ShareRow]) -> None:
            nonlocal answered
            answered = True
            if self._waiting.get(connection) is fetch:
                del self._waiting[connection]
            done(rows)

        fetch = ShareFetch(self.partitions, wish, self.deadlines, answer)
        fetch.start(places)
        if not answered:
            self._waiting[connection] = fetch

    def release(self, key: SessionKey, places: Sequence[Place]) -> None:
        """A session is over: what the member holds is free again. With the last session of a group here its
        share partitions go, once that is stored.
        """
        group_id, member = key
        left = len(places)

        def released(error: ErrorCode, message: str | None) -> None:
            nonlocal left
            left -= 1
            if not left and not self.sessions.has_members(group_id):
                self.partitions.drop_group(group_id)

        for place in places:
            self.partitions.release(group_id, member, place, released)

    def later(self, wait_ms: int, call: Callable[[], None]) -> None:
        """Call when the time is over."""
        self._env.timer.add(wait_ms, call)

    def connection_gone(self, connection: object) -> None:
        """Its fetch is cancelled and its sessions end."""
        fetch = self._waiting.pop(connection, None)
        if fetch is not None:
            fetch.cancel()
        self.sessions.owner_gone(connection)

    def forget_all(self) -> None:
        """Answer the fetches that wait with nothing, end all sessions, drop all share partitions."""
        for fetch in list(self._waiting.values()):
            fetch.expire()
        self.sessions.forget_all()
        self.partitions.close()

    def _search_time(self, partition: Partition, timestamp: int, found: Callable[[int | None], None]) -> None:
        async def search() -> None:
            offset = None
            try:
                upto = partition.log.high_watermark
                first = await self._env.run_blocking(partition.log.offset_for_timestamp, timestamp, upto)
                offset = first.offset if first is not None else None
            except (CorruptLog, StorageError) as error:
                log.warning("No start by time in %s: %s", partition, error)
            found(offset)

        self._env.tasks.spawn(f"start of a share group in {partition}", search())
