"""What a broker of a cluster adds to fetches."""

from __future__ import annotations

from protocol import messages as m
from replication.cluster.replica_reads import ReplicaReads
from replication.cluster.throttle import LEADER_REPLICAS, ReplicationQuota
from replication.fetch import FetchParams, read_all
from replication.metadata.configs import ConfigResource, ConfigType
from replication.metadata.image import BrokerImage, ClusterImage, EndpointImage
from tests.unit.replication.cluster import wanted
from tests.unit.replication.leading import Led

R = m.FetchRequest


def params(replica_id=-1, version=17):
    return FetchParams(version, 0, 1, 1 << 20, replica_id=replica_id)


class Reads(ReplicaReads):
    def __init__(self, led, to_nearest=False):
        self.quota = ReplicationQuota(LEADER_REPLICAS, 1)
        place = {"PLAINTEXT": EndpointImage("h", 1)}
        brokers = {1: BrokerImage(1, 1, place, "r1"), 2: BrokerImage(2, 1, place, "r2")}
        super().__init__(
            lambda _: led.partition,
            lambda: brokers,
            lambda: led.cluster.now_ms,
            self.quota,
            to_nearest=to_nearest,
        )


def test_a_replica_is_taken_note_of_under_its_registration_and_a_consumer_is_not():
    reads = Reads(Led(isr=(1, 2), replicas=(1, 2)))
    request = R(replica_state=R.ReplicaState(replica_id=2, replica_epoch=55))
    follower = reads.follower(17, request, params(2))
    assert (follower.broker_id, follower.broker_epoch) == (2, 55)
    assert reads.follower(14, request, params(2, 14)).broker_epoch == -1
    assert reads.follower(17, R(), params()) is None


def test_consumers_are_sent_to_a_replica_in_their_rack_where_that_is_wanted():
    led = Led(isr=(1, 2), replicas=(1, 2))
    led.produce(1)
    reads = Reads(led, to_nearest=True)
    follower = reads.follower(17, R(replica_state=R.ReplicaState(replica_id=2)), params(2))
    read_all([wanted("t", 0, 1)], lambda _: led.partition, params(2), follower)
    extended = reads.params(R(rack_id="r2"), params(), "PLAINTEXT")
    assert extended.redirect is not None
    assert extended.redirect(led.partition, 0) == 2
    assert reads.params(R(rack_id=""), params(), "PLAINTEXT").redirect is None
    assert reads.params(R(rack_id="r2"), params(version=10), "PLAINTEXT").redirect is None
    assert Reads(led).params(R(rack_id="r2"), params(), "PLAINTEXT").redirect is None


def test_a_replica_that_catches_up_waits_once_the_quota_is_used_up():
    led = Led(isr=(1,), replicas=(1, 2))
    led.produce(3)
    reads = Reads(led)
    assert reads.params(R(), params(2), "PLAINTEXT").throttle is None
    topic = ConfigResource(ConfigType.TOPIC, "t")
    reads.quota.follow(ClusterImage(), ClusterImage(configs={topic: {LEADER_REPLICAS: "0:1"}}))
    reads.quota.limit = 1
    extended = reads.params(R(), params(2), "PLAINTEXT")
    first = read_all([wanted("t", 0, 0)], lambda _: led.partition, extended)
    assert first.rows[0].length > 0
    reads.sent(extended, first.rows)
    assert read_all([wanted("t", 0, 0)], lambda _: led.partition, extended).rows[0].length == 0
    led.partition.isr = (1, 2)
    assert read_all([wanted("t", 0, 0)], lambda _: led.partition, extended).rows[0].length > 0
