"""Where the replicas of new partitions go (Kafka's AdminUtils). Pure: the two random draws are arguments.

The leaders walk round-robin over the brokers from `start`; the other replicas of a partition follow at a
distance that grows by one after each full round (`shift`), so that a broker's load spreads over all others
when it dies. With racks the brokers are ordered so that racks alternate, and a broker is skipped while
another rack, or another broker, has no replica of the partition yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class PlacementImpossible(Exception):
    """There are fewer brokers than replicas wanted, or only some of them name a rack."""


def place_replicas(
    brokers: Mapping[int, str | None],
    partitions: int,
    replication_factor: int,
    *,
    start: int,
    shift: int,
    first_partition: int = 0,
) -> list[tuple[int, ...]]:
    """The replicas of partitions `first_partition` to `first_partition + partitions - 1`.

    `brokers` maps id to rack; `start` and `shift` are in [0, number of brokers).
    """
    if replication_factor > len(brokers):
        raise PlacementImpossible(
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{len(brokers)} broker(s) are registered."
        )
    racks = {broker: rack for broker, rack in brokers.items() if rack is not None}
    if not racks:
        order = sorted(brokers)
        return [
            _spread(order, (first_partition + p + start) % len(order), s, replication_factor)
            for p, s in enumerate(_shifts(first_partition, partitions, len(order), shift))
        ]
    if len(racks) != len(brokers):
        raise PlacementImpossible("Not all brokers have rack information for replica rack aware assignment.")
    order = alternate_racks(racks)
    return [
        _spread_over_racks(order, racks, (first_partition + p + start) % len(order), s, replication_factor)
        for p, s in enumerate(_shifts(first_partition, partitions, len(order), shift))
    ]


def alternate_racks(racks: Mapping[int, str]) -> list[int]:
    """Broker ids so that neighbours are in different racks where possible: the lowest id of each rack in the
    order of the rack names, then the next id of each, until all are placed.
    """
    waiting: dict[str, list[int]] = {}
    for broker in sorted(racks):
        waiting.setdefault(racks[broker], []).append(broker)
    order: list[int] = []
    depth = 0
    while len(order) < len(racks):
        order += [waiting[rack][depth] for rack in sorted(waiting) if depth < len(waiting[rack])]
        depth += 1
    return order


def _shifts(first_partition: int, partitions: int, brokers: int, shift: int) -> list[int]:
    shifts: list[int] = []
    for partition in range(first_partition, first_partition + partitions):
        if partition > 0 and partition % brokers == 0:
            shift += 1
        shifts.append(shift)
    return shifts


def _nth_other(first: int, shift: int, step: int, brokers: int) -> int:
    """The index of the broker at `step` among the others, seen from `first`."""
    return (first + 1 + (shift + step) % (brokers - 1)) % brokers


def _spread(order: Sequence[int], first: int, shift: int, replication_factor: int) -> tuple[int, ...]:
    others = (order[_nth_other(first, shift, j, len(order))] for j in range(replication_factor - 1))
    return (order[first], *others)


def _spread_over_racks(
    order: Sequence[int], racks: Mapping[int, str], first: int, shift: int, replication_factor: int
) -> tuple[int, ...]:
    rack_count = len(set(racks.values()))
    replicas = [order[first]]
    used_racks = {racks[order[first]]}
    step = 0
    while len(replicas) < replication_factor:
        broker = order[_nth_other(first, shift * rack_count, step, len(order))]
        step += 1
        if broker in replicas or (racks[broker] in used_racks and len(used_racks) < rack_count):
            continue
        replicas.append(broker)
        used_racks.add(racks[broker])
    return tuple(replicas)
