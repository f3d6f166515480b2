"""What a follower's requests name, from one to the next."""

from __future__ import annotations

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.cluster.followed import Followed
from replication.cluster.follower_session import MAX_EPOCH, FollowerSession, Identity
from replication.partition import Partition
from tests.simulation.files import SimFileSystem
from tests.support.logs import batch, open_manager

LOGS = open_manager(SimFileSystem())
IDS = {"a": bytes(range(16)), "b": bytes(range(1, 17))}


def followed(topic="a", index=0):
    log = LOGS.get_or_create(topic, index, IDS[topic])
    partition = Partition(topic, index, IDS[topic], log)
    partition.leader_epoch = 3
    return Followed(partition)


def named(request):
    return [(topic.topic, each.partition) for topic in request.topics for each in topic.partitions]


def forgotten(request):
    return [(topic.topic, index) for topic in request.forgotten_topics_data for index in topic.partitions]


def session(session_id=7, version=17, entries=()):
    made = FollowerSession(Identity(2, version))
    first = made.request(entries, [], 55)
    assert (first.session_id, first.session_epoch) == (0, 0)
    made.answered(m.FetchResponse(session_id=session_id))
    return made, first


def test_the_first_request_tells_everything():
    one, two = followed("a", 0), followed("b", 1)
    one.partition.log.append_as_follower(batch(2, base=one.offset, leader_epoch=1), 0)
    one.offset = one.partition.log.end_offset
    _, request = session(entries=[one, two])
    assert named(request) == [("a", 0), ("b", 1)]
    assert [topic.topic_id for topic in request.topics] == [IDS["a"], IDS["b"]]
    [told] = request.topics[0].partitions
    assert (told.fetch_offset, told.current_leader_epoch, told.last_fetched_epoch) == (one.offset, 3, 1)
    assert request.topics[1].partitions[0].last_fetched_epoch == -1
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (500, 1, 10 << 20)
    assert told.partition_max_bytes == 1 << 20
    assert one.asked_from == one.offset


def test_who_asks_is_told_as_the_version_has_it():
    _, request = session()
    assert (request.replica_id, request.replica_state.replica_id) == (-1, 2)
    assert request.replica_state.replica_epoch == 55
    _, request = session(version=12)
    assert (request.replica_id, request.replica_state.replica_id) == (2, -1)


def test_later_requests_name_what_changed():
    one, two = followed("a", 0), followed("a", 1)
    made, _ = session(entries=[one, two])
    request = made.request([one, two], [], 55)
    assert (request.session_id, request.session_epoch) == (7, 1)
    assert named(request) == []
    made.answered(m.FetchResponse(session_id=7))
    two.partition.log.append_as_follower(batch(1, base=two.offset), 0)
    two.offset = two.partition.log.end_offset
    request = made.request([two], [], 55)
    assert (request.session_epoch, named(request)) == (2, [("a", 1)])


def test_what_is_not_wanted_is_forgotten_once_and_named_again_when_it_is():
    one, two = followed("a", 0), followed("b", 0)
    made, _ = session(entries=[one, two])
    request = made.request([], [one.key, ("c", 9)], 55)
    assert forgotten(request) == [("a", 0)]
    assert request.forgotten_topics_data[0].topic_id == IDS["a"]
    made.answered(m.FetchResponse(session_id=7))
    assert forgotten(made.request([], [one.key], 55)) == []
    made.answered(m.FetchResponse(session_id=7))
    assert named(made.request([one], [], 55)) == [("a", 0)]


def test_without_a_session_every_request_tells_everything():
    one = followed()
    made, _ = session(session_id=0, entries=[one])
    assert made.is_full
    request = made.request([one], [], 55)
    assert (request.session_id, request.session_epoch, named(request)) == (0, 0, [("a", 0)])


@pytest.mark.parametrize(
    ("error", "session_id"),
    [
        (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0),
        (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 7),  # the full request closes the old one
        (ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, 7),
    ],
)
def test_a_session_that_the_leader_does_not_have_begins_anew(error, session_id):
    one = followed()
    made, _ = session(entries=[one])
    made.request([], [], 55)
    assert not made.answered(m.FetchResponse(error_code=error))
    assert made.is_full
    request = made.request([one], [], 55)
    assert (request.session_id, request.session_epoch, named(request)) == (session_id, 0, [("a", 0)])


def test_after_a_request_without_an_answer_the_next_one_closes_the_session_and_begins_anew():
    one = followed()
    made, _ = session(entries=[one])
    made.request([], [], 55)
    made.begin_anew()
    request = made.request([one], [], 55)
    assert (request.session_id, request.session_epoch, named(request)) == (7, 0, [("a", 0)])


def test_the_epoch_goes_round_to_one():
    made, _ = session(entries=[followed()])
    made._epoch = MAX_EPOCH
    made.answered(m.FetchResponse(session_id=7))
    assert made.request([], [], 55).session_epoch == 1
