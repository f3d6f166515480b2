from broker.handlers.leader_hints import Endpoint, current_leader, endpoints_of
from replication.metadata.image import BrokerImage, ClusterImage, EndpointImage, PartitionImage, TopicImage

TOPIC_ID = bytes(range(16))
IMAGE = (
    ClusterImage()
    .with_topics(
        [
            TopicImage(
                "orders",
                TOPIC_ID,
                (PartitionImage(0, 2, 5, 0, (2,), (1, 2)), PartitionImage(1, -1, 6, 0, (1,), (1, 2))),
            )
        ]
    )
    .with_brokers(
        {
            1: BrokerImage(1, 1, {"INTERNAL": EndpointImage("one", 9091)}),
            2: BrokerImage(2, 2, {"PUBLIC": EndpointImage("two", 9092)}, rack="r2"),
        }
    )
)


def test_the_leader_is_found_by_name_and_by_id():
    assert current_leader(IMAGE, "orders", bytes(16), 0) == (2, 5)
    assert current_leader(IMAGE, "", TOPIC_ID, 0) == (2, 5)


def test_no_hint_without_a_leader_a_partition_or_a_topic():
    assert current_leader(IMAGE, "orders", bytes(16), 1) is None
    assert current_leader(IMAGE, "orders", bytes(16), 2) is None
    assert current_leader(IMAGE, "orders", bytes(16), -1) is None
    assert current_leader(IMAGE, "", bytes(16), 0) is None


def test_endpoints_are_those_of_the_clients_listener_once_each():
    assert endpoints_of(IMAGE, "PUBLIC", [2, 1, 2]) == [Endpoint(2, "two", 9092, "r2")]
