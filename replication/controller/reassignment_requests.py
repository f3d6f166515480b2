"""AlterPartitionReassignments and ListPartitionReassignments: what is refused, what is begun (KIP-455)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Final

from protocol.errors import ErrorCode
from replication.controller.assignment import Assignment
from replication.controller.cluster_state import ControllerState, TopicPartition
from replication.controller.outcomes import Refused
from replication.controller.reassignments import loses_all_in_sync
from replication.controller.reign import Reign
from replication.metadata.store import NoNode

_log = logging.getLogger(__name__)

Outcome = tuple[ErrorCode, str | None]

_INCLUDES: Final = "The manual partition assignment includes"

CANCEL: Final = None
"""Given as the target replicas: go back to where the partition was."""


async def alter(
    reign: Reign, wanted: Mapping[TopicPartition, tuple[int, ...] | None], *, allow_factor_change: bool
) -> dict[TopicPartition, Outcome]:
    """Begin, replace or cancel the reassignment of each partition; one outcome each, in the order given. A
    request through /admin/reassign_partitions for one of them is forgotten.
    """
    outcomes: dict[TopicPartition, Outcome] = {}
    planned: dict[TopicPartition, Assignment] = {}
    for partition, target in wanted.items():
        try:
            planned[partition] = plan(reign.state, partition, target, allow_factor_change=allow_factor_change)
            outcomes[partition] = ErrorCode.NONE, None
        except Refused as refused:
            outcomes[partition] = refused.error, refused.message
    if planned:
        await reign.legacy.forget(lambda partition, _: partition in planned)
    for partition, assignment in planned.items():
        try:
            await reign.reassignments.reassign(partition, assignment)
        except NoNode as gone:
            _log.error("Partition %s cannot be reassigned: %s", partition, gone)
            outcomes[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
    return outcomes


def plan(
    state: ControllerState,
    partition: TopicPartition,
    target: tuple[int, ...] | None,
    *,
    allow_factor_change: bool = True,
) -> Assignment:
    """The assignment that leads to the target. Pure. Raises Refused."""
    current = state.assignment(partition)
    if not current.replicas or partition.topic in state.deleting:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, _unknown(state, partition))
    if target is CANCEL:
        if not current.reassigning:
            error = ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
            raise Refused(error, error.message)
        return _checked(state, partition, current.towards(current.origin))
    _check_target(target)
    planned = current.towards(target)
    for broker in planned.adding:
        if not state.is_live(broker):
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{_INCLUDES} broker {broker}, but no such broker is registered.",
            )
        if state.brokers[broker].cordoned:
            raise Refused(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                f"{_INCLUDES} broker {broker}, but all its log directories are cordoned.",
            )
    if not allow_factor_change and len(target) != len(current.origin):
        raise Refused(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {len(current.origin)} to {len(target)}",
        )
    return _checked(state, partition, planned)


def _checked(state: ControllerState, partition: TopicPartition, planned: Assignment) -> Assignment:
    if loses_all_in_sync(state, partition, planned):
        raise Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Unable to revert partition assignment for {partition.topic}:{partition.partition} because "
            "it would require an unclean leader election.",
        )
    return planned


def under_way(
    state: ControllerState, partitions: Iterable[TopicPartition] | None
) -> dict[TopicPartition, Assignment]:
    """The reassignments in progress, of these partitions or of all. Pure."""
    asked = state.reassigning if partitions is None else partitions
    listed = {partition: state.assignment(partition) for partition in asked}
    return {partition: assignment for partition, assignment in listed.items() if assignment.reassigning}


def _check_target(target: tuple[int, ...]) -> None:
    error = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    if not target:
        raise Refused(error, f"{_INCLUDES} an empty replica list.")
    for broker in sorted(target):
        if broker < 0:
            raise Refused(error, f"{_INCLUDES} an invalid broker id {broker}.")
        if target.count(broker) > 1:
            raise Refused(error, f"{_INCLUDES} the broker {broker} more than once.")


def _unknown(state: ControllerState, partition: TopicPartition) -> str:
    if partition.topic not in state.assignments:
        return f"Unable to find a topic named {partition.topic}."
    return f"Unable to find partition {partition.topic}:{partition.partition}."
