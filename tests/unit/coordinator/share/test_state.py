"""What records make of a share partition's state."""

from __future__ import annotations

from coordinator.share.batches import StateBatch
from coordinator.share.state import ShareState, after_snapshot, after_update
from protocol import messages as m


def snapshot(**fields: int) -> m.ShareSnapshotValue:
    batch = m.ShareSnapshotValue.StateBatch(first_offset=1, last_offset=2, delivery_state=2, delivery_count=1)
    return m.ShareSnapshotValue(state_batches=[batch], **fields)


def test_a_snapshot_is_the_state() -> None:
    value = snapshot(
        snapshot_epoch=1, state_epoch=2, leader_epoch=3, start_offset=1, create_timestamp=5, write_timestamp=6
    )
    assert after_snapshot(None, value, 77, 500) == ShareState(
        snapshot_epoch=1,
        state_epoch=2,
        leader_epoch=3,
        start_offset=1,
        complete_count=-1,
        batches=(StateBatch(1, 2, 2, 1),),
        create_ms=5,
        write_ms=6,
        fence_leader_epoch=3,
        fence_state_epoch=2,
        log_offset=77,
    )


def test_fences_are_the_highest_epochs_that_were_seen() -> None:
    before = after_snapshot(None, snapshot(state_epoch=4, leader_epoch=9), 0, 500)
    after = after_snapshot(before, snapshot(state_epoch=5, leader_epoch=0), 1, 500)
    assert (after.leader_epoch, after.fence_leader_epoch, after.fence_state_epoch) == (0, 9, 5)
    after = after_update(after, m.ShareUpdateValue(leader_epoch=3, start_offset=-1), 2)
    assert (after.leader_epoch, after.fence_leader_epoch, after.state_epoch) == (3, 9, 5)


def test_updates_are_counted_until_a_snapshot_was_due() -> None:
    state = after_snapshot(None, snapshot(), 0, 2)
    state = after_update(state, m.ShareUpdateValue(), 1)
    assert after_snapshot(state, snapshot(), 2, 2).updates == 1
    state = after_update(state, m.ShareUpdateValue(), 2)
    assert state.updates == 2
    assert after_snapshot(state, snapshot(), 3, 2).updates == 0


def test_an_update_changes_what_it_says() -> None:
    before = after_snapshot(None, snapshot(state_epoch=2, leader_epoch=3, start_offset=1), 5, 500)
    batch = m.ShareUpdateValue.StateBatch(first_offset=2, last_offset=4, delivery_state=4, delivery_count=2)
    after = after_update(
        before, m.ShareUpdateValue(leader_epoch=-1, start_offset=-1, state_batches=[batch]), 6
    )
    assert (after.leader_epoch, after.start_offset, after.log_offset) == (3, 1, 5)
    assert after.batches == (StateBatch(1, 1, 2, 1), StateBatch(2, 4, 4, 2))
    after = after_update(after, m.ShareUpdateValue(start_offset=3, delivery_complete_count=2), 7)
    assert (after.start_offset, after.complete_count) == (3, 2)
    assert after.batches == (StateBatch(3, 4, 4, 2),)


def test_an_update_without_a_snapshot_stands_for_one() -> None:
    value = m.ShareUpdateValue(snapshot_epoch=3, leader_epoch=2, start_offset=8)
    after = after_update(None, value, 11)
    assert (after.snapshot_epoch, after.leader_epoch, after.start_offset) == (3, 2, 8)
    assert (after.state_epoch, after.fence_leader_epoch, after.updates, after.log_offset) == (0, 2, 1, 11)
