"""Reads records from partitions with a blocking client, as a consumer without a group does.

Owns the positions. A read goes to each leader in turn with one Fetch; records below the position (a batch
begins before the offset asked for) and control records are left out. With read_committed, so are records of
transactions that the broker lists as aborted: a producer's data are dropped from its first offset in that
list until its abort marker.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ottla.client import ClientError, KafkaClient, check
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode, InvalidRecords
from protocol.records.batch import MAGIC_AT, BatchHeader, Record, batches, read_header, records
from protocol.records.legacy import legacy_records

EARLIEST, LATEST = -2, -1
MAX_WAIT_MS = 500
MAX_BYTES = 50 * 1024 * 1024
PARTITION_MAX_BYTES = 1024 * 1024
LAST_VERSION_WITH_NAMES = 12  # later ones name topics by id
ABORT_MARKER = 0
NO_EPOCH = -1

MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH)


class Received(NamedTuple):
    """A record with where it came from."""

    topic: str
    partition: int
    record: Record
    timestamp_type: str  # CreateTime, LogAppendTime or NoTimestampType


class Reader:
    """Positions in partitions, moved on by every read.

    `starts` holds a first offset for each partition, or EARLIEST or LATEST. A position outside the log goes
    to `reset`.
    """

    def __init__(
        self,
        client: KafkaClient,
        starts: Mapping[tuple[str, int], int],
        reset: int = LATEST,
        read_committed: bool = False,
    ) -> None:
        self._client = client
        self._reset = reset
        self._isolation_level = 1 if read_committed else 0
        self._positions = {
            key: start if start >= 0 else self._resolved(*key, start) for key, start in starts.items()
        }
        self._epochs: dict[tuple[str, int], int] = {}

    def positions(self) -> dict[tuple[str, int], tuple[int, int]]:
        """Where each partition's next read begins, with the leader's epoch of the last batch or -1."""
        return {key: (offset, self._epochs.get(key, NO_EPOCH)) for key, offset in self._positions.items()}

    def read(self, max_wait_ms: int = MAX_WAIT_MS) -> Iterator[Received]:
        """The records of one round over all leaders, which wait up to max_wait_ms when they have none."""
        for node, topics in self._client.by_leader(self._positions).items():
            version = min(self._client.connection(node).version_for(ApiKey.FETCH), LAST_VERSION_WITH_NAMES)
            response: m.FetchResponse = self._client.call(self._request(topics, max_wait_ms), node, version)
            check(response.error_code)
            for topic in response.responses:
                for part in topic.partitions:
                    yield from self._accepted(topic.topic, part)

    def _request(self, topics: Mapping[str, list[int]], max_wait_ms: int) -> m.FetchRequest:
        return m.FetchRequest(
            replica_id=-1,
            max_wait_ms=max_wait_ms,
            min_bytes=1,
            max_bytes=MAX_BYTES,
            isolation_level=self._isolation_level,
            session_id=0,
            session_epoch=-1,
            topics=[
                m.FetchRequest.FetchTopic(
                    topic=topic,
                    partitions=[
                        m.FetchRequest.FetchPartition(
                            partition=partition,
                            current_leader_epoch=-1,
                            fetch_offset=self._positions[topic, partition],
                            last_fetched_epoch=-1,
                            log_start_offset=-1,
                            partition_max_bytes=PARTITION_MAX_BYTES,
                        )
                        for partition in partitions
                    ],
                )
                for topic, partitions in topics.items()
            ],
        )

    def _accepted(self, topic: str, part: m.FetchResponse.PartitionData) -> Iterator[Received]:
        key = (topic, part.partition_index)
        error = ErrorCode(part.error_code)
        if error in MOVED:
            self._client.forget_leader(*key)
        elif error == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._positions[key] = self._resolved(*key, self._reset)
        elif not error.retriable:
            check(error, what=f"{topic}-{part.partition_index}")
        if error != ErrorCode.NONE or not part.records:
            return
        dropped = Aborted(part.aborted_transactions or ()) if self._isolation_level else None
        try:
            for at, _ in batches(part.records):
                yield from self._batch(key, memoryview(part.records), at, dropped)
        except InvalidRecords as broken:
            where = f"{topic}-{part.partition_index} at offset {self._positions[key]}"
            raise ClientError(f"{where} can't be read: {broken}", broken.error) from broken

    def _batch(
        self, key: tuple[str, int], data: memoryview, at: int, dropped: Aborted | None
    ) -> Iterator[Received]:
        if data[at + MAGIC_AT] < 2:
            for record in legacy_records(data, at):
                if record.offset >= self._positions[key]:
                    self._positions[key] = record.offset + 1
                    yield Received(*key, record, "CreateTime" if record.timestamp >= 0 else "NoTimestampType")
            return
        header = read_header(data, at)
        self._epochs[key] = header.leader_epoch
        kind = "LogAppendTime" if header.is_log_append_time else "CreateTime"
        aborted = dropped is not None and dropped.hides(header)
        if header.is_control and dropped is not None:
            for record in records(data, at):
                dropped.see_marker(header.producer_id, record.key)
        if not header.is_control and not aborted:
            for record in records(data, at):
                if record.offset >= self._positions[key]:
                    self._positions[key] = record.offset + 1
                    yield Received(*key, record, kind)
        self._positions[key] = max(self._positions[key], header.last_offset + 1)

    def _resolved(self, topic: str, partition: int, named: int) -> int:
        """The offset that EARLIEST or LATEST stands for now."""
        request = m.ListOffsetsRequest(
            replica_id=-1,
            isolation_level=self._isolation_level,
            timeout_ms=int(self._client.timeout_s * 1000),
            topics=[
                m.ListOffsetsRequest.ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        m.ListOffsetsRequest.ListOffsetsPartition(
                            partition_index=partition, current_leader_epoch=-1, timestamp=named
                        )
                    ],
                )
            ],
        )
        response: m.ListOffsetsResponse = self._client.call(request, self._client.leader(topic, partition))
        answer = response.topics[0].partitions[0]
        check(answer.error_code, what=f"{topic}-{partition}")
        return answer.offset


class Aborted:
    """Which producers' records are of aborted transactions, as the walk through one answer goes on."""

    def __init__(self, transactions: Iterable[m.FetchResponse.AbortedTransaction]) -> None:
        self._coming = sorted(transactions, key=lambda each: each.first_offset, reverse=True)
        self._open: dict[int, None] = {}

    def hides(self, batch: BatchHeader) -> bool:
        """Whether a batch belongs to an aborted transaction; batches are shown in offset order."""
        while self._coming and self._coming[-1].first_offset <= batch.last_offset:
            self._open[self._coming.pop().producer_id] = None
        return batch.is_transactional and batch.producer_id in self._open

    def see_marker(self, producer_id: int, key: bytes | None) -> None:
        """A control record: an abort marker ends the producer's aborted transaction."""
        if key is not None and len(key) >= 4 and struct.unpack_from(">h", key, 2)[0] == ABORT_MARKER:
            self._open.pop(producer_id, None)
