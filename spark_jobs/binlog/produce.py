"""Changes into topics: in order, each once, and known to be there before the position is saved.

The producer is idempotent (acks=all) and stops for good rather than leave a gap. Each record carries its
place in the binlog in the header `binlog`; after a restart the last record of each partition tells what it
has already, and nothing is written twice. For that the partition of a key is computed here, as Java clients
do (murmur2), so that records of other producers with the same keys share partitions.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from spark_jobs.binlog.position import Position, parse_position
from spark_jobs.binlog.values import to_json

HEADER = "binlog"
REQUEST_TIMEOUT_S = 30.0
TAIL_RECORDS = 16
POLL_S = 0.1
OURS = {
    "enable.idempotence": True,
    "enable.gapless.guarantee": True,
    "acks": "all",
    "linger.ms": 5,
    # the library may not give up on one record and deliver the next; `flush` has the time limit
    "message.timeout.ms": 0,
    "log_level": 3,
}


class TopicUnusable(RuntimeError):
    """The topic can't take the changes; the message says why."""


def murmur2(data: bytes) -> int:
    """The 32-bit hash that Java's default partitioner uses (MurmurHash2, seed 0x9747b28c)."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = 0x9747B28C ^ len(data)
    whole = len(data) - len(data) % 4
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * m & mask
        h = (h * m & mask) ^ ((k ^ k >> 24) * m & mask)
    if rest := data[whole:]:
        h = (h ^ int.from_bytes(rest, "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15


def partition_of(key: bytes, partitions: int) -> int:
    return (murmur2(key) & 0x7FFFFFFF) % partitions


@dataclass(slots=True)
class Target:
    """A topic: its number of partitions and the last place that each of them has."""

    partitions: int
    last: dict[int, Position]


@dataclass(slots=True)
class Changes:
    """Writes changes of one or more topics."""

    options: Mapping[str, str]
    server: str
    delivery_timeout_s: float = 120.0
    tombstones: bool = False
    sent: int = 0
    already: int = 0
    targets: dict[str, Target] = field(default_factory=dict, init=False)
    producer: Producer = field(init=False)
    failure: str = field(default="", init=False)
    delivered_at: float = field(default_factory=time.monotonic, init=False)

    def __post_init__(self) -> None:
        self.producer = Producer({**self.options, **OURS})

    def open(self, topic: str, create_partitions: int) -> Target:
        """Prepares a topic: made where it is missing and may be made, its last records read."""
        count = self.partition_count(topic) or self.create(topic, create_partitions)
        target = Target(count, tails(self.options, topic, count, self.server))
        self.targets[topic] = target
        return target

    def partition_count(self, topic: str) -> int:
        """0 where there is no such topic."""
        admin = AdminClient(dict(self.options))
        asked = admin.describe_topics(TopicCollection([topic]), request_timeout=REQUEST_TIMEOUT_S)
        try:
            return len(asked[topic].result().partitions)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return 0
            raise TopicUnusable(f"topic {topic}: {reason(error)}") from error

    def create(self, topic: str, partitions: int) -> int:
        if partitions <= 0:
            raise TopicUnusable(
                f"no topic {topic}: create it, or name its number of partitions (--partitions)"
            )
        admin = AdminClient(dict(self.options))
        try:
            admin.create_topics([NewTopic(topic, partitions)])[topic].result(REQUEST_TIMEOUT_S)
        except KafkaException as error:
            raise TopicUnusable(f"topic {topic} can't be created: {reason(error)}") from error
        return partitions

    def send(self, topic: str, key: dict[str, object], value: object, position: Position, file: str) -> None:
        """Hands over a change, unless its partition has it; returns before it is delivered."""
        target = self.targets[topic]
        raw_key = to_json(key)
        partition = partition_of(raw_key, target.partitions)
        last = target.last.get(partition)
        if last is not None and position <= last:
            self.already += 1
            return
        target.last[partition] = position
        self.put(topic, partition, raw_key, to_json(value), position.text(self.server, file))
        if self.tombstones and isinstance(value, dict) and value["op"] == "d":
            self.put(topic, partition, raw_key, None, position.text(self.server, file))
        self.sent += 1

    def put(self, topic: str, partition: int, key: bytes, value: bytes | None, place: str) -> None:
        while True:
            self.check()
            try:
                self.producer.produce(
                    topic,
                    key=key,
                    value=value,
                    partition=partition,
                    headers=[(HEADER, place.encode())],
                    on_delivery=self.delivered,
                )
            except BufferError:
                self.deliver()
            except KafkaException as error:
                raise TopicUnusable(
                    f"the change at {place} can't be written to {topic}-{partition}: {reason(error)}"
                ) from error
            else:
                self.producer.poll(0)
                return

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        self.delivered_at = time.monotonic()
        if error is not None and not self.failure:
            self.failure = f"{message.topic()}-{message.partition()}: {error.str()}"

    def flush(self) -> None:
        """Returns when everything handed over is in the topics; TopicUnusable where it can't be."""
        self.delivered_at = time.monotonic()
        while len(self.producer) and not self.failure:
            self.deliver()
        self.check()

    def deliver(self) -> None:
        """Waits a little for deliveries; a broker that takes nothing for too long is a failure."""
        self.producer.poll(POLL_S)
        if time.monotonic() - self.delivered_at > self.delivery_timeout_s and not self.failure:
            names = ", ".join(self.targets)
            self.failure = f"{names}: nothing was delivered for {self.delivery_timeout_s:g} s"

    def check(self) -> None:
        """After a failed delivery nothing more is written: what is behind the gap must not come before it."""
        if self.failure:
            self.producer.purge()
            raise TopicUnusable(
                f"a change could not be written to {self.failure}. Nothing is lost: the next run goes on "
                "there."
            )


def tails(options: Mapping[str, str], topic: str, partitions: int, server: str) -> dict[int, Position]:
    """The place in this server's binlog of each partition's last record; none where there is none."""
    settings = {
        **options,
        "group.id": "binlog-tails",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }
    consumer = Consumer(settings)
    found: dict[int, Position] = {}
    try:
        waiting: dict[int, int] = {}
        for partition in range(partitions):
            low, high = consumer.get_watermark_offsets(
                TopicPartition(topic, partition), timeout=REQUEST_TIMEOUT_S
            )
            if high > low:
                waiting[partition] = max(low, high - TAIL_RECORDS)
        consumer.assign([TopicPartition(topic, partition, offset) for partition, offset in waiting.items()])
        deadline = time.monotonic() + REQUEST_TIMEOUT_S
        while waiting:
            message = consumer.poll(POLL_S)
            if message is None:
                if time.monotonic() > deadline:
                    raise TopicUnusable(
                        f"the last records of {topic} could not be read in {REQUEST_TIMEOUT_S:g} s"
                    )
                continue
            error = message.error()
            if error is None:
                note(found, message, server)
            elif error.code() == KafkaError._PARTITION_EOF:
                waiting.pop(message.partition() or 0, None)
            else:
                raise TopicUnusable(f"the last records of {topic}: {error.str()}")
    except KafkaException as error:
        raise TopicUnusable(f"the last records of {topic}: {reason(error)}") from error
    finally:
        consumer.close()
    return found


def note(found: dict[int, Position], message: Message, server: str) -> None:
    """Remembers a record's place; records of other writers and other servers have none here."""
    for name, value in list(message.headers() or ()):
        if name == HEADER and isinstance(value, bytes):
            try:
                origin, place = parse_position(value.decode())
            except ValueError:
                continue
            if origin != server:
                continue
            partition = message.partition() or 0
            found[partition] = max(place, found.get(partition, place))


def reason(error: KafkaException) -> str:
    return str(error.args[0].str() if error.args and isinstance(error.args[0], KafkaError) else error)
