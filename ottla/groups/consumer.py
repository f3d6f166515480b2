"""A blocking consumer in a group: membership, positions and commits around `ottla.reader`.

Positions begin at what the group has committed, else at `reset`; a membership that keeps partitions over a
rebalance goes on where it is in them. They are committed every
auto_commit_interval_ms, before a rebalance takes partitions away, and at the end; not at all where the
interval is None. A record counts as consumed once the caller has asked for the one after it or has closed the
consumer: at least once, like Java's consumer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ottla.client import ClientError, KafkaClient
from ottla.groups.admin import GroupAdmin, Place
from ottla.groups.membership import Membership
from ottla.reader import Reader, Received

NO_RESET = 0  # a group without offsets is an error
IDLE_PAUSE_S = 0.1


class ConsumerSettings(NamedTuple):
    """How a group's consumer reads; `reset` is EARLIEST, LATEST or NO_RESET."""

    reset: int
    read_committed: bool = False
    auto_commit_interval_ms: int | None = 5_000
    metadata_max_age_ms: int = 300_000


class GroupConsumer:
    """Reads the partitions that the group gives to `member`.

    topics() names the topics to subscribe to; it is asked again whenever metadata are old, and the group
    rebalances when they or their partitions have changed.
    """

    def __init__(
        self,
        client: KafkaClient,
        member: Membership,
        topics: Callable[[], Sequence[str]],
        settings: ConsumerSettings,
    ) -> None:
        self._client = client
        self._member = member
        self._topics = topics
        self._settings = settings
        self._reader: Reader | None = None
        self._known: dict[str, int] = {}
        self._looked_at = float("-inf")
        self._committed_at = time.monotonic()

    def read(self, max_wait_ms: int, timeout_s: float | None = None) -> Iterator[Received]:
        """The records of one round, which waits up to max_wait_ms; a rebalance that is due comes first.

        A rebalance may take timeout_s (None: as long as the group allows), then it is a TimeoutError.
        """
        self._member.check()
        if time.monotonic() - self._looked_at >= self._settings.metadata_max_age_ms / 1000:
            self._look()
        if self._member.rejoins:
            self._rejoin(timeout_s)
        if self._commit_is_due():
            self.commit()
        if self._reader is None:
            time.sleep(min(max_wait_ms / 1000, IDLE_PAUSE_S))
            return
        yield from self._reader.read(max_wait_ms)

    def commit(self) -> None:
        """Commits all positions, unless a rebalance is on."""
        self._committed_at = time.monotonic()
        if self._reader is not None and not self._member.lost:
            self._member.commit(self._reader.positions())

    def close(self) -> None:
        """Commits where that is wanted, and leaves the group."""
        try:
            if self._settings.auto_commit_interval_ms is not None:
                self.commit()
        finally:
            self._member.leave()

    def _look(self) -> None:
        """Looks for new topics and partitions."""
        self._looked_at = time.monotonic()
        counts = self._counts(list(self._topics()))
        if counts != self._known:
            self._known = counts
            self._member.rejoins = True

    def _counts(self, topics: Sequence[str]) -> dict[str, int]:
        if not topics:
            return {}
        return {each.name or "": len(each.partitions) for each in self._client.metadata(topics)}

    def _rejoin(self, timeout_s: float | None) -> None:
        if self._settings.auto_commit_interval_ms is not None:
            self.commit()
        kept: Mapping[Place, tuple[int, int]] = {}
        if self._reader is not None and self._member.keeps and not self._member.lost:
            kept = self._reader.positions()
        self._reader = None
        places = self._member.join(list(self._known), self._counts, timeout_s)
        if places:
            starts = {place: kept[place][0] for place in places if place in kept}
            starts |= self._starts([place for place in places if place not in kept])
            self._reader = Reader(self._client, starts, self._settings.reset, self._settings.read_committed)
        self._committed_at = time.monotonic()

    def _starts(self, places: Sequence[Place]) -> dict[Place, int]:
        if not places:
            return {}
        committed = GroupAdmin(self._client, self._client.timeout_s).committed(self._member.group_id)
        without = [place for place in places if place not in committed]
        if without and self._settings.reset == NO_RESET:
            topic, partition = without[0]
            raise ClientError(f"Undefined offset with no reset policy for partitions: [{topic}-{partition}]")
        return {
            place: committed[place].offset if place in committed else self._settings.reset for place in places
        }

    def _commit_is_due(self) -> bool:
        interval_ms = self._settings.auto_commit_interval_ms
        return interval_ms is not None and time.monotonic() - self._committed_at >= interval_ms / 1000
