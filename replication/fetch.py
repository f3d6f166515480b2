"""Reading for Fetch: from wanted partitions to rows of an answer.

Budget: the answer holds at most `max_bytes` of records, each partition at most its own limit, and only
whole batches. The first partition that has records gives at least one batch even where it is above both
limits, so that a consumer never gets stuck. Fetch v0-2 knows no limit for the answer, only for each
partition; where its limit cuts into the first batch the row still holds that batch whole, and the handler,
which converts the old formats, may cut it.

Nothing here changes anything, so a parked request is simply read again when it is woken. Only the first
reading of a follower's request tells `FollowerFetch` what it acknowledges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from protocol.errors import ErrorCode
from protocol.uuids import ZERO_UUID
from replication.epoch_fence import NO_EPOCH, storage_error_at
from replication.follower_fetch import FollowerFetch
from replication.partition import Partition
from storage.errors import OffsetOutOfRange, StorageError
from storage.read import LogSlice, SliceData

READ_UNCOMMITTED, READ_COMMITTED = 0, 1

ABSENT = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)
"""Errors of partitions that the cluster does not know. Unlike other errors they do not end the wait of those
that it does know: else a consumer of a deleted topic would ask again and again without a pause.
"""

PartitionKey = tuple[str | bytes, int]
"""How a fetch names a partition: (topic name, index) up to v12, (topic id, index) from v13 on."""


Redirect = Callable[[Partition, int], int]
"""Which other replica a consumer at this offset should rather read from; -1 for none (KIP-392)."""

Throttle = Callable[[Partition, int], bool]
"""Whether a follower's records of a partition must wait for the replication quota."""


@dataclass(slots=True, frozen=True)
class FetchParams:
    """What a fetch says for all its partitions. `max_bytes` is already the least of the request's, of
    fetch.max.bytes and of what a quota leaves; `replica_id` is -1 for consumers.
    """

    version: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation: int = READ_UNCOMMITTED
    replica_id: int = -1
    redirect: Redirect | None = None
    throttle: Throttle | None = None

    @property
    def uses_ids(self) -> bool:
        return self.version >= 13


class Wanted:
    """One partition of a fetch: where it reads and how much. Topic name or id, whichever the version has."""

    __slots__ = (
        "fetch_offset",
        "index",
        "last_fetched_epoch",
        "leader_epoch",
        "log_start_offset",
        "max_bytes",
        "topic",
        "topic_id",
    )

    def __init__(
        self,
        topic: str,
        topic_id: bytes,
        index: int,
        fetch_offset: int,
        max_bytes: int,
        leader_epoch: int = NO_EPOCH,
        last_fetched_epoch: int = NO_EPOCH,
        log_start_offset: int = -1,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.fetch_offset = fetch_offset
        self.max_bytes = max_bytes
        self.leader_epoch = leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset

    @property
    def key(self) -> PartitionKey:
        return (self.topic_id if self.topic_id != ZERO_UUID else self.topic), self.index

    def __repr__(self) -> str:
        return f"{self.topic or self.topic_id.hex()}-{self.index}@{self.fetch_offset}"


class Row:
    """What one partition answers. On an error the offsets are -1 and there are no records.

    `data` are whole batches of `length` bytes. `aborted` is None for read_uncommitted, else (producer id,
    first offset) pairs; `diverging` is (epoch, end offset) where the client's log went another way.
    """

    __slots__ = (
        "aborted",
        "cut_off",
        "data",
        "diverging",
        "error",
        "high_watermark",
        "index",
        "last_stable_offset",
        "leader",
        "length",
        "log_start_offset",
        "preferred_replica",
        "wanted",
    )

    def __init__(self, wanted: Wanted, error: ErrorCode = ErrorCode.NONE) -> None:
        self.wanted = wanted
        self.index = wanted.index
        self.error = error
        self.high_watermark = self.last_stable_offset = self.log_start_offset = -1
        self.data: SliceData = b""
        self.length = 0
        self.cut_off = False  # there is more to read here than this answer could take
        self.aborted: list[tuple[int, int]] | None = None
        self.diverging: tuple[int, int] | None = None
        self.leader: tuple[int, int] | None = None
        self.preferred_replica = -1

    @property
    def urgent(self) -> bool:
        """Whether the answer may not wait for more bytes."""
        return self.error != ErrorCode.NONE or self.diverging is not None or self.preferred_replica >= 0


class Budget:
    """The bytes an answer may still take, and those that it counts as available.

    A fetch waits for `min_bytes` of available bytes, not of bytes read: whole batches may leave a gap below
    its limits although there is more. As in Kafka, what lies in an older segment than the newest ends the
    wait.
    """

    __slots__ = ("_per_partition_only", "available", "left", "older_segment", "taken")

    def __init__(self, params: FetchParams) -> None:
        self.left = params.max_bytes
        self.taken = 0
        self.available = 0
        self.older_segment = False
        self._per_partition_only = params.version <= 2

    @property
    def exhausted(self) -> bool:
        return self.left <= 0 and not self._per_partition_only

    @property
    def first_is_free(self) -> bool:
        """Whether the next non-empty partition gives a batch whatever its size."""
        return self.taken == 0 or self._per_partition_only

    def limit(self, max_bytes: int) -> int:
        return max_bytes if self._per_partition_only else min(max_bytes, self.left)

    def satisfies(self, params: FetchParams) -> bool:
        """Whether enough was found to answer before the time is over."""
        least = min(params.min_bytes, params.max_bytes)
        return self.available >= least or self.taken >= least or self.older_segment

    def take(self, length: int) -> None:
        self.left -= length
        self.taken += length


def validate(params: FetchParams, wanted: Iterable[Wanted]) -> ErrorCode:
    """What refuses the whole request with -1, as 4.4 does: unknown isolation level, negative size."""
    if params.isolation not in (READ_UNCOMMITTED, READ_COMMITTED):
        return ErrorCode.UNKNOWN_SERVER_ERROR
    if any(partition.max_bytes < 0 for partition in wanted):
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return ErrorCode.NONE


def read_row(wanted: Wanted, partition: Partition, params: FetchParams, budget: Budget) -> Row:
    """Read one partition that this broker hosts, within the budget."""
    consumer = params.replica_id < 0
    # Before v11 a consumer does not know followers; from then on it may read from one.
    error = partition.check(wanted.leader_epoch, leader_required=not consumer or params.version < 11)
    if error == ErrorCode.NONE and not consumer:
        error = _stranger_error(wanted, partition, params.replica_id)
    if error != ErrorCode.NONE:
        return Row(wanted, storage_error_at(error, params.version))
    log = partition.log
    row = Row(wanted)
    offset, upto = wanted.fetch_offset, partition.read_limit(params.isolation) if consumer else log.end_offset
    high_watermark, stable = log.high_watermark, log.last_stable_offset
    if wanted.last_fetched_epoch != NO_EPOCH:
        error = _diverge(wanted, partition, row)
        if error != ErrorCode.NONE:
            return Row(wanted, error)
        if row.diverging is not None:
            return _with_offsets(row, partition, high_watermark, stable)
    if params.redirect is not None and consumer and partition.leadership is not None:
        row.preferred_replica = params.redirect(partition, offset)
        if row.preferred_replica >= 0:
            return _with_offsets(row, partition, high_watermark, stable)
    limit = budget.limit(wanted.max_bytes)
    free = budget.first_is_free
    if params.throttle is not None and params.throttle(partition, params.replica_id):
        row.cut_off = offset < upto  # what waits for the quota stays news
        return _with_offsets(row, partition, high_watermark, stable)
    if offset < upto and limit <= 0 and not free:
        if offset < log.start_offset:
            return Row(wanted, ErrorCode.OFFSET_OUT_OF_RANGE)
        row.cut_off = True
        return _with_offsets(row, partition, high_watermark, stable)
    try:
        found: LogSlice = log.read(offset, limit, upto, free)
    except OffsetOutOfRange:
        return Row(wanted, ErrorCode.OFFSET_OUT_OF_RANGE)
    except StorageError as failed:
        return Row(wanted, storage_error_at(failed.error, params.version))
    row.cut_off = found.first_incomplete
    if found.length:
        row.data, row.length = found.data, found.length
        budget.take(found.length)
    if offset < upto:
        active = log.active
        if found.segment_base != active.base_offset:
            budget.older_segment = True
        elif upto == log.end_offset:
            budget.available += min(active.size - found.position, wanted.max_bytes)
        else:
            budget.available += found.length
    if params.isolation == READ_COMMITTED and consumer:
        try:
            row.aborted = [(txn.producer_id, txn.first_offset) for txn in log.aborted_within(offset, found)]
        except StorageError as failed:
            return Row(wanted, storage_error_at(failed.error, params.version))
    return _with_offsets(row, partition, high_watermark, stable)


def _stranger_error(wanted: Wanted, partition: Partition, replica_id: int) -> ErrorCode:
    """What a fetch gets that claims to be a replica, but is none of this partition (CVE-2018-1288)."""
    if replica_id in partition.replicas and replica_id != partition.leader_id:
        return ErrorCode.NONE
    if wanted.leader_epoch == NO_EPOCH:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return ErrorCode.UNKNOWN_LEADER_EPOCH


def _with_offsets(row: Row, partition: Partition, high_watermark: int, stable: int) -> Row:
    row.high_watermark = high_watermark
    row.last_stable_offset = stable
    row.log_start_offset = partition.log.start_offset
    return row


def _diverge(wanted: Wanted, partition: Partition, row: Row) -> ErrorCode:
    """Compare the client's last epoch with ours; a difference sets `row.diverging`."""
    log = partition.log
    if wanted.fetch_offset < log.start_offset:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    epoch, end_offset = partition.epoch_end(wanted.last_fetched_epoch)
    if epoch < 0 or end_offset < 0:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
        row.diverging = (epoch, end_offset)
    return ErrorCode.NONE


Lookup = Callable[[Wanted], Partition | ErrorCode]
"""Finds the partition of a wanted entry, or tells why it is not here (3, 6, 56, 100, 103)."""


class Answer:
    """The rows of one reading, and whether they may leave at once."""

    __slots__ = ("ready", "rows", "size_bytes")

    def __init__(self, rows: list[Row], size_bytes: int, ready: bool) -> None:
        self.rows = rows
        self.size_bytes = size_bytes
        self.ready = ready


def read_all(
    wanted: Iterable[Wanted], lookup: Lookup, params: FetchParams, follower: FollowerFetch | None = None
) -> Answer:
    """One row for each wanted partition, in the order of the request."""
    budget = Budget(params)
    rows: list[Row] = []
    urgent, absent = read_some(wanted, lookup, params, budget, rows, follower)
    ready = urgent or params.max_wait_ms <= 0 or absent == len(rows) or budget.satisfies(params)
    return Answer(rows, budget.taken, ready)


def read_some(
    wanted: Iterable[Wanted],
    lookup: Lookup,
    params: FetchParams,
    budget: Budget,
    rows: list[Row],
    follower: FollowerFetch | None = None,
) -> tuple[bool, int]:
    """Add a row for each of these. Whether one of them may not wait, and how many the cluster does not
    know.
    """
    urgent, absent = False, 0
    for entry in wanted:
        partition = lookup(entry)
        if isinstance(partition, Partition):
            row = read_row(entry, partition, params, budget)
            if follower is not None:
                follower.seen(partition, row, partition.log.end_offset)
        else:
            row = Row(entry, storage_error_at(partition, params.version))
        if row.error in ABSENT:
            absent += 1
        else:
            urgent = urgent or row.urgent
        rows.append(row)
    return urgent, absent
