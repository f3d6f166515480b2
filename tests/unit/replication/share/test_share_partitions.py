"""Share partitions of a broker: loading, storing, fencing, time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.share.acknowledge import Ack
from replication.share.ports import Reset, ShareState, StateBatch
from replication.share.runs import ACKNOWLEDGED, AVAILABLE
from replication.share.share_partitions import Entry, told_error
from tests.support.handler_broker import HandlerBroker
from tests.unit.replication.share.stage import GROUP, Stage

ACCEPT, RELEASE = [1], [2]
OK = [(ErrorCode.NONE, None)]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with HandlerBroker(tmp_path) as broker:
        yield Stage(broker)


def entry_of(stage: Stage, place: tuple[bytes, int]) -> Entry:
    found = stage.partitions.get_or_load(GROUP, place)
    assert isinstance(found, Entry)
    return found


def test_what_is_not_here(stage: Stage) -> None:
    topic = stage.topic()
    assert stage.partitions.get_or_load(GROUP, (b"\x09" * 16, 0)) is ErrorCode.UNKNOWN_TOPIC_ID
    assert stage.partitions.get_or_load(GROUP, (topic, 5)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert len(stage.partitions) == 0
    assert stage.say((topic, 0), []) == [
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.message)
    ]


def test_it_is_loaded_once_and_kept(stage: Stage) -> None:
    place = (stage.topic(), 0)
    stage.persister.state = ShareState(2, 3, [StateBatch(3, 4, AVAILABLE, 1)])
    entry = entry_of(stage, place)
    assert stage.partitions.get(GROUP, place) is entry
    assert entry_of(stage, place) is entry
    assert (entry.share.state_epoch, entry.share.next_offset()) == (2, 3)


@pytest.mark.parametrize(("reset", "start"), [(Reset.LATEST, 5), (Reset.EARLIEST, 0)])
def test_where_a_group_begins_that_never_read(stage: Stage, reset: Reset, start: int) -> None:
    place = (stage.topic(), 0)
    stage.produce(5)
    stage.persister.state = ShareState(0, -1)
    stage.settings.the_reset = (reset, 0)
    assert entry_of(stage, place).share.next_offset() == start


def test_a_group_may_begin_by_time(stage: Stage) -> None:
    place = (stage.topic(), 0)
    stage.persister.state = ShareState(0, -1)
    stage.settings.the_reset = (Reset.BY_DURATION, 60_000)
    entry = entry_of(stage, place)
    [(partition, timestamp, found)] = stage.searches
    assert (partition.topic, timestamp) == ("t", stage.time.now_ms() - 60_000)
    assert not entry.share.can_acquire()
    found(3)
    assert entry.share.next_offset() == 3
    stage.partitions.drop(entry)
    again = entry_of(stage, place)
    stage.searches[1][2](None)
    assert again.failed is ErrorCode.OFFSET_NOT_AVAILABLE
    assert stage.partitions.get(GROUP, place) is None


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.FENCED_STATE_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.GROUP_ID_NOT_FOUND),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ErrorCode.INVALID_REQUEST, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_errors_of_the_persister(stage: Stage, error: ErrorCode, told: ErrorCode) -> None:
    assert told_error(error) is told
    place = (stage.topic(), 0)
    stage.persister.read_error = error
    assert entry_of(stage, place).failed is told
    assert stage.partitions.get(GROUP, place) is None


def test_what_was_stored_wrong_does_not_load(stage: Stage) -> None:
    stage.persister.state = ShareState(0, 10, [StateBatch(5, 6, AVAILABLE, 1)])
    assert entry_of(stage, (stage.topic(), 0)).failed is ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_change_is_stored_then_answered(stage: Stage) -> None:
    place = (stage.topic(), 0)
    stage.produce(5)
    assert stage.fetch(place).got == {0: [(0, 4, 1)]}
    stage.persister.at_once = False
    told = stage.say(place, [Ack(0, 2, ACCEPT)])
    assert told == []
    [(change, done)] = stage.persister.writes
    assert (change.group_id, change.topic_id, change.partition) == (GROUP, *place)
    assert (change.state_epoch, change.leader_epoch) == (2, 0)
    assert (change.start_offset, change.delivery_complete_count) == (0, 3)
    assert change.batches == [StateBatch(0, 2, ACKNOWLEDGED, 1)]
    done(ErrorCode.NONE)
    assert told == OK
    assert entry_of(stage, place).share.window.start_offset == 3


def test_a_change_that_is_not_stored_is_taken_back(stage: Stage) -> None:
    place = (stage.topic(), 0)
    stage.produce(5)
    stage.fetch(place)
    stage.persister.at_once = False
    told = stage.say(place, [Ack(0, 4, ACCEPT)])
    stage.persister.writes[0][1](ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert told[0][0] is ErrorCode.COORDINATOR_NOT_AVAILABLE
    stage.persister.at_once = True
    assert stage.say(place, [Ack(0, 4, ACCEPT)]) == OK


@pytest.mark.parametrize(
    "error",
    [ErrorCode.FENCED_STATE_EPOCH, ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.GROUP_ID_NOT_FOUND],
)
def test_a_fenced_one_is_loaded_anew(stage: Stage, error: ErrorCode) -> None:
    place = (stage.topic(), 0)
    stage.produce(5)
    stage.fetch(place)
    before = entry_of(stage, place)
    stage.persister.at_once = False
    told = stage.say(place, [Ack(0, 4, ACCEPT)])
    stage.persister.writes[0][1](error)
    assert told[0][0] is told_error(error)
    assert stage.partitions.get(GROUP, place) is None
    stage.persister.at_once = True
    assert stage.fetch(place).got == {0: [(0, 4, 1)]}
    assert entry_of(stage, place) is not before


def test_refused_acknowledgements_are_not_stored(stage: Stage) -> None:
    place = (stage.topic(), 0)
    stage.produce(2)
    stage.fetch(place)
    assert stage.say(place, [Ack(0, 1, ACCEPT)], member="bob")[0][0] is ErrorCode.INVALID_RECORD_STATE
    assert stage.say(place, [Ack(0, 1, [4])]) == OK
    stage.settings.renew = False
    assert stage.say(place, [Ack(0, 1, [4])])[0][0] is ErrorCode.INVALID_RECORD_STATE
    assert stage.persister.writes == []


def test_locks_run_out_and_that_is_stored(stage: Stage) -> None:
    place = (stage.topic(), 0)
    stage.produce(3)
    stage.fetch(place)
    stage.time.pass_ms(999)
    assert stage.persister.writes == []
    stage.time.pass_ms(2)
    [(change, _)] = stage.persister.writes
    assert change.batches == [StateBatch(0, 2, AVAILABLE, 1)]
    assert stage.fetch(place).got == {0: [(0, 2, 2)]}
    assert stage.say(place, [Ack(0, 2, ACCEPT)]) == OK
    stage.time.pass_ms(5000)
    assert len(stage.persister.writes) == 2


def test_a_lock_that_ran_out_is_free_though_it_is_not_stored(stage: Stage) -> None:
    place = (stage.topic(), 0)
    stage.produce(3)
    stage.fetch(place)
    stage.persister.at_once = False
    stage.time.pass_ms(1001)
    stage.persister.writes[0][1](ErrorCode.COORDINATOR_NOT_AVAILABLE)
    assert stage.fetch(place).got == {0: [(0, 2, 2)]}


def test_what_a_member_held_is_free_when_it_goes(stage: Stage) -> None:
    place = (stage.topic(), 0)
    stage.produce(3)
    stage.fetch(place)
    told: list[object] = []
    stage.partitions.release(GROUP, "ann", place, lambda *result: told.append(result))
    stage.partitions.release(GROUP, "ann", (place[0], 9), lambda *result: told.append(result))
    assert told[0] == OK[0]
    assert stage.fetch(place, member="bob").got == {0: [(0, 2, 2)]}


def test_what_is_led_no_more_is_dropped(stage: Stage) -> None:
    place = (stage.topic(), 0)
    entry = entry_of(stage, place)
    stage.partitions.follow_leadership()
    assert stage.partitions.get(GROUP, place) is entry
    entry.partition.leader_epoch += 1
    stage.partitions.follow_leadership()
    assert stage.partitions.get(GROUP, place) is None
    again = entry_of(stage, place)
    delete = m.DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000)
    stage.broker.call(delete, 5)
    stage.partitions.follow_leadership()
    assert not again.still_led
    assert len(stage.partitions) == 0


def test_a_group_is_dropped(stage: Stage) -> None:
    topic = stage.topic(partitions=2)
    for index in (0, 1):
        entry_of(stage, (topic, index))
    other = stage.partitions.get_or_load("other", (topic, 0))
    stage.partitions.drop_group(GROUP)
    assert list(stage.partitions) == [other]
    stage.partitions.close()
    assert len(stage.partitions) == 0
