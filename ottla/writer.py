"""Writes records with a blocking client: batches by partition, sent with their leaders' answers awaited.

A record with a key goes to the partition that Java's default partitioner picks (murmur2), one without to a
partition that changes with every batch. What a broker refuses for the moment is sent again, a bounded
number of times; what got no answer is not, since that could write it twice.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from ottla.client import ClientError, KafkaClient, check
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.records.batch import Record
from protocol.records.builder import build_batch

LAST_VERSION_WITH_NAMES = 12  # later ones name topics by id
RECORD_OVERHEAD_BYTES = 20


@dataclass(slots=True)
class Delivery:
    """How batches are made and sent."""

    acks: int = -1
    codec: int = 0
    batch_bytes: int = 16384
    timeout_ms: int = 30_000
    retries: int = 3
    retry_backoff_ms: int = 100


class Writer:
    """Batches for one topic; `flush` sends what is there."""

    def __init__(self, client: KafkaClient, topic: str, delivery: Delivery) -> None:
        self._client = client
        self._topic = topic
        self._delivery = delivery
        self._partitions = client.partitions_of(topic, create_missing=True)
        self._keyless = 0
        self._pending: dict[int, list[Record]] = {}
        self._sizes: dict[int, int] = {}

    def add(self, record: Record) -> None:
        """Takes a record; sends its partition's batch when that is full."""
        if record.key is None:
            partition = self._partitions[self._keyless % len(self._partitions)]
        else:
            partition = self._partitions[(murmur2(record.key) & 0x7FFFFFFF) % len(self._partitions)]
        size = RECORD_OVERHEAD_BYTES + len(record.key or b"") + len(record.value or b"")
        size += sum(len(name) + len(content or b"") for name, content in record.headers)
        if partition in self._pending and self._sizes[partition] + size > self._delivery.batch_bytes:
            self._send(partition)
        self._pending.setdefault(partition, []).append(record)
        self._sizes[partition] = self._sizes.get(partition, 0) + size

    def flush(self) -> None:
        """Sends everything; ClientError for the first batch that could not be written."""
        for partition in list(self._pending):
            self._send(partition)

    def _send(self, partition: int) -> None:
        records = self._pending.pop(partition)
        self._sizes.pop(partition)
        self._keyless += 1
        batch = build_batch(records, codec=self._delivery.codec)
        for attempt in range(self._delivery.retries + 1):
            try:
                self._send_once(partition, batch)
            except ClientError as error:
                if not error.retriable or attempt == self._delivery.retries:
                    raise
                self._client.forget_leader(self._topic, partition)
                time.sleep(self._delivery.retry_backoff_ms / 1000)
            else:
                return

    def _send_once(self, partition: int, batch: bytearray) -> None:
        node = self._client.leader(self._topic, partition)
        version = min(self._client.connection(node).version_for(ApiKey.PRODUCE), LAST_VERSION_WITH_NAMES)
        request = m.ProduceRequest(
            transactional_id=None,
            acks=self._delivery.acks,
            timeout_ms=self._delivery.timeout_ms,
            topic_data=[
                m.ProduceRequest.TopicProduceData(
                    name=self._topic,
                    partition_data=[m.ProduceRequest.PartitionProduceData(index=partition, records=batch)],
                )
            ],
        )
        response: m.ProduceResponse | None = self._client.call(request, node, version)
        if response is None:
            return
        answer = response.responses[0].partition_responses[0]
        if answer.error_code != ErrorCode.NONE:
            details = [each.batch_index_error_message or "" for each in answer.record_errors]
            message = answer.error_message or ErrorCode(answer.error_code).message
            check(
                answer.error_code, " ".join(filter(None, [message, *details])), f"{self._topic}-{partition}"
            )


def murmur2(content: bytes) -> int:
    """The 32-bit hash by which Java's producer spreads keys over partitions."""
    mask = 0xFFFFFFFF
    mix = 0x5BD1E995
    length = len(content)
    state = (0x9747B28C ^ length) & mask
    whole = length & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(content[at : at + 4], "little") * mix & mask
        word = (word ^ (word >> 24)) * mix & mask
        state = (state * mix & mask) ^ word
    if length > whole:
        state = (state ^ int.from_bytes(content[whole:], "little")) * mix & mask
    state = (state ^ (state >> 13)) * mix & mask
    return state ^ (state >> 15)
