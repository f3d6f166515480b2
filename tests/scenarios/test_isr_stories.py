"""Who is in sync when links are cut, followers are slow or stand still."""

from __future__ import annotations

import pytest

from protocol.errors import ErrorCode
from replication.follower import REFUSED_MS
from storage.errors import AppendRefused
from tests.unit.replication.cluster.stage import BACKOFF_MS, LAG_MS, Stage

A, B, C = 1, 2, 3


def started(**config):
    """A leads, B and C are in sync and idle."""
    stage = Stage(3, **config)
    stage.lead(A, is_new=True)
    stage.sync()
    return stage


def shrink(stage):
    """A look at the ISR of A's partition; what is proposed is stored at once."""
    leadership = stage[A].partition().leadership
    if leadership.shrink():
        stage[A].decide()
    return stage[A].partition().isr


def refused(stage):
    with pytest.raises(AppendRefused) as error:
        stage[A].produce(acks=-1)
    return error.value.error


def test_a_follower_that_is_cut_off_leaves_and_joins_again_when_it_is_healed():
    stage = started()
    stage.cut = [(C, A)]
    stage[A].produce()
    stage[B].fetch(2)
    stage.clock.ms += LAG_MS + 1
    stage[B].fetch()
    assert shrink(stage) == (A, B)
    assert stage[A].ends == (1, 1)
    stage.cut = []
    stage.clock.ms += BACKOFF_MS
    stage[C].fetch(3)
    stage[A].decide()
    assert stage[A].partition().isr == (A, B, C)


def test_a_leader_without_followers_accepts_no_acks_all_and_commits_nothing():
    stage = started(min_insync_replicas=2)
    stage[A].produce()
    stage.sync()
    stage.cut = [(B, A), (C, A)]
    stage[A].produce(acks=-1)
    stage.clock.ms += LAG_MS + 1
    assert shrink(stage) == (A,)
    assert refused(stage) == ErrorCode.NOT_ENOUGH_REPLICAS
    stage[A].produce(acks=1)
    assert stage[A].ends == (3, 1)  # what acks=1 wrote is there, and nobody sees it
    stage.cut = []
    stage.clock.ms += BACKOFF_MS
    stage[B].fetch(3)
    stage[A].decide()
    assert stage[A].ends == (3, 3)


def test_requests_that_arrive_while_answers_are_lost_move_nothing():
    stage = started()
    stage.lossy = [(C, A)]
    stage[A].produce()
    for _ in range(4):
        stage.clock.ms += LAG_MS // 3
        stage[B].fetch(2)
        stage[C].fetch()
    assert stage[A].partition().leadership.followers[C].end_offset == 0
    assert shrink(stage) == (A, B)


def test_a_follower_that_is_always_one_batch_behind_stays():
    stage = started()
    for _ in range(20):
        stage[A].produce()
        stage.clock.ms += LAG_MS // 4
        stage[C].fetch()
        stage[B].fetch(2)
    assert stage[A].partition().leadership.followers[C].end_offset == stage[A].log.end_offset - 1
    assert shrink(stage) == (A, B, C)


@pytest.mark.parametrize("idle", [True, False])
def test_one_that_stands_still_leaves_when_there_is_something_to_read(idle):
    stage = started()
    if not idle:
        stage[A].produce()
    stage.clock.ms += LAG_MS
    stage[B].fetch(2)
    stage.clock.ms += 1
    assert shrink(stage) == ((A, B, C) if idle else (A, B))


def test_the_minimum_is_all_replicas_and_one_is_gone():
    stage = started(min_insync_replicas=3)
    stage.stop(C)
    stage.lead(A, isr=[A, B])
    assert refused(stage) == ErrorCode.NOT_ENOUGH_REPLICAS
    few = Stage(2, min_insync_replicas=3)
    few.lead(A, is_new=True)
    few[A].produce(acks=-1)
    few.sync()
    assert few[A].ends == (1, 1)


def test_what_waits_when_the_isr_falls_below_the_minimum_stays_open_and_may_commit_later():
    stage = started(min_insync_replicas=2)
    stage.cut = [(B, A), (C, A)]
    stage[A].produce(acks=-1)
    stage.clock.ms += LAG_MS + 1
    assert shrink(stage) == (A,)
    assert stage[A].partition().committed(0) is None
    stage.cut = []
    stage.clock.ms += BACKOFF_MS
    stage[B].fetch(3)
    stage[A].decide()
    assert stage[A].partition().committed(0) == ErrorCode.NONE


def test_a_shrink_whose_answer_was_lost_is_repeated_and_accepted():
    stage = started()
    stage[A].produce()
    stage[B].fetch(2)
    stage.clock.ms += LAG_MS + 1
    stage[B].fetch()
    leadership = stage[A].partition().leadership
    assert leadership.shrink()
    partition, change = stage[A].proposals[-1]
    stage.stored[0].update(isr=list(change.isr), version=1)  # stored, and nobody heard of it
    stage[A].decide()
    assert (partition.isr, stage[A].ends) == ((A, B), (1, 1))


def test_a_replica_that_the_controller_refuses_is_proposed_again_a_while_later():
    stage = Stage(2)
    stage.lead(A, isr=[A], is_new=True)
    stage[B].fetch(2)
    stage[A].decide(ErrorCode.INELIGIBLE_REPLICA)
    assert stage[A].partition().leadership.maximal == {A}
    stage[B].fetch()
    assert not stage[A].proposals
    stage.clock.ms += REFUSED_MS
    stage[B].fetch()
    stage[A].decide()
    assert stage[A].partition().isr == (A, B)


@pytest.mark.parametrize("evicted", [True, False])
def test_a_session_that_was_evicted_or_is_out_of_step_goes_on_with_a_new_one(evicted):
    stage = started()
    [fetcher] = stage[B].copying.fetchers.values()
    before = fetcher._session._session_id
    if evicted:
        stage[A].sessions.close(before)
    else:
        fetcher._session._epoch += 3
    stage[A].produce()
    refused, full, *_ = stage[B].fetch(4)
    assert (refused.session_id, refused.topics) == (before, [])
    assert (full.session_epoch, len(full.topics)) == (0, 1)
    assert full.session_id == (0 if evicted else before)
    assert stage[B].log.end_offset == 1
    assert fetcher._session._session_id not in (0, before)
