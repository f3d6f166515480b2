"""DeleteRecords that waits for followers."""

from __future__ import annotations

from protocol.errors import ErrorCode
from replication.delayed_delete import await_replicas
from replication.delete_records import delete_records
from replication.roles import become_follower
from runtime.pieces import at_once
from tests.unit.replication.leading import Led, state
from tests.unit.replication.test_purgatory import Clockwork


class Deletion:
    """Deletes up to an offset of a partition whose followers have everything."""

    def __init__(self, offset=3, **fields):
        self.led = led = Led(**fields)
        led.produce(5)
        for broker_id in led.leadership.followers if led.leadership is not None else ():
            led.fetch(broker_id, 5)
        self.clockwork, self.ended = Clockwork(), 0
        wanted = [("t", 0, offset)]
        self.results = at_once(delete_records(wanted, lambda topic, index: led.partition, self.persist))
        await_replicas(self.results, 100, self.clockwork, self.end)

    def persist(self):
        self.led.partition.log.directory.starts_moved = False

    def end(self):
        self.ended += 1

    def fetch(self, broker_id, start):
        if self.led.fetch(broker_id, 5, start=start):
            self.led.partition.committed_more()

    @property
    def answer(self):
        [result] = self.results
        return self.ended, result.error, result.low_watermark


def test_without_other_replicas_it_is_done_at_once():
    assert Deletion(isr=(1,), replicas=(1,)).answer == (1, ErrorCode.NONE, 3)


def test_it_waits_until_all_that_live_are_there():
    deletion = Deletion()
    deletion.fetch(2, 3)
    assert deletion.ended == 0
    deletion.fetch(3, 2)
    assert deletion.ended == 0
    deletion.fetch(3, 3)
    assert deletion.answer == (1, ErrorCode.NONE, 3)
    assert deletion.led.leadership.deleting == 0
    deletion.clockwork.advance(500)
    assert deletion.ended == 1


def test_the_dead_are_not_waited_for():
    deletion = Deletion()
    deletion.led.cluster.dead = [3]
    deletion.fetch(2, 4)
    assert deletion.answer == (1, ErrorCode.NONE, 3)


def test_appends_meanwhile_end_nothing():
    deletion = Deletion()
    deletion.led.produce()
    deletion.led.partition.wake()
    assert deletion.ended == 0
    deletion.fetch(2, 3)
    deletion.fetch(3, 3)
    assert deletion.ended == 1


def test_the_high_watermark_as_offset():
    deletion = Deletion(offset=-1)
    deletion.fetch(2, 5)
    deletion.fetch(3, 5)
    assert deletion.answer == (1, ErrorCode.NONE, 5)


def test_when_the_time_is_over_it_is_7_with_what_was_reached():
    deletion = Deletion()
    deletion.fetch(2, 3)
    deletion.fetch(3, 1)
    deletion.clockwork.advance(200)
    assert deletion.answer == (1, ErrorCode.REQUEST_TIMED_OUT, 1)
    assert deletion.led.leadership.deleting == 0
    assert deletion.led.partition.waiters == {}


def test_lost_leadership_is_6():
    deletion = Deletion()
    become_follower(deletion.led.partition, state(leader=2, epoch=1, version=1))
    assert deletion.answer == (1, ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


def test_what_was_refused_waits_for_nothing():
    assert Deletion(offset=9).answer == (1, ErrorCode.OFFSET_OUT_OF_RANGE, -1)
