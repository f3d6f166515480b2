"""What a crash has left at the end of a log: a batch that is not whole, epochs without their records."""

from __future__ import annotations

import pytest

from tests.support.logs import batch
from tests.unit.replication.cluster.stage import TOPIC, Stage

A, B = 1, 2
RECORD_BYTES = len(batch(1))
LOG = f"/logs/{TOPIC}-0/{0:020}.log"


def three_on_both():
    """A leads, B has all three records."""
    stage = Stage(2)
    stage.lead(A, is_new=True)
    for _ in range(3):
        stage[A].produce()
    stage.sync()
    return stage


def crash(stage, broker_id, change):
    """End a broker; `change(file)` is what its disk lost or got with that."""
    node = stage[broker_id]
    stage.stop(broker_id)
    change(node.files.open(LOG))
    return node


def cut_in_the_last_batch(file):
    file.truncate(file.size() - 7)


def begin_another_batch(file):
    file.append([file.read_at(0, RECORD_BYTES - 5)])


@pytest.mark.parametrize(("torn", "left"), [(cut_in_the_last_batch, 2), (begin_another_batch, 3)])
def test_a_torn_last_batch_of_a_killed_leader_is_cut_and_the_new_leaders_copy_wins(torn, left):
    stage = three_on_both()
    node = crash(stage, A, torn)
    stage.lead(B, isr=[B])
    stage[B].produce(size=50)
    stage.start(A, node)
    assert stage[A].logs.get(TOPIC, 0).end_offset == left
    stage.lead(B, isr=[B])
    stage.sync()
    assert stage[A].log.end_offset == 4
    assert stage[A].batches() == stage[B].batches()
    assert stage[A].epochs == [(0, 0), (1, 3)]


def test_a_leader_that_leads_again_with_a_torn_batch_goes_on_at_the_cut_and_the_others_follow_it():
    stage = three_on_both()
    node = crash(stage, A, cut_in_the_last_batch)
    stage.start(A, node)
    stage.lead(A, isr=[A])
    assert stage[A].produce(size=50) == 2
    stage.sync()
    assert stage[B].batches() == stage[A].batches()
    assert stage[B].epochs == [(0, 0), (1, 2)]


def test_epochs_of_records_that_the_crash_took_are_not_known_any_more():
    """Else the log would claim to have what it lacks, and a follower with it would keep it."""
    stage = three_on_both()
    stage.lead(B)
    stage[B].produce(size=50)
    stage.sync()
    assert stage[A].epochs == [(0, 0), (1, 3)]

    node = crash(stage, A, lambda file: file.truncate(2 * RECORD_BYTES))
    stage.start(A, node)
    log = stage[A].logs.get(TOPIC, 0)
    assert (log.end_offset, log.leader_epochs.entries) == (2, [(0, 0)])
    stage.lead(B, isr=[B])
    [request] = stage[A].fetch()
    [topic] = request.topics
    assert (topic.partitions[0].fetch_offset, topic.partitions[0].last_fetched_epoch) == (2, 0)
    stage.sync()
    assert stage[A].batches() == stage[B].batches()
    assert stage[A].epochs == [(0, 0), (1, 3)]
