"""What clients sent, were told and saw, and what must be true of it.

Checked at once: a value that is read was sent to that partition; an offset keeps its value; no two
acknowledged records share an offset; a value is at one offset only, unless its producer may repeat it;
a reader's offsets follow each other and stay below the high watermark of their answer.

Checked at the end (`check_log`), on the whole log of a partition as a reader found it: what was acknowledged
or read is there, at its offset; records of a producer that keeps order stand in its order.

A crash that may lose records, because they were on no disk yet, is told by `forgive`: what was promised
about these partitions before is then no promise any more. From then on their offsets may have holes, as
Kafka's may: of what was not synced the last can be on the disk and the earlier not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

TopicPartition = tuple[str, int]
EVERY = 0


@dataclass(slots=True)
class Sent:
    """One value. `lane`: who sent it, and in which row its order counts; `number`: its place there."""

    partition: TopicPartition
    lane: str
    number: int
    ordered: bool
    repeatable: bool


@dataclass(slots=True)
class PartitionHistory:
    """What is known of one partition's log."""

    value_at: dict[int, bytes] = field(default_factory=dict)  # acknowledged or read
    acked: dict[int, bytes] = field(default_factory=dict)
    offset_of: dict[bytes, int] = field(default_factory=dict)
    start_offset: int = 0  # records below it may be deleted
    losses: int = 0
    clean_epoch: int = 0  # what earlier leaders say is of a log that is no more
    has_markers: bool = False  # of transactions: at their offsets readers find nothing


class History:
    """See the module. `fail` is told of each breach. `leads` tells who leads a partition, really, and
    `appended_in` the leader epoch of what a broker has at an offset: -1 where nobody can look, None where it
    has nothing.
    """

    def __init__(self, fail: Callable[[str], None]) -> None:
        self._fail = fail
        self._sent: dict[bytes, Sent] = {}
        self.leaders_move = False  # then acks=1 promises nothing
        self.leads: Callable[[TopicPartition, int], bool] = lambda partition, broker_id: True
        self.appended_in: Callable[[TopicPartition, int, int], int | None] = lambda *place: None
        self.restarts = 0  # of brokers
        self.group_losses = 0  # how often what groups committed may have been lost
        self.partitions: dict[TopicPartition, PartitionHistory] = {}
        self.acked_records = self.read_records = self.unknown_records = self.refused_records = 0

    def of(self, partition: TopicPartition) -> PartitionHistory:
        return self.partitions.setdefault(partition, PartitionHistory())

    def losses(self, partition: TopicPartition) -> int:
        """How often records of it may have been lost so far."""
        return self.of(partition).losses

    def stands_after_losses(
        self, partition: TopicPartition, broker_id: int, leader_epoch: int, offset: int
    ) -> bool:
        """Whether what a broker acknowledged counts, where an unclean leader was elected: one who led before
        and has not heard of it goes on with its log, which is no more. `leader_epoch` is what the producer
        believes in, who cannot know.
        """
        clean_epoch = self.of(partition).clean_epoch
        if not clean_epoch:
            return True
        epoch = self.appended_in(partition, broker_id, offset)
        return (leader_epoch if epoch is None else epoch) >= clean_epoch

    def sending(
        self,
        partition: TopicPartition,
        lane: str,
        values: Sequence[tuple[int, bytes]],
        *,
        ordered: bool,
        repeatable: bool,
    ) -> None:
        """Values that are about to leave for the first time, with their numbers in the lane."""
        for number, value in values:
            self._sent[value] = Sent(partition, lane, number, ordered, repeatable)

    def acknowledged(
        self, partition: TopicPartition, base_offset: int, values: Sequence[bytes], *, firm: bool = True
    ) -> None:
        """The broker said that the values are in the log from that offset on.

        Not `firm`: of one replica's log, which may not be the one that stays.
        """
        known = self.of(partition)
        if base_offset < 0:
            self._fail(f"{partition}: acknowledged with offset {base_offset}")
        if not firm:
            return
        for offset, value in enumerate(values, base_offset):
            self.acked_records += 1
            other = known.acked.get(offset)
            if other is not None and other != value:
                self._fail(f"{partition}@{offset}: {name(value)} acknowledged, and before {name(other)}")
            known.acked[offset] = value
            self._stands(partition, known, offset, value, "acknowledged")

    def read(
        self,
        reader: str,
        partition: TopicPartition,
        fetch_offset: int,
        high_watermark: int,
        rows: Sequence[tuple[int, bytes]],
    ) -> None:
        """An answer to a fetch: records from the wanted offset on."""
        known = self.of(partition)
        wanted = fetch_offset
        for offset, value in rows:
            self.read_records += 1
            if offset != wanted and not ((known.losses or known.has_markers) and offset > wanted):
                self._fail(f"{reader}: {partition}@{offset} where {wanted} should follow")
            if offset >= high_watermark:
                self._fail(f"{reader}: {partition}@{offset} read with high watermark {high_watermark}")
            wanted = offset + 1
            self._stands(partition, known, offset, value, f"read by {reader}")

    def _stands(
        self, partition: TopicPartition, known: PartitionHistory, offset: int, value: bytes, how: str
    ) -> None:
        before = known.value_at.get(offset)
        if before == value:
            return
        if before is not None:
            self._fail(f"{partition}@{offset}: {name(value)} {how}, before it was {name(before)}")
        sent = self._sent.get(value)
        if sent is None or sent.partition != partition:
            self._fail(f"{partition}@{offset}: {name(value)} {how}, never sent there")
            return
        known.value_at[offset] = value
        other = known.offset_of.setdefault(value, offset)
        if other != offset and not sent.repeatable:
            self._fail(f"{partition}: {name(value)} stands at {other} and, {how}, at {offset}")

    def forgive(self, partition: TopicPartition, from_offset: int = EVERY) -> None:
        """Records from that offset on may be lost."""
        known = self.of(partition)
        known.losses += 1
        for offset in [offset for offset in known.value_at if offset >= from_offset]:
            value = known.value_at.pop(offset)
            known.acked.pop(offset, None)
            if known.offset_of.get(value) == offset:
                del known.offset_of[value]

    def check_log(
        self, partition: TopicPartition, start_offset: int, rows: Sequence[tuple[int, bytes]]
    ) -> None:
        """The whole log at the end. Other checks have seen the rows by `read`."""
        known = self.of(partition)
        found = dict(rows)
        for offset, value in sorted(known.value_at.items()):
            if offset >= start_offset and found.get(offset) != value:
                how = "acknowledged" if offset in known.acked else "read"
                there = name(found[offset]) if offset in found else "nothing"
                self._fail(f"{partition}@{offset}: {name(value)} was {how}, there is {there}")
        last: dict[str, tuple[int, int]] = {}
        for offset, value in rows:
            sent = self._sent[value]
            if not sent.ordered:
                continue
            number, at = last.get(sent.lane, (-1, -1))
            if sent.number <= number:
                self._fail(f"{partition}@{offset}: {name(value)} behind number {number} at {at}")
            last[sent.lane] = (sent.number, offset)


def name(value: bytes) -> str:
    """A value for people: what is in front of its padding."""
    return value.split(b" ")[0].decode("ascii", "replace")
