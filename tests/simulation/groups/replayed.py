"""Live state against what a new coordinator would make of the log.

Offsets, pending ones included, are equal whenever nothing is on its way to the log. So are groups that are
Stable or Empty and have no write open; a rebalance that goes on is not in the log, and neither is a group
whose last record failed to be written (a later one settles it).
"""

from __future__ import annotations

from typing import Any

from coordinator.group.classic import events as ev
from coordinator.group.classic.group import ClassicGroup
from coordinator.group.classic.states import GroupState
from coordinator.group.shard import GroupShard, ShardSettings
from coordinator.journal import Journal, JournaledTable
from coordinator.loader import Replay
from coordinator.runtime import Context
from coordinator.timer import KeyedTimers
from protocol.records.batch import BatchHeader, batches, read_header, records
from runtime.entropy import Random, SeededRandom
from tests.simulation.virtual_time import Scheduler


class WatchedShard(GroupShard):
    """Knows the groups whose last record failed, as far as they were told."""

    def __init__(self, context: Context, clock: Scheduler, random: Random, settings: ShardSettings) -> None:
        super().__init__(context, clock, random, settings)
        self.unsettled: set[str] = set()

    def handle(self, group_id: str, event: ev.Event) -> None:
        if isinstance(event, ev.RecordsFailed):
            self.unsettled.add(group_id)
        elif isinstance(event, ev.RecordsCommitted):
            self.unsettled.discard(group_id)
        super().handle(group_id, event)


def replayed(log: bytes) -> GroupShard:
    """A shard that has read these batches, before it is told that they were all."""

    def append(records: Any, decided: Any) -> None:
        raise AssertionError("a load appends nothing")

    scheduler = Scheduler()
    context = Context(0, Journal(), KeyedTimers(scheduler), append, append)
    shard = GroupShard(context, scheduler, SeededRandom(b"r"), ShardSettings(ev.GroupSettings()))
    for _ in Replay(shard, 0).steps(log):
        pass
    return shard


def compacted(log: bytes) -> bytes:
    """What is left when plain batches go whose records have all a later one of the same key, as a cleaner
    does it; it does not look at anything behind the begin of an open transaction.
    """
    found = [(log[at : at + size], read_header(log, at)) for at, size in batches(log)]
    stable_offset = _last_stable_offset([head for _, head in found])
    plain = {
        id(batch): list(records(batch))
        for batch, head in found
        if _is_plain(head) and head.base_offset < stable_offset
    }
    last: dict[bytes | None, int] = {}
    for rows in plain.values():
        last.update((record.key, record.offset) for record in rows)
    return b"".join(
        batch
        for batch, _ in found
        if id(batch) not in plain or any(last[record.key] == record.offset for record in plain[id(batch)])
    )


def _last_stable_offset(heads: list[BatchHeader]) -> int:
    open_from: dict[int, int] = {}
    for head in heads:
        if head.is_control:
            open_from.pop(head.producer_id, None)
        elif head.is_transactional:
            open_from.setdefault(head.producer_id, head.base_offset)
    return min(open_from.values(), default=1 << 62)


def _is_plain(head: BatchHeader) -> bool:
    return not head.is_transactional and not head.is_control


def check_replayed(live: WatchedShard, log: bytes) -> int:
    """Compare, also with a log that was compacted; returns how many groups were. Call it when nothing is on
    its way to the log.
    """
    _compare(live, replayed(compacted(log)))
    return _compare(live, replayed(log))


def _compare(live: WatchedShard, again: GroupShard) -> int:
    for table in ("committed", "pending", "producers"):
        now, then = (sorted(getattr(shard.offsets, table).items()) for shard in (live, again))
        assert now == then, f"{table} offsets differ: live {now}, replayed {then}"
    for name, table in vars(live.consumer.tables).items():
        if isinstance(table, JournaledTable):
            now, then = sorted(table.items()), sorted(getattr(again.consumer.tables, name).items())
            assert now == then, f"{name} of consumer groups differ: live {now}, replayed {then}"
    compared = len(live.consumer.group_ids())
    for name in sorted(live.groups.keys() | again.groups.keys()):
        group, other = live.groups.get(name), again.groups.get(name)
        if name in live.unsettled or (group is not None and not _is_settled(group)):
            continue
        if group is None or (group.state is GroupState.EMPTY and group.generation == 0):
            assert other is None, f"group {name} is gone, but in the log"
            continue
        assert other is not None, f"group {name} is not in the log"
        assert _seen(group) == _seen(other), f"group {name}: live {_seen(group)}, replayed {_seen(other)}"
        compared += 1
    return compared


def _is_settled(group: ClassicGroup) -> bool:
    return group.state in (GroupState.STABLE, GroupState.EMPTY) and not group.writes


def _seen(group: ClassicGroup) -> tuple[Any, ...]:
    members = [
        (
            each.member_id, each.instance_id, each.client_id, each.client_host, each.rebalance_timeout_ms,
            each.session_timeout_ms, each.metadata(group.protocol_name), each.assignment,
        )
        for each in group.members.values()
    ]  # fmt: skip
    return (
        group.state, group.generation, group.protocol_type, group.protocol_name, group.leader_id,
        group.state_since_ms, members,
    )  # fmt: skip
