"""Requests of brokers and of administrators, against a cluster of real processes."""

from __future__ import annotations

import json
import re

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from protocol import messages as m
from protocol.errors import ErrorCode
from tests.support.cluster_process import PATIENT, ClusterProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.tools import ottla_tool
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient
from tests.support.zookeeper_process import ZookeeperProcess

pytestmark = pytest.mark.xdist_group("cluster")

OTHERS = (4, 5, 6, 7, 43, 45, 46, 56, 67)
"""The APIs that only a broker of a cluster serves."""


@pytest.fixture(scope="module")
def cluster(zookeeper: ZookeeperProcess):
    with ClusterProcess(zookeeper.address, PATIENT) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def admin(cluster: ClusterProcess) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})


def asked(cluster: ClusterProcess, request, version: int, controller: bool = True):
    """The answer of the controller, or of another broker."""
    if controller:
        return cluster.ask_controller(request, version)
    chosen = cluster.controller()
    other = next(broker for broker in cluster.brokers.values() if broker is not chosen)
    with WireClient(other.bootstrap_servers) as client:
        return client.send(request, version)


def test_api_versions_tell_of_the_requests_between_brokers(cluster: ClusterProcess) -> None:
    answer = asked(cluster, m.ApiVersionsRequest(client_software_name="t", client_software_version="1"), 3)
    served = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    assert {key: served[key] for key in OTHERS} == {
        4: (0, 7),
        5: (0, 4),
        6: (0, 8),
        7: (0, 3),
        43: (0, 2),
        45: (0, 1),
        46: (0, 0),
        56: (0, 3),
        67: (0, 0),
    }


def test_who_is_not_the_controller_says_so(cluster: ClusterProcess) -> None:
    error = ErrorCode.NOT_CONTROLLER
    topics = [m.CreateTopicsRequest.CreatableTopic(name="never", num_partitions=1, replication_factor=1)]
    created = asked(cluster, m.CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7, controller=False)
    assert [each.error_code for each in created.topics] == [error]
    for request, version in (
        (m.AlterPartitionReassignmentsRequest(timeout_ms=1000), 0),
        (m.ListPartitionReassignmentsRequest(timeout_ms=1000), 0),
        (m.ElectLeadersRequest(timeout_ms=30_000, topic_partitions=None), 2),
        (m.ControlledShutdownRequest(broker_id=1, broker_epoch=1), 3),
        (m.AlterPartitionRequest(broker_id=1, broker_epoch=1), 3),
        (m.AllocateProducerIdsRequest(broker_id=1, broker_epoch=1), 0),
    ):
        assert asked(cluster, request, version, controller=False).error_code == error, request


def test_requests_of_old_controllers_and_for_old_registrations_are_refused(cluster: ClusterProcess) -> None:
    for request, version in (
        (m.LeaderAndIsrRequest, 7),
        (m.StopReplicaRequest, 4),
        (m.UpdateMetadataRequest, 8),
    ):
        old = asked(cluster, request(controller_id=1, controller_epoch=0, broker_epoch=-1), version)
        assert old.error_code == ErrorCode.STALE_CONTROLLER_EPOCH
        stale = asked(cluster, request(controller_id=1, controller_epoch=99, broker_epoch=0), version)
        assert stale.error_code == ErrorCode.STALE_BROKER_EPOCH


def test_a_partition_is_moved_and_the_move_listed_and_its_leader_elected(cluster: ClusterProcess) -> None:
    cluster.create_topic("moved", [[1, 2]])
    request = m.AlterPartitionReassignmentsRequest
    partition = request.ReassignablePartition(partition_index=0, replicas=[3, 1])
    topic = request.ReassignableTopic(name="moved", partitions=[partition])
    answer = asked(cluster, request(timeout_ms=30_000, topics=[topic]), 0)
    assert (answer.error_code, answer.responses[0].partitions[0].error_code) == (0, 0)
    listing = m.ListPartitionReassignmentsRequest(timeout_ms=30_000, topics=None)
    wait_until(lambda: asked(cluster, listing, 0).topics == [], "the move to end")
    wait_until(lambda: cluster.partitions("moved")[0].replica_nodes == [3, 1], "the new replicas")
    cluster.await_full_isr("moved")
    elect = m.ElectLeadersRequest
    wanted = [elect.TopicPartitions(topic="moved", partitions=[0])]
    first = asked(cluster, elect(election_type=0, topic_partitions=wanted, timeout_ms=30_000), 2)
    [result] = first.replica_election_results[0].partition_result
    assert result.error_code in (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED)
    wait_until(lambda: cluster.partitions("moved")[0].leader_id == 3, "the preferred leader")
    again = asked(cluster, elect(election_type=0, topic_partitions=wanted, timeout_ms=30_000), 2)
    [result] = again.replica_election_results[0].partition_result
    assert result.error_code == ErrorCode.ELECTION_NOT_NEEDED
    unknown = asked(cluster, elect(election_type=9, topic_partitions=wanted, timeout_ms=30_000), 2)
    assert unknown.error_code == ErrorCode.INVALID_REQUEST


def test_what_cannot_be_moved_or_cancelled_is_refused(cluster: ClusterProcess) -> None:
    cluster.create_topic("stays", [[1, 2]])
    request = m.AlterPartitionReassignmentsRequest

    def error(name: str, replicas: list[int] | None) -> int:
        partition = request.ReassignablePartition(partition_index=0, replicas=replicas)
        topic = request.ReassignableTopic(name=name, partitions=[partition])
        answer = asked(cluster, request(timeout_ms=30_000, topics=[topic]), 0)
        return answer.responses[0].partitions[0].error_code

    assert error("stays", [1, 9]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert error("stays", []) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert error("stays", None) == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    assert error("unknown", [1]) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_configuration_that_is_changed_on_one_broker_holds_on_all(
    cluster: ClusterProcess, admin: AdminClient
) -> None:
    cluster.create_topic("kept", 1)
    entry = ConfigEntry("retention.ms", "12345", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "kept", incremental_configs=[entry])
    [changed] = admin.incremental_alter_configs([resource]).values()
    changed.result()
    describe = m.DescribeConfigsRequest
    wanted = [describe.DescribeConfigsResource(resource_type=2, resource_name="kept")]
    for broker in cluster.brokers.values():

        def value(broker=broker) -> str:
            with WireClient(broker.bootstrap_servers) as client:
                [result] = client.send(describe(resources=wanted), 4).results
            return next(each.value for each in result.configs if each.name == "retention.ms")

        wait_until(lambda value=value: value() == "12345", "the changed value")


def test_a_broker_whose_directories_are_cordoned_gets_no_new_partitions(
    cluster: ClusterProcess, admin: AdminClient
) -> None:
    """KIP-1066. The controller knows it from the broker's registration."""

    def cordon(operation: AlterConfigOpType, value: str | None) -> None:
        entry = ConfigEntry("cordoned.log.dirs", value, incremental_operation=operation)
        resource = ConfigResource(ResourceType.BROKER, "3", incremental_configs=[entry])
        [changed] = admin.incremental_alter_configs([resource]).values()
        changed.result()

    topic = m.CreateTopicsRequest.CreatableTopic(name="anywhere", num_partitions=1, replication_factor=3)
    request = m.CreateTopicsRequest(topics=[topic], timeout_ms=30_000, validate_only=True)

    def error() -> int:
        return asked(cluster, request, 7).topics[0].error_code

    assert error() == ErrorCode.NONE
    cordon(AlterConfigOpType.SET, "*")
    wait_until(lambda: error() == ErrorCode.INVALID_REPLICATION_FACTOR, "the cordons to be heard of")
    cordon(AlterConfigOpType.DELETE, None)
    wait_until(lambda: error() == ErrorCode.NONE, "their end to be heard of")


def test_a_topic_is_created_on_first_use_by_any_broker_and_deleted_everywhere(
    cluster: ClusterProcess, admin: AdminClient
) -> None:
    for number, broker in cluster.brokers.items():
        with WireClient(broker.bootstrap_servers) as client:
            [topic] = client.metadata(f"auto-{number}", allow_auto_topic_creation=True).topics
        assert topic.error_code == ErrorCode.NONE
        assert len(topic.partitions) == 3
        assert all(each.leader_id > 0 for each in topic.partitions)
    names = [f"auto-{number}" for number in cluster.brokers]
    for deleted in admin.delete_topics(names).values():
        deleted.result()

    def gone() -> bool:
        return not any(
            (broker.log_dir / f"{name}-0").exists() for broker in cluster.brokers.values() for name in names
        )

    wait_until(gone, "the logs of deleted topics to be set aside")


def test_tools_tell_of_all_brokers(cluster: ClusterProcess) -> None:
    cluster.create_topic("everywhere", 2)
    servers = cluster.bootstrap_servers
    assert re.fullmatch(r"Cluster ID: [\w-]{22}\n", printed("cluster", "cluster-id", servers))
    _, *rows = printed("cluster", "list-endpoints", servers).splitlines()
    assert [row.split()[:3] for row in rows] == [
        [str(number), broker.host, str(broker.port)] for number, broker in cluster.brokers.items()
    ]
    described = printed("log-dirs", "--describe", servers, "--topic-list", "everywhere")
    told = json.loads(described.splitlines()[-1])["brokers"]
    found = {
        each["broker"]: sorted(row["partition"] for folder in each["logDirs"] for row in folder["partitions"])
        for each in told
    }
    assert found == {broker_id: ["everywhere-0", "everywhere-1"] for broker_id in cluster.brokers}
    chosen = printed("log-dirs", "--describe", servers, "--broker-list", "2")
    assert [each["broker"] for each in json.loads(chosen.splitlines()[-1])["brokers"]] == [2]


def printed(tool: str, action: str, servers: str, *arguments: str) -> str:
    done = ottla_tool(tool, action, "--bootstrap-server", servers, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_producer_ids_come_from_the_controller_and_never_twice(cluster: ClusterProcess) -> None:
    ids = []
    for broker in cluster.brokers.values():
        with WireClient(broker.bootstrap_servers) as client:
            for _ in range(3):
                answer = client.send(m.InitProducerIdRequest(transactional_id=None), 4)
                assert answer.error_code == ErrorCode.NONE
                ids.append(answer.producer_id)
    assert len(set(ids)) == len(ids)
    assert len({each // 1000 for each in ids}) == len(cluster.brokers)


def test_brokers_without_an_id_get_one_each_and_keep_it(zookeeper: ZookeeperProcess) -> None:
    """From 1001 on: below lie those that people give (reserved.broker.max.id)."""
    with ClusterProcess(zookeeper.address, {"broker.id": "-1", **PATIENT}, count=2) as cluster:
        first = sorted(broker.node_id for broker in cluster.metadata().brokers)
        assert first == [1001, 1002]
        cluster.all(OttlaProcess.stop)
        cluster.start()
        assert sorted(broker.node_id for broker in cluster.metadata().brokers) == first
