"""Leader epochs at the start of a node."""

from __future__ import annotations

from replication.controller.epochs import complete_and_raise
from replication.metadata.image import ClusterImage, PartitionImage, TopicImage
from replication.metadata.store import Create, Put

ME = 1


def sound(topic, index):
    return False


def shortened(topic, index):
    return True


def image(*partitions):
    return ClusterImage(controller_epoch=5).with_topics([TopicImage("t", bytes(16), partitions)])


LED = PartitionImage(0, 1, 4, 9, (1,), (1,))


def test_a_clean_start_changes_nothing():
    assert complete_and_raise(image(LED), ME, sound) == ([], [])


def test_an_unclean_start_raises_the_epochs_of_what_this_node_leads():
    elsewhere = PartitionImage(1, 2, 4, 9, (2, 1), (2, 1))
    topics, operations = complete_and_raise(image(LED, elsewhere), ME, shortened)
    assert topics[0].partitions == (PartitionImage(0, 1, 5, 10, (1,), (1,)), elsewhere)
    (write,) = operations
    assert isinstance(write, Put)
    assert (write.path, write.version) == ("/brokers/topics/t/partitions/0/state", 9)
    assert b'"leader_epoch":5,"controller_epoch":5' in write.value


def test_a_creation_that_was_cut_short_is_completed():
    half = PartitionImage(0, -1, -1, -1, (), (1,))
    topics, operations = complete_and_raise(image(half), ME, sound)
    assert topics[0].partitions == (PartitionImage(0, 1, 0, 0, (1,), (1,)),)
    assert [type(operation) for operation in operations] == [Create, Create]
    assert complete_and_raise(image(PartitionImage(0, -1, -1, -1, (), (2,))), ME, shortened) == ([], [])


def test_the_last_in_sync_replica_leads_again_under_a_new_epoch():
    offline = PartitionImage(0, -1, 6, 2, (1,), (1, 2))
    topics, _ = complete_and_raise(image(offline), ME, sound)
    assert topics[0].partitions == (PartitionImage(0, 1, 7, 3, (1,), (1, 2)),)
    other = PartitionImage(0, -1, 6, 2, (2,), (1, 2))
    assert complete_and_raise(image(other), ME, shortened) == ([], [])


def test_only_partitions_whose_logs_are_shorter_get_a_higher_epoch():
    second = PartitionImage(1, 1, 2, 3, (1,), (1,))
    topics, operations = complete_and_raise(
        image(LED, second), ME, lambda topic, index: (topic, index) == ("t", 1)
    )
    assert topics[0].partitions == (LED, PartitionImage(1, 1, 3, 4, (1,), (1,)))
    assert [write.path for write in operations] == ["/brokers/topics/t/partitions/1/state"]
