"""What is kept of one share partition, and how records change it.

States are values: a record makes the next one. The epochs that fence are the highest that were ever seen,
while `leader_epoch` is that of the last record: Kafka begins it at 0 again when a share partition is
initialized anew, and a write repeats it instead of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from coordinator.share.batches import NO_START, Batches, StateBatch, merged, normal
from protocol import messages as m

NOT_KNOWN: Final = -1


@dataclass(frozen=True, slots=True)
class ShareState:
    """`complete_count` is how many records from the start offset on are in a final state (KIP-1226), -1 where
    nobody has said. `create_ms` and `write_ms` are those of the last snapshot; they differ once it has been
    repeated because it was cold.

    `updates` counts update records; only a snapshot that was due because of them begins the count again.
    `log_offset` is where the last snapshot lies: records of this share partition before it are not needed.
    """

    snapshot_epoch: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = NO_START
    complete_count: int = NOT_KNOWN
    batches: Batches = ()
    create_ms: int = 0
    write_ms: int = 0
    fence_leader_epoch: int = 0
    fence_state_epoch: int = 0
    updates: int = 0
    log_offset: int = 0


def after_snapshot(
    before: ShareState | None, value: m.ShareSnapshotValue, log_offset: int, updates_per_snapshot: int
) -> ShareState:
    """The state that a snapshot record leaves."""
    leader_fence, state_fence, updates = value.leader_epoch, value.state_epoch, 0
    if before is not None:
        leader_fence = max(leader_fence, before.fence_leader_epoch)
        state_fence = max(state_fence, before.fence_state_epoch)
        updates = before.updates if before.updates < updates_per_snapshot else 0
    return ShareState(
        snapshot_epoch=value.snapshot_epoch,
        state_epoch=value.state_epoch,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        complete_count=value.delivery_complete_count,
        batches=normal(batches_of(value)),
        create_ms=value.create_timestamp,
        write_ms=value.write_timestamp,
        fence_leader_epoch=leader_fence,
        fence_state_epoch=state_fence,
        updates=updates,
        log_offset=log_offset,
    )


def after_update(before: ShareState | None, value: m.ShareUpdateValue, log_offset: int) -> ShareState:
    """The state that an update record leaves; an update without a snapshot before it stands for one."""
    if before is None:
        return ShareState(
            snapshot_epoch=value.snapshot_epoch,
            leader_epoch=value.leader_epoch,
            start_offset=value.start_offset,
            complete_count=value.delivery_complete_count,
            batches=normal(batches_of(value)),
            fence_leader_epoch=value.leader_epoch,
            updates=1,
            log_offset=log_offset,
        )
    start_offset = before.start_offset if value.start_offset == NO_START else value.start_offset
    return replace(
        before,
        leader_epoch=before.leader_epoch if value.leader_epoch == NOT_KNOWN else value.leader_epoch,
        start_offset=start_offset,
        complete_count=value.delivery_complete_count,
        batches=merged(before.batches, batches_of(value), start_offset),
        fence_leader_epoch=max(before.fence_leader_epoch, value.leader_epoch),
        updates=before.updates + 1,
    )


def batches_of(value: m.ShareSnapshotValue | m.ShareUpdateValue) -> list[StateBatch]:
    """The state batches of a value, as they stand there."""
    return [
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in value.state_batches
    ]
