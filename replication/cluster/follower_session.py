"""The follower's side of a fetch session (KIP-227): what the leader knows already is not sent again.

The first request of a session names every partition; later ones name those of which something changed and
those that are not wanted any more. So a fetcher of thousands of idle partitions sends a few bytes. Only
partitions that are handed to `request` are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.cluster.followed import NO_EPOCH, Followed

Key: TypeAlias = tuple[str, int]
Sent: TypeAlias = tuple[int, int, int, int]
"""Fetch offset, leader epoch, log start, last fetched epoch."""

REPLICA_STATE_FROM = 15
NO_SESSION, FIRST_EPOCH, MAX_EPOCH = 0, 0, (1 << 31) - 1


@dataclass(slots=True, frozen=True)
class Identity:
    """Who fetches, at which version (that of inter.broker.protocol.version), and how much at a time."""

    broker_id: int
    version: int = 17
    max_wait_ms: int = 500
    min_bytes: int = 1
    max_bytes: int = 10 << 20
    partition_max_bytes: int = 1 << 20


class FollowerSession:
    """One session with one leader. Between `request` and `answered` there is one request in flight."""

    __slots__ = ("_epoch", "_known", "_session_id", "identity")

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self._session_id = NO_SESSION
        self._epoch = FIRST_EPOCH
        self._known: dict[Key, tuple[bytes, Sent]] = {}

    @property
    def is_full(self) -> bool:
        """Whether the next request has to name all partitions."""
        return self._epoch == FIRST_EPOCH

    def begin_anew(self) -> None:
        """Nobody knows what the leader made of the last request. The next one names the old session all the
        same, which the leader then closes.
        """
        self._epoch = FIRST_EPOCH
        self._known.clear()

    def request(self, changed: Iterable[Followed], gone: Iterable[Key], broker_epoch: int) -> m.FetchRequest:
        """The next request. `changed` are all partitions where `is_full`, else those that may have changed;
        `gone` are those that are not wanted now.
        """
        identity = self.identity
        request = m.FetchRequest(
            max_wait_ms=identity.max_wait_ms,
            min_bytes=identity.min_bytes,
            max_bytes=identity.max_bytes,
            session_id=self._session_id,
            session_epoch=self._epoch,
        )
        if identity.version >= REPLICA_STATE_FROM:
            request.replica_state.replica_id = identity.broker_id
            request.replica_state.replica_epoch = broker_epoch
        else:
            request.replica_id = identity.broker_id
        topics: dict[str, m.FetchRequest.FetchTopic] = {}
        for followed in changed:
            self._name(followed, topics)
        request.topics = list(topics.values())
        forgotten: dict[str, m.FetchRequest.ForgottenTopic] = {}
        for key in gone:
            known = self._known.pop(key, None)
            if known is not None:
                topic = forgotten.get(key[0])
                if topic is None:
                    topic = forgotten[key[0]] = m.FetchRequest.ForgottenTopic(topic=key[0], topic_id=known[0])
                topic.partitions.append(key[1])
        request.forgotten_topics_data = list(forgotten.values())
        return request

    def _name(self, followed: Followed, topics: dict[str, m.FetchRequest.FetchTopic]) -> None:
        partition = followed.partition
        log = partition.log
        sent = (followed.offset, followed.leader_epoch, log.start_offset, log.leader_epochs.latest_epoch)
        followed.asked_from = followed.offset
        known = self._known.get(followed.key)
        if known is not None and known == (partition.topic_id, sent):
            return
        self._known[followed.key] = (partition.topic_id, sent)
        topic = topics.get(partition.topic)
        if topic is None:
            topic = topics[partition.topic] = m.FetchRequest.FetchTopic(
                topic=partition.topic, topic_id=partition.topic_id
            )
        topic.partitions.append(
            m.FetchRequest.FetchPartition(
                partition=partition.index,
                fetch_offset=sent[0],
                current_leader_epoch=sent[1],
                log_start_offset=sent[2],
                last_fetched_epoch=sent[3] if sent[3] >= 0 else NO_EPOCH,
                partition_max_bytes=self.identity.partition_max_bytes,
            )
        )

    def answered(self, response: m.FetchResponse) -> bool:
        """Take note of the session's state; False if the request was refused as a whole.

        An unknown session begins anew; one whose epoch or ids are not as the leader has them is closed by
        the next full request.
        """
        if response.error_code != ErrorCode.NONE:
            if response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._session_id = NO_SESSION
            self.begin_anew()
        elif self._epoch == FIRST_EPOCH:
            self._session_id = response.session_id
            if response.session_id == NO_SESSION:  # no slot was free
                self._known.clear()
            else:
                self._epoch = 1
        else:
            self._epoch = 1 if self._epoch == MAX_EPOCH else self._epoch + 1
        return response.error_code == ErrorCode.NONE
