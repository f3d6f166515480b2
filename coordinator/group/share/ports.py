"""What share groups need from around them: the share coordinator, the logs' ends, and settings by group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from coordinator.group.share.state_partitions import Partitions
from protocol.errors import ErrorCode

Cell: TypeAlias = tuple[bytes, int]  # topic id and partition
StartOffsets: TypeAlias = Mapping[bytes, Mapping[int, int]]
Errors: TypeAlias = dict[Cell, ErrorCode]
"""One for each partition that was asked for, NONE where it went well."""

NOT_KNOWN = -1


class Summary(NamedTuple):
    """Where a share partition stands. `complete_count` is how many records behind the start are done with;
    -1: not known.
    """

    error: ErrorCode = ErrorCode.NONE
    start_offset: int = NOT_KNOWN
    leader_epoch: int = 0
    complete_count: int = NOT_KNOWN


class SharePersister(Protocol):
    """The share coordinator, for whole groups. Each call answers through `done`, once, and not before it
    has returned; a partition that cannot be reached answers with an error.
    """

    def initialize(
        self, group_id: str, start_offsets: StartOffsets, state_epoch: int, done: Callable[[Errors], None]
    ) -> None:
        """Make state for partitions, or begin it anew with a higher epoch. Offset -1: to be decided by the
        group's share.auto.offset.reset when it is first read.
        """

    def delete(self, group_id: str, partitions: Partitions, done: Callable[[Errors], None]) -> None:
        """Remove the state of partitions."""

    def summaries(
        self, group_id: str, partitions: Partitions, done: Callable[[dict[Cell, Summary]], None]
    ) -> None:
        """Read where partitions stand."""


class LatestOffsets(Protocol):
    """The ends of partitions, for lag."""

    def latest(self, topic: str, partition: int) -> int | ErrorCode:
        """The offset behind the last record that may be read (the high watermark), or why there is none."""


@dataclass(slots=True)
class ShareSettings:
    """The group.share.* settings; those that a group may have of its own are asked for by group id."""

    max_size: int = 200
    session_timeout_ms: Callable[[str], int] = lambda _: 45_000
    heartbeat_interval_ms: Callable[[str], int] = lambda _: 5_000
    assignment_interval_ms: Callable[[str], int] = lambda _: 1_000
    initialize_retry_ms: int = 30_000
