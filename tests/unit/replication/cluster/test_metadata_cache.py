"""UpdateMetadata applied to images."""

from __future__ import annotations

from protocol import messages as m
from replication.cluster import metadata_cache
from replication.cluster.metadata_cache import told_topics, updated_topic
from replication.metadata.configs import ConfigResource, ConfigType
from replication.metadata.image import ClusterImage, EndpointImage

ID, OTHER = bytes(range(16)), bytes(range(16, 32))

R = m.UpdateMetadataRequest


def partition(index, leader=1, epoch=0, version=0, isr=(1, 2), replicas=(1, 2), offline=()):
    return R.UpdateMetadataPartitionState(
        partition_index=index,
        controller_epoch=1,
        leader=leader,
        leader_epoch=epoch,
        isr=list(isr),
        zk_version=version,
        replicas=list(replicas),
        offline_replicas=list(offline),
    )


def broker(broker_id, rack=None, port=9092):
    endpoint = R.UpdateMetadataEndpoint(port=port, host="h", listener="IN", security_protocol=0)
    return R.UpdateMetadataBroker(id=broker_id, endpoints=[endpoint], rack=rack)


def request(*partitions, topic="t", topic_id=ID, brokers=(1, 2), controller=7, epoch=3):
    topics = [R.UpdateMetadataTopicState(topic_name=topic, topic_id=topic_id, partition_states=[*partitions])]
    return R(
        controller_id=controller,
        controller_epoch=epoch,
        topic_states=topics if partitions else [],
        live_brokers=[broker(each) for each in brokers],
    )


def updated(image, told):
    topics = {topic[0]: updated_topic(image, topic) for topic in told_topics(told)}
    return metadata_cache.updated(image, told, topics)


def test_everything_a_broker_is_told():
    image = updated(ClusterImage(), request(partition(0, epoch=4, version=6, isr=(2, 1), offline=(2,))))
    assert (image.controller_id, image.controller_epoch) == (7, 3)
    assert list(image.brokers) == [1, 2]
    assert image.brokers[1].endpoints == {"IN": EndpointImage("h", 9092, "PLAINTEXT")}
    found = image.partition("t", 0)
    assert (found.leader, found.leader_epoch, found.partition_epoch) == (1, 4, 6)
    assert (found.isr, found.replicas, found.offline) == ((2, 1), (1, 2), (2,))
    assert image.topics_by_id[ID].name == "t"


def test_partitions_are_incremental_and_brokers_are_not():
    first = updated(ClusterImage(), request(partition(0), partition(1)))
    second = updated(first, request(partition(1, leader=2, epoch=1), brokers=(2,)))
    assert second.partition("t", 0) is first.partition("t", 0)
    assert second.partition("t", 1).leader == 2
    assert list(second.brokers) == [2]
    third = updated(second, request(brokers=(1, 2)))
    assert third.topics is second.topics


def test_what_is_told_again_is_the_same_object():
    first = updated(ClusterImage(), request(partition(0)))
    second = updated(first, request())
    assert second.brokers[1] is first.brokers[1]


def test_a_topic_goes_with_its_last_partition():
    image = updated(ClusterImage(), request(partition(0), partition(1)))
    image = updated(image, request(partition(1, leader=-2)))
    assert len(image.topics["t"].partitions) == 1
    image = updated(image, request(partition(0, leader=-2)))
    assert (dict(image.topics), dict(image.topics_by_id)) == ({}, {})
    assert updated(image, request(partition(0, leader=-2))).topics == {}


def test_a_partition_without_those_before_it_leaves_a_gap_until_they_come():
    image = updated(ClusterImage(), request(partition(1)))
    assert (image.partition("t", 0).leader, image.partition("t", 0).replicas) == (-1, ())
    image = updated(image, request(partition(0)))
    assert [each.leader for each in image.topics["t"].partitions] == [1, 1]


def test_another_topic_of_that_name_takes_nothing_over():
    image = updated(ClusterImage(), request(partition(0), partition(1)))
    image = updated(image, request(partition(0), topic_id=OTHER))
    assert len(image.topics["t"].partitions) == 1
    assert list(image.topics_by_id) == [OTHER]


def test_requests_without_topic_ids_keep_the_known_one():
    image = updated(ClusterImage(), request(partition(0)))
    image = updated(image, request(partition(0, epoch=1), topic_id=bytes(16)))
    assert image.topics["t"].topic_id == ID
    old = R(ungrouped_partition_states=[partition(1)], live_brokers=[broker(1)])
    old.ungrouped_partition_states[0].topic_name = "t"
    assert len(updated(image, old).topics["t"].partitions) == 2


def test_configurations_stay():
    resource = ConfigResource(ConfigType.TOPIC, "t")
    image = ClusterImage(cluster_id="c").with_configs({resource: {"a": "b"}})
    image = updated(image, request(partition(0)))
    assert (image.cluster_id, image.overrides(resource)) == ("c", {"a": "b"})
