"""Which brokers and leaders a client can reach."""

from __future__ import annotations

from types import SimpleNamespace

from broker.handlers.endpoints import brokers_with_listener, leader_of, with_offline_replicas
from protocol.errors import ErrorCode
from replication.metadata.image import BrokerImage, ClusterImage, EndpointImage, PartitionImage, TopicImage


def test_only_brokers_with_the_listener() -> None:
    inside, outside = EndpointImage("in", 1), EndpointImage("out", 2)
    image = ClusterImage().with_brokers(
        {
            2: BrokerImage(2, 0, {"INSIDE": inside}),
            1: BrokerImage(1, 0, {"INSIDE": inside, "OUTSIDE": outside}),
        }
    )
    assert [endpoint for _, endpoint in brokers_with_listener(image, "OUTSIDE").values()] == [outside]
    assert list(brokers_with_listener(image, "INSIDE")) == [1, 2]


def test_a_leader_that_is_gone_or_out_of_reach() -> None:
    partition = PartitionImage(0, 2, 0, 0, (2,), (2,))
    assert leader_of(partition, {2: 0}, {2: 0}) == (ErrorCode.NONE, 2)
    assert leader_of(partition, {2: 0}, {1: 0}) == (ErrorCode.LISTENER_NOT_FOUND, -1)
    assert leader_of(partition, {1: 0}, {1: 0}) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    without = PartitionImage(0, -1, 0, 0, (), (2,))
    assert leader_of(without, {2: 0}, {2: 0}) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)


def test_a_partition_of_which_the_broker_was_not_told_is_left_out() -> None:
    gap, known = PartitionImage(0, -1, -1, -1, (), ()), PartitionImage(1, 2, 4, 0, (2,), (1, 2))
    ctx = SimpleNamespace(
        image=ClusterImage().with_brokers({2: BrokerImage(2, 0, {})}),
        node_id=2,
        replicas=SimpleNamespace(any_offline=False),
    )
    topic = TopicImage("t", bytes(16), (gap, known))
    assert list(with_offline_replicas(ctx, topic)) == [(known, [1])]  # type: ignore[arg-type]
