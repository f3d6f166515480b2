"""Where checks look into a simulated broker, between its steps. Nothing here changes anything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from replication.metadata.image import ClusterImage
from tests.simulation.machine import BrokerMachine

Batch = tuple[int, int, int, int]  # first and last offset, leader epoch, CRC


def context_of(machine: BrokerMachine) -> Any | None:
    """The parts of the broker, once it serves."""
    if not machine.serving or machine.process is None or machine.process.loop.dead:
        return None
    return machine.process.broker.hub.dispatcher._context


def image_of(machine: BrokerMachine) -> ClusterImage | None:
    """What the broker knows of the cluster."""
    context = context_of(machine)
    return None if context is None else context.holder.current


def broker_epoch_of(machine: BrokerMachine) -> int:
    """Under which registration the process believes to be; -1 where none runs."""
    process = machine.process
    if process is None or process.loop.dead or process.broker._membership is None:
        return -1
    epoch: int = process.broker._membership._registration.epoch
    return epoch


def replicas_on(machine: BrokerMachine) -> Iterator[Any]:
    """The replicas of a broker that can be read."""
    context = context_of(machine)
    for replica in () if context is None else context.replicas:
        if not replica.offline and not replica.log.closed:
            yield replica


def replica_on(machine: BrokerMachine, topic_id: bytes, index: int) -> Any | None:
    """One replica of a broker, if it is there and can be read."""
    context = context_of(machine)
    replica = None if context is None else context.replicas.get_by_id(topic_id, index)
    return None if replica is None or replica.offline or replica.log.closed else replica


def batches_of(log: Any) -> list[Batch]:
    """The batches in a log's files, below its end. To look at them is no operation of the disk's."""
    from storage.scan import scan

    disk = log.local.files
    draw, disk.draw = disk.draw, _no_fault
    try:
        return [
            (facts.base_offset, facts.last_offset, facts.leader_epoch, facts.crc)
            for segment in log.local.segments
            for facts in scan(segment.handle, 0, segment.size)
            if facts.last_offset < log.end_offset
        ]
    finally:
        disk.draw = draw


def _no_fault(operation: str, path: str) -> None:
    """Nothing is wrong with the disk."""
