"""The requests of the loads: precomputed frames of Produce v9 and Fetch v12.

Both are the newest generation that names topics in flexible encoding and that librdkafka speaks; Apache
Kafka 4.x and Ottla serve them. All frames of a ring have one size, and so have all answers, which lets
the clients count answers by bytes instead of parsing them.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from typing import TypeVar

from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.headers import RequestHeader, decode_response_header, encode_request_header
from protocol.records.batch import HEADER_SIZE, Record
from protocol.records.builder import build_batch

PRODUCE_VERSION = 9
FETCH_VERSION = 12
CORRELATION_ID = 7
CLIENT_ID = "bench"
TIMEOUT_MS = 10_000
LEAST_OVERHEAD_BYTES = 7  # of a record without key and headers
_LENGTH = struct.Struct(">i")

R = TypeVar("R", bound=m.Message)


class RefusedError(RuntimeError):
    """The broker answered a load's request with an error."""


@dataclass(slots=True)
class Batch:
    """A batch that is sent again and again."""

    data: bytes
    records: int


def make_batch(record_bytes: int, records: int, now_ms: int) -> Batch:
    """A batch of equal-sized records with values that no codec would shrink to nothing."""
    block = os.urandom(max(4096, record_bytes))
    each = [Record(i, now_ms, None, (block[i % 512 :] + block)[:record_bytes], ()) for i in range(records)]
    return Batch(bytes(build_batch(each)), records)


def batch_of_size(record_bytes: int, most_bytes: int, now_ms: int) -> Batch:
    """The largest batch of such records that is at most `most_bytes` long with its header."""
    records = max(1, (most_bytes - HEADER_SIZE) // (record_bytes + LEAST_OVERHEAD_BYTES))
    while (excess := len((batch := make_batch(record_bytes, records, now_ms)).data) - most_bytes) > 0:
        records -= max(1, excess // (2 * record_bytes))
    return batch


def produce_frame(topic: str, partition: int, batch: Batch, acks: int = 1) -> bytes:
    """A Produce request of one batch."""
    request = m.ProduceRequest(
        acks=acks,
        timeout_ms=TIMEOUT_MS,
        topic_data=[
            m.ProduceRequest.TopicProduceData(
                name=topic,
                partition_data=[m.ProduceRequest.PartitionProduceData(index=partition, records=batch.data)],
            )
        ],
    )
    return _framed(ApiKey.PRODUCE, PRODUCE_VERSION, request.encode(PRODUCE_VERSION))


def fetch_frame(
    topic: str,
    partition: int,
    offset: int,
    max_bytes: int,
    wait_ms: int = 500,
    min_bytes: int = 1,
    isolation_level: int = 0,
) -> bytes:
    """A Fetch request without a session for one partition; max_bytes 1 gives one batch. Isolation level 1 is
    read_committed.
    """
    asked = m.FetchRequest.FetchPartition(
        partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes
    )
    request = m.FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=min_bytes,
        max_bytes=50 << 20,
        session_id=0,
        session_epoch=-1,
        isolation_level=isolation_level,
        topics=[m.FetchRequest.FetchTopic(topic=topic, partitions=[asked])],
    )
    return _framed(ApiKey.FETCH, FETCH_VERSION, request.encode(FETCH_VERSION))


def check_produced(answer: bytes) -> int:
    """The base offset in the answer to `produce_frame`. Raises RefusedError."""
    response, _ = m.ProduceResponse.decode(PRODUCE_VERSION, answer, _body_at(ApiKey.PRODUCE, answer))
    partition = response.responses[0].partition_responses[0]
    if partition.error_code:
        raise RefusedError(f"Produce answered error {partition.error_code}: {partition.error_message}")
    return int(partition.base_offset)


def check_fetched(answer: bytes) -> bytes:
    """The records in the answer to `fetch_frame`. Raises RefusedError."""
    response, _ = m.FetchResponse.decode(FETCH_VERSION, answer, _body_at(ApiKey.FETCH, answer))
    if response.error_code:
        raise RefusedError(f"Fetch answered error {response.error_code}")
    partition = response.responses[0].partitions[0]
    if partition.error_code:
        raise RefusedError(f"Fetch answered error {partition.error_code}")
    return bytes(partition.records or b"")


def framed(request: m.Message, version: int, client_id: str = CLIENT_ID) -> bytes:
    """Any request as it goes over the wire."""
    return _framed(request.API_KEY, version, request.encode(version), client_id)


def answered(response: type[R], version: int, answer: bytes) -> R:
    """The response in an answer with its length field."""
    _, at = decode_response_header(response.API_KEY, version, answer, 4)
    return response.decode(version, answer, at)[0]


def _framed(api_key: int, version: int, body: bytes, client_id: str = CLIENT_ID) -> bytes:
    header = encode_request_header(RequestHeader(api_key, version, CORRELATION_ID, client_id))
    return _LENGTH.pack(len(header) + len(body)) + header + body


def _body_at(api_key: int, answer: bytes) -> int:
    """`answer` with its length field."""
    version = PRODUCE_VERSION if api_key == ApiKey.PRODUCE else FETCH_VERSION
    return decode_response_header(api_key, version, answer, 4)[1]
