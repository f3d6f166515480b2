"""A follower's fetches of a session: what its shape answers is what the general way answers."""

from __future__ import annotations

import pytest

from broker.handlers.replica_fetch import ReplicaFetchShape
from protocol import messages as m
from protocol.api_keys import ApiKey
from replication.cluster.replica_reads import ReplicaReads
from replication.cluster.throttle import LEADER_REPLICAS, ReplicationQuota
from tests.support.net_broker import NetBroker, decode, frame
from tests.support.replicated import Replicated

VERSION = 17
WAIT_MS = 60_000


class Quota(ReplicationQuota):
    active = False


@pytest.fixture
def net(tmp_path):
    with NetBroker(tmp_path) as made:
        made.create("orders", 2)
        made.topics = [Replicated(made, "orders", index) for index in range(2)]
        made.clock_ms = 0
        made.quota = Quota(LEADER_REPLICAS, 1)
        made.hub.dispatcher._hot[ApiKey.FETCH].reads = ReplicaReads(
            made.ctx.replicas.wanted_partition, dict, lambda: made.clock_ms, made.quota, to_nearest=False
        )
        yield made


class FollowerOf:
    """Broker 2, which fetches over one connection in one session."""

    def __init__(self, net, version=VERSION):
        self.net, self.version = net, version
        self.client = net.connect()
        self.session = self.epoch = self.number = 0

    def send(self, places, wait_ms=WAIT_MS, forgotten=(), **fields):
        """`places` are (index, offset)."""
        first = self.net.topics[0].partition
        request = m.FetchRequest(
            max_wait_ms=wait_ms, min_bytes=1, session_id=self.session, session_epoch=self.epoch
        )
        if self.version < 15:
            request.replica_id = 2
        else:
            request.replica_state.replica_id, request.replica_state.replica_epoch = 2, 5
        if places:
            request.topics = [
                m.FetchRequest.FetchTopic(
                    topic_id=first.topic_id,
                    partitions=[self._place(index, offset, **fields) for index, offset in places],
                )
            ]
        if forgotten:
            request.forgotten_topics_data = [
                m.FetchRequest.ForgottenTopic(topic_id=first.topic_id, partitions=list(forgotten))
            ]
        self.number += 1
        self.client.send(frame(request, self.version, self.number, "broker-2"))
        self.epoch += 1

    def _place(self, index, offset, **fields):
        epoch = self.net.topics[index].partition.leader_epoch
        values = {"current_leader_epoch": epoch, "last_fetched_epoch": -1, "log_start_offset": 0, **fields}
        return m.FetchRequest.FetchPartition(
            partition=index, fetch_offset=offset, partition_max_bytes=1 << 20, **values
        )

    def told(self):
        """What the only answer says: partitions by index."""
        self.net.run()
        [(number, data)] = self.client.answers()
        assert number == self.number
        answer = decode(ApiKey.FETCH, self.version, data)
        assert answer.error_code == 0
        self.session = answer.session_id
        return {row.partition_index: row for topic in answer.responses for row in topic.partitions}

    @property
    def shape(self):
        found = [s for s in (self.client.connection._shapes or {}).values() if type(s) is ReplicaFetchShape]
        return found[-1] if found else None


@pytest.fixture
def follower(net):
    """Its session is known, and so is how its requests look."""
    made = FollowerOf(net)
    made.send([(0, 0), (1, 0)], wait_ms=0)
    made.told()
    made.send([])
    assert made.shape is not None
    append(net, 0)
    assert set(made.told()) == {0}
    return made


@pytest.fixture
def known(net, follower, monkeypatch):
    """The same; from here on nothing may need the general way."""
    monkeypatch.setattr(net.hub, "dispatcher", None)
    return follower


def append(net, index, value=b"b"):
    """One record."""
    net.produce("orders", index, [(1_700_000_000_000, value)])
    net.topics[index].partition.wake()


def test_a_request_waits_and_is_answered_by_news(net, known):
    known.send([(0, 1)])
    assert known.client.answers() == []
    append(net, 1)
    told = known.told()
    assert set(told) == {1}
    assert told[1].records
    assert told[1].error_code == 0


@pytest.mark.parametrize(("size", "writes"), [(100, 1), (100_000, 1), (200_000, 3)])
def test_the_newest_records_leave_in_one_write_where_they_are_not_many(net, known, size, writes):
    known.send([(0, 1)])
    append(net, 0, b"v" * size)
    net.run()
    assert len(known.client.transport.writes) == writes
    assert len(known.told()[0].records) > size


def test_it_tells_the_leader_where_the_follower_stands(net, known):
    partition = net.topics[0].partition
    net.topics[0].follow(1, 3)
    assert partition.log.high_watermark == 0
    known.send([(0, 1)])
    assert partition.log.high_watermark == 1
    assert partition.leadership.followers[2].end_offset == 1


def test_the_end_of_its_time_answers_with_nothing(net, known):
    known.send([(0, 1)])
    known.shape.expire()
    told = known.told()
    assert not any(row.records for row in told.values())
    assert known.client.connection.waiting is None
    assert net.sessions.get(known.session).waiter is None


def test_a_connection_that_goes_leaves_nothing_parked(net, known):
    before = len(net.hub.deadlines)
    known.send([(0, 1)])
    assert len(net.hub.deadlines) == before + 1
    known.client.lose()
    assert len(net.hub.deadlines) == before
    assert net.sessions.get(known.session).waiter is None


def test_another_leader_epoch_is_refused(net, known):
    known.send([(0, 1)], current_leader_epoch=99)
    assert known.told()[0].error_code == 75


def test_divergence_is_told(net, known):
    epoch = net.topics[0].partition.leader_epoch
    net.topics[0].lead()
    known.client.connection._generation = net.hub.generation  # a new epoch alone forgets nothing here
    known.send([(0, 1)], last_fetched_epoch=epoch, current_leader_epoch=epoch + 1)
    append(net, 0)
    known.told()
    known.send([(0, 2)], last_fetched_epoch=epoch, current_leader_epoch=epoch + 1)
    diverging = known.told()[0].diverging_epoch
    assert (diverging.epoch, diverging.end_offset) == (epoch, 1)


def test_new_partitions_and_forgotten_ones_go_the_general_way(net, follower):
    session = net.sessions.get(follower.session)
    follower.send([(0, 1)], wait_ms=0, forgotten=[1])
    follower.told()
    assert len(session.watches) == 1
    follower.send([(1, 0)], wait_ms=0)
    assert set(follower.told()) >= {1}
    assert len(session.watches) == 2


@pytest.mark.parametrize("change", ["epoch", "closed", "throttled"])
def test_what_is_not_as_before_goes_the_general_way(net, follower, change):
    if change == "epoch":
        follower.epoch += 7
    elif change == "closed":
        net.sessions.close(follower.session)
    else:
        net.quota.active = True
    follower.send([(0, 1)], wait_ms=0)
    net.run()
    [(_, data)] = follower.client.answers()
    answer = decode(ApiKey.FETCH, VERSION, data)
    assert answer.error_code == {"epoch": 71, "closed": 70, "throttled": 0}[change]


def test_before_the_replicas_state_is_in_the_request_there_is_no_shape(net):
    old = FollowerOf(net, 14)
    for _ in range(2):
        old.send([(0, 0)], wait_ms=0)
        old.told()
    assert old.session
    assert old.shape is None
