"""Leaders return to their preferred replicas when too many of them are elsewhere. Pure.

The ratio is taken for each broker: of the partitions that name it first, how many have another leader (no
leader counts as another). Only a ratio strictly above the limit makes anything move, and then only what can.
"""

from __future__ import annotations

from replication.controller.cluster_state import ControllerState, TopicPartition
from replication.controller.elections import Strategy
from replication.controller.partition_states import choose


def misplaced(state: ControllerState, percent_max: int) -> list[TopicPartition]:
    """The partitions for which a preferred leader should be elected now; topics that are deleted do not
    count.
    """
    by_broker: dict[int, list[TopicPartition]] = {}
    for partition in state.all_partitions():
        if not state.is_going(partition.topic):
            by_broker.setdefault(state.assignment(partition).replicas[0], []).append(partition)
    moving: list[TopicPartition] = []
    for broker, partitions in by_broker.items():
        elsewhere = [
            p for p in partitions if p in state.leaderships and state.leaderships[p].leader != broker
        ]
        if len(elsewhere) * 100 > percent_max * len(partitions):
            moving += [p for p in elsewhere if choose(state, p, Strategy.PREFERRED, False) is not None]
    return moving
