"""All fetchers of a broker: which of them copies which partition.

num.replica.fetchers connections to each leader share its partitions by a hash that Kafka uses, too. A fetcher
is made with its first partition, and ends with its last one. When their number changes, partitions move to
the fetcher that they have by the new one, and go on there from the end of their logs.
"""

from __future__ import annotations

from protocol.java_hash import java_hash
from replication.cluster.channel import Channel, Channels
from replication.cluster.fetcher import Fetcher, FetcherSettings, World
from replication.cluster.follower_session import Key
from replication.partition import Partition
from runtime.tasks import TaskScope

_INT_MIN, _SIGN, _WRAP = -(1 << 31), 1 << 31, 1 << 32


def fetcher_id(topic: str, index: int, count: int) -> int:
    """Which of `count` fetchers of a leader has the partition."""
    code = (31 * java_hash(topic) + index) % _WRAP
    if code >= _SIGN:
        code -= _WRAP
    return 0 if code == _INT_MIN else abs(code) % count


class Fetchers:
    """Implements `replicas.Fetching`. `failed` are partitions that wait for a new LeaderAndIsr."""

    def __init__(self, channels: Channels, settings: FetcherSettings, world: World, tasks: TaskScope) -> None:
        self._channels = channels
        self._settings = settings
        self._per_leader = settings.fetchers_per_leader
        self._world = world
        self._tasks = tasks
        self._running: dict[tuple[int, int], tuple[Fetcher, Channel]] = {}
        self._of: dict[Key, tuple[int, int]] = {}
        self._closed = False

    def __len__(self) -> int:
        return len(self._running)

    @property
    def failed(self) -> list[Key]:
        """Partitions that are not fetched though they should be."""
        return [key for fetcher, _ in self._running.values() for key in fetcher.failed]

    def of(self, partition: Partition) -> Fetcher | None:
        """The fetcher that has the partition."""
        place = self._of.get((partition.topic, partition.index))
        return None if place is None else self._running[place][0]

    def follow(self, partition: Partition) -> None:
        """See `replicas.Fetching`."""
        key = (partition.topic, partition.index)
        place = (partition.leader_id, fetcher_id(partition.topic, partition.index, self._per_leader))
        if self._of.get(key, place) != place:
            self.forget(partition)
        if self._closed:
            return
        self._of[key] = place
        self._at(place).add(partition)

    def forget(self, partition: Partition) -> None:
        """See `replicas.Fetching`."""
        key = (partition.topic, partition.index)
        place = self._of.pop(key, None)
        if place is None:
            return
        fetcher, _ = self._running[place]
        fetcher.remove(key)
        fetcher.failed.pop(key, None)
        if not len(fetcher) and not fetcher.failed:
            self._end(place)

    def resize(self, per_leader: int) -> None:
        """num.replica.fetchers has another value. Partitions that failed wait where they are."""
        if per_leader == self._per_leader:
            return
        self._per_leader = per_leader
        for key, place in list(self._of.items()):
            followed = self._running[place][0].get(key)
            if followed is not None and place[1] != fetcher_id(*key, per_leader):
                self.follow(followed.partition)

    def _at(self, place: tuple[int, int]) -> Fetcher:
        running = self._running.get(place)
        if running is None:
            leader_id, number = place
            channel = self._channels.to(leader_id, f"fetcher-{number}")
            running = (Fetcher(leader_id, channel, self._settings, self._world), channel)
            self._running[place] = running
            self._tasks.spawn(f"fetcher {number} of broker {leader_id}", self._run(*running))
        return running[0]

    async def _run(self, fetcher: Fetcher, channel: Channel) -> None:
        try:
            await fetcher.run()
        finally:
            await channel.close()

    def _end(self, place: tuple[int, int]) -> None:
        fetcher, channel = self._running.pop(place)
        fetcher.stop()
        channel.abort()

    def close(self) -> None:
        """Fetch nothing any more; the tasks end."""
        self._closed = True
        for place in list(self._running):
            self._end(place)
        self._of.clear()
