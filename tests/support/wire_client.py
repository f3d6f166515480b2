"""`Wire` with what most conformance tests need: a topic, one batch produced, one partition fetched.

with WireClient(broker.bootstrap_servers) as wire:
    wire.create_topic("t")
    assert wire.produce("t", batch).error_code == 0
"""

from __future__ import annotations

from typing import Any

from protocol import messages as m
from protocol.records.batch import Record, batches, read_header
from protocol.records.builder import build_batch
from tests.support.waiting import wait_until
from tests.support.wire import Wire


def produce_request(
    topic: str,
    records: bytes | bytearray | None,
    partition: int = 0,
    acks: int = -1,
    transactional_id: str | None = None,
) -> m.ProduceRequest:
    """Of one partition."""
    request = m.ProduceRequest
    place = request.PartitionProduceData(index=partition, records=records)
    data = [request.TopicProduceData(name=topic, partition_data=[place])]
    return request(transactional_id=transactional_id, acks=acks, timeout_ms=30_000, topic_data=data)


class WireClient(Wire):
    """One connection, and shortcuts for requests that name one topic and one partition."""

    def post_all(self, *requests: tuple[m.Message, int]) -> list[Any]:
        """Send requests without waiting in between; returns their responses."""
        posted = [self.post(request, version) for request, version in requests]
        return [self.receive(correlation_id) for correlation_id in posted]

    def create_topic(self, name: str, partitions: int = 1, **configs: str) -> bytes:
        """Create a topic (config names with _ for .), wait until it has leaders, return its id."""
        request = m.CreateTopicsRequest
        wanted = [
            request.CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ]
        topic = request.CreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1, configs=wanted
        )
        (result,) = self.send(request(topics=[topic], timeout_ms=30_000), 7).topics
        assert result.error_code == 0, result
        for partition in range(partitions):  # Kafka's leaders take a moment
            wait_until(
                lambda partition=partition: not self.list_offset(name, -1, partition).error_code,
                f"{name}-{partition} to have a leader",
            )
        return bytes(result.topic_id)

    def metadata(self, *names: str, version: int = 12, **fields: Any) -> Any:
        """Metadata of these topics."""
        topics = [m.MetadataRequest.MetadataRequestTopic(name=name) for name in names]
        return self.send(m.MetadataRequest(topics=topics, **fields), version)

    def produce(
        self,
        topic: str,
        records: bytes | bytearray | None,
        partition: int = 0,
        acks: int = -1,
        version: int = 9,
        transactional_id: str | None = None,
    ) -> Any:
        """Produce to one partition; returns the partition's part of the response, None for acks=0."""
        answer = self.send(produce_request(topic, records, partition, acks, transactional_id), version)
        return None if answer is None else answer.responses[0].partition_responses[0]

    def produce_values(
        self, topic: str, *values: bytes, partition: int = 0, timestamp: int = 1_700_000_000_000
    ) -> int:
        """Produce one plain batch of keyless records; returns its base offset."""
        batch = build_batch(Record(i, timestamp, None, value, ()) for i, value in enumerate(values))
        answer = self.produce(topic, batch, partition)
        assert answer.error_code == 0, answer
        return int(answer.base_offset)

    def fetch(
        self,
        topic: str,
        offset: int,
        partition: int = 0,
        version: int = 12,
        partition_max_bytes: int = 1 << 20,
        current_leader_epoch: int = -1,
        last_fetched_epoch: int = -1,
        **fields: Any,
    ) -> Any:
        """Fetch from one partition without a session; returns the partition's part of the response."""
        request = m.FetchRequest
        place = request.FetchPartition(
            partition=partition,
            fetch_offset=offset,
            partition_max_bytes=partition_max_bytes,
            current_leader_epoch=current_leader_epoch,
            last_fetched_epoch=last_fetched_epoch,
        )
        limits = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, **fields}
        topics = [request.FetchTopic(topic=topic, partitions=[place])]
        return self.send(request(topics=topics, **limits), version).responses[0].partitions[0]

    def list_offset(
        self, topic: str, timestamp: int, partition: int = 0, version: int = 7, **fields: Any
    ) -> Any:
        """ListOffsets of one partition; returns the partition's part of the response."""
        request = m.ListOffsetsRequest
        place = request.ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
        topics = [request.ListOffsetsTopic(name=topic, partitions=[place])]
        return self.send(request(topics=topics, **fields), version).topics[0].partitions[0]

    def stored_batches(self, topic: str, partition: int = 0) -> list[bytes]:
        """Every batch of a partition, as fetches return them."""
        stored: list[bytes] = []
        offset = 0
        while True:
            answer = self.fetch(topic, offset, partition)
            assert answer.error_code == 0, answer
            records = bytes(answer.records or b"")
            if not records:
                return stored
            for at, size in batches(records):
                stored.append(records[at : at + size])
                offset = read_header(records, at).last_offset + 1

    def stored_codecs(self, topic: str, partition: int = 0) -> set[int]:
        """The codecs of the stored batches of a partition."""
        return {read_header(batch, 0).codec for batch in self.stored_batches(topic, partition)}
