"""What memberships of both group protocols have in common: beats in a thread of their own, commits, failures.

The life of a membership:

    join() -> assignment;  beats in a thread of its own;  `rejoins` turns true when join() has to be called
    again, as the assignment is about to change or the group does not know the member any more; the owner
    commits (unless `lost`), then calls join();  leave().

The coordinator has a connection of its own, so that a fetch that waits does not hold up a heartbeat; owner
and thread take turns on it under a lock. A refusal that repeats until it is understood by a person
(authorization, a fenced instance id, no common assignor) is a ClientError from join() or commit().
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from ottla.client import ClientError, KafkaClient
from ottla.groups.admin import LAST_WITH_NAMES, Place
from ottla.groups.coordinators import RETRY_PAUSE_S, WAITS, Coordinators
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode

CONNECTIONS_TRIED = 3

CountPartitions = Callable[[Sequence[str]], Mapping[str, int]]


class Membership(ABC):
    """One member of a group. `client` is this member's alone; `keeps` tells whether join() leaves partitions
    with it that it had and has, so that it may go on where it is in them.
    """

    keeps: ClassVar[bool]
    first_generation: ClassVar[int]
    unknown: ClassVar[tuple[ErrorCode, ...]]
    """Refusals that mean that the group goes on without us."""
    again: ClassVar[tuple[ErrorCode, ...]]
    """Refusals after which join() is to be called."""

    def __init__(self, client: KafkaClient, group_id: str, instance_id: str | None) -> None:
        self.group_id = group_id
        self.member_id = ""
        self.generation = self.first_generation  # or member epoch
        self.rejoins = True
        self.lost = False  # the group goes on without us: there is nothing to commit
        self._instance_id = instance_id
        self._client = client
        self._coordinators = Coordinators(client, client.timeout_s)
        self._lock = threading.Lock()
        self._ends = threading.Event()
        self._heart: threading.Thread | None = None
        self._failure: ClientError | None = None

    def join(
        self, topics: Sequence[str], partition_counts: CountPartitions, timeout_s: float | None = None
    ) -> list[Place]:
        """Takes part in a rebalance; the partitions that are ours after it.

        partition_counts is asked where this member has to assign. Waits for the other members where the
        protocol does, timeout_s at most (None: as long as they may take); then TimeoutError.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        broken = 0
        with self._lock:
            while True:
                try:
                    places = self._join_once(topics, partition_counts, deadline)
                except ClientError as error:
                    if deadline is not None and time.monotonic() >= deadline:
                        raise TimeoutError("the group did not settle in time") from error
                    broken = broken + 1 if error.error is None else 0
                    if broken > CONNECTIONS_TRIED:
                        raise
                    self._judge(error)
                else:
                    self.rejoins = self.lost = False
                    self._beat_from_now()
                    return places
                time.sleep(RETRY_PAUSE_S)

    def commit(self, offsets: Mapping[Place, tuple[int, int]]) -> bool:
        """Commits offsets (each with the leader's epoch or -1) as this member; False where a rebalance
        or a moving coordinator forbids it now. Other refusals are ClientErrors."""
        if not offsets:
            return True
        topics: dict[str, list[m.OffsetCommitRequest.OffsetCommitRequestPartition]] = {}
        for (topic, partition), (offset, epoch) in offsets.items():
            topics.setdefault(topic, []).append(
                m.OffsetCommitRequest.OffsetCommitRequestPartition(
                    partition_index=partition,
                    committed_offset=offset,
                    committed_leader_epoch=epoch,
                    committed_metadata="",
                )
            )
        with self._lock:
            request = m.OffsetCommitRequest(
                group_id=self.group_id,
                generation_id_or_member_epoch=self.generation,
                member_id=self.member_id,
                group_instance_id=self._instance_id,
                topics=[
                    m.OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=partitions)
                    for topic, partitions in topics.items()
                ],
            )
            try:
                version = self._coordinators.version_for(self.group_id, ApiKey.OFFSET_COMMIT)
                response: m.OffsetCommitResponse = self._coordinators.ask(
                    self.group_id, request, min(version, LAST_WITH_NAMES)
                )
                for committed in response.topics:
                    for each in committed.partitions:
                        self._coordinators.check(self.group_id, each.error_code)
            except ClientError as error:
                self._judge(error)
                return False
        return True

    def check(self) -> None:
        """Raises what ended the membership for good, if something did."""
        if self._failure is not None:
            raise self._failure

    def leave(self) -> None:
        """Leaves the group, as far as the coordinator can be told."""
        self._ends.set()
        if self._heart is not None:
            self._heart.join()
        with self._lock:
            try:
                self._say_farewell()
            except ClientError:
                return  # the session times out instead

    @abstractmethod
    def _join_once(
        self, topics: Sequence[str], partition_counts: CountPartitions, deadline: float | None
    ) -> list[Place]:
        """One attempt to join; the lock is held."""

    @abstractmethod
    def _say_farewell(self) -> None:
        """Tell the coordinator; the lock is held."""

    @abstractmethod
    def _beat(self) -> None:
        """One heartbeat, and what it leads to; the lock is held. Raises ClientError."""

    @abstractmethod
    def _interval_ms(self) -> int:
        """The time between two heartbeats."""

    def _judge(self, error: ClientError) -> None:
        """Learns from a refusal; raises it where trying again does not help."""
        code = error.error
        if code is None:
            self._coordinators.forget(self.group_id)  # the connection failed: ask where to go
        elif code in self.unknown or code in self.again:
            if code in self.unknown:
                self.lost = True
                self._begin_anew(code)
            self.rejoins = True
        elif code not in WAITS and not code.retriable:
            raise error

    def _begin_anew(self, code: ErrorCode) -> None:
        """The group does not know us any more, or not at this generation."""
        self.generation = self.first_generation

    def _beat_from_now(self) -> None:
        if self._heart is None:
            self._heart = threading.Thread(target=self._beats, name="heartbeat", daemon=True)
            self._heart.start()

    def _beats(self) -> None:
        while not self._ends.wait(self._interval_ms() / 1000):
            with self._lock:
                if self._ends.is_set():
                    return
                try:
                    self._beat()
                except ClientError as error:
                    try:
                        self._judge(error)
                    except ClientError as final:
                        self._failure = final
                        self._ends.set()
