"""What controller operations are asked for and what they answer, one value per topic or resource.

These are neutral of any protocol version; a handler translates. `message` is None where there is nothing to
say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from protocol.errors import ErrorCode
from protocol.uuids import ZERO_UUID
from replication.metadata.configs import ConfigResource

Assignments = tuple[tuple[int, tuple[int, ...]], ...]


class Refused(Exception):
    """One topic or resource is refused; the others of the request go on."""

    def __init__(self, error: ErrorCode, message: str | None = None) -> None:
        super().__init__(message or error.name)
        self.error = error
        self.message = message


class NoBlock(Exception):
    """The controller gave no block of producer ids in time; whoever wants one may ask again."""


@dataclass(slots=True, frozen=True)
class NewTopic:
    """A topic to create. -1 stands for the broker's default; `assignments` are (partition, broker ids) pairs
    as they were given, and exclude the two counts. A config value may be None, which is refused.
    """

    name: str
    num_partitions: int = -1
    replication_factor: int = -1
    assignments: Assignments = ()
    configs: tuple[tuple[str, str | None], ...] = ()


@dataclass(slots=True)
class TopicOutcome:
    """What became of one topic of CreateTopics. Counts are -1 and `configs` is None on error."""

    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    topic_id: bytes = ZERO_UUID
    num_partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] | None = None
    """The overrides given at creation; defaults are the handler's to add."""


@dataclass(slots=True, frozen=True)
class TopicToDelete:
    """By name, or by id when `name` is None."""

    name: str | None
    topic_id: bytes = ZERO_UUID


@dataclass(slots=True)
class DeletionOutcome:
    """What became of one topic of DeleteTopics."""

    name: str | None
    topic_id: bytes = ZERO_UUID
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(slots=True, frozen=True)
class MorePartitions:
    """A topic to grow to `count` partitions; `assignments` has one list of broker ids per NEW partition, or
    is None.
    """

    name: str
    count: int
    assignments: tuple[tuple[int, ...], ...] | None = None


@dataclass(slots=True)
class PartitionsOutcome:
    """What became of one topic of CreatePartitions."""

    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(slots=True)
class ConfigOutcome:
    """What became of one resource of AlterConfigs or IncrementalAlterConfigs."""

    resource: ConfigResource
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(slots=True)
class ControllerSettings:
    """The broker settings that operations depend on; the broker updates them when a dynamic value changes."""

    node_id: int
    num_partitions: int = 1
    default_replication_factor: int = 1
    producer_id_block_size: int = field(default=1000)
    is_cordoned: Callable[[], bool] = lambda: False  # whether this broker takes no new partitions (KIP-1066)
