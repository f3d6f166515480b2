"""Notes that brokers leave."""

from __future__ import annotations

from dataclasses import replace

from replication.metadata import controller_payloads, paths, payloads
from replication.metadata.store import Put
from tests.unit.replication.controller.desk import T0, Desk, story


@story
async def test_a_failed_directory_has_the_broker_asked_what_it_serves():
    at = await Desk.with_topics({"t": [(1, 2), (2, 3)]})
    for number, value in enumerate((controller_payloads.encode_log_dir_event(2), b"?")):
        await at.store.create(f"{paths.LOG_DIR_EVENTS}/log_dir_event_{number}", value)
    await at.reign.notifications.on_log_dir_events()
    told = [line for line in at.told() if line.startswith("LISR")]
    assert told == ["LISR 2 t-0 leader 1/0 isr 1,2", "LISR 2 t-1 leader 2/0 isr 2,3"]
    assert await at.ledger.children(paths.LOG_DIR_EVENTS) == []


@story
async def test_a_set_in_sync_that_a_leader_wrote_itself_is_read_and_told():
    at = await Desk.with_topics({"t": [(1, 2)]})
    theirs = replace(at.stored(), isr=(1,))
    await at.store.multi([Put(paths.partition_state("t", 0), payloads.encode_state(theirs))])
    value = controller_payloads.encode_partitions([T0, ("nobody", 0)])
    await at.store.create(f"{paths.ISR_CHANGES}/isr_change_0", value)
    await at.store.create(f"{paths.ISR_CHANGES}/isr_change_1", b"?")
    await at.reign.notifications.on_isr_changes()
    assert at.state.leaderships[T0].isr == (1,)
    assert at.told() == [f"UMR {broker} t-0 leader 1/0" for broker in (1, 2, 3)]
    assert await at.ledger.children(paths.ISR_CHANGES) == []


@story
async def test_such_a_change_may_end_a_reassignment():
    at = await Desk.with_topics({"t": [(1, 2)]})
    await at.reign.reassignments.reassign(T0, at.state.assignment(T0).towards((3,)))
    theirs = replace(at.stored(), isr=(1, 2, 3))
    await at.store.multi([Put(paths.partition_state("t", 0), payloads.encode_state(theirs))])
    await at.store.create(f"{paths.ISR_CHANGES}/isr_change_0", controller_payloads.encode_partitions([T0]))
    await at.reign.notifications.on_isr_changes()
    assert at.topic().assignment == {0: (3,)}


@story
async def test_a_new_controller_takes_all_notes_away():
    at = await Desk.with_topics({"t": [(1, 2)]})
    await at.store.create(f"{paths.LOG_DIR_EVENTS}/log_dir_event_0", b"")
    await at.store.create(f"{paths.ISR_CHANGES}/isr_change_0", b"")
    await at.next_epoch()
    assert await at.ledger.children(paths.LOG_DIR_EVENTS) == []
    assert await at.ledger.children(paths.ISR_CHANGES) == []
