"""Ids, ports, directories and internal topics of several brokers of one machine."""

from __future__ import annotations

import pytest

from broker.config.load import load_config
from broker.config.values import ConfigError
from ottla.brokers.plan import plan_cluster

BASE = "log.dirs=/a,/b\nlisteners=PLAINTEXT://localhost:9092\n"
TWO = "PLAINTEXT:PLAINTEXT,IN:PLAINTEXT"
OFFSETS, TRANSACTIONS = "offsets.topic.replication.factor", "transaction.state.log.replication.factor"


def planned(count: int, *more: str, file: str | None = BASE):
    return plan_cluster(load_config(file, more, {"HOME": "/home/u"}, count), count)


def told(key: str, count: int, *more: str, file: str | None = BASE) -> list[str]:
    return [broker.settings[key] for broker in planned(count, *more, file=file).brokers]


def test_each_broker_has_an_id_a_port_and_directories_of_its_own_and_all_have_one_file() -> None:
    plan = planned(3)
    assert [broker.node_id for broker in plan.brokers] == [1, 2, 3]
    assert told("node.id", 3) == told("broker.id", 3) == ["1", "2", "3"]
    assert told("listeners", 2) == ["PLAINTEXT://localhost:9092", "PLAINTEXT://localhost:9093"]
    assert told("log.dirs", 2) == ["/a/broker_1,/b/broker_1", "/a/broker_2,/b/broker_2"]
    assert told("ottla.cluster.file", 2) == ["/a/cluster.sqlite"] * 2
    assert plan.cluster_file == "/a/cluster.sqlite"
    assert plan.folders == ("/a", "/b")


def test_ids_begin_with_the_configured_one() -> None:
    assert told("node.id", 2, "broker.id=7") == ["7", "8"]
    assert told("broker.id", 2, "node.id=0") == ["0", "1"]
    assert told("broker.id", 2, "node.id=4", "broker.id=4") == ["4", "5"]


def test_each_plan_is_a_whole_configuration() -> None:
    plan = planned(2, "num.partitions=5", "min.insync.replicas=2")
    for broker in plan.brokers:
        config = broker.load().config
        assert config.node_id == broker.node_id
        assert config.integer("num.partitions") == 5
        assert config.integer("min.insync.replicas") == 2
        assert config.integer("default.replication.factor") == 1


def test_without_a_file_it_stays_on_this_machine_with_data_of_its_own() -> None:
    plan = planned(2, file=None)
    assert plan.folders == ("/home/u/.local/share/ottla/kafka-cluster",)
    assert [broker.load().listeners.bound[0].bind_hosts for broker in plan.brokers] == [
        ("127.0.0.1", "::1"),
    ] * 2
    assert plan.notices == ()


@pytest.mark.parametrize(
    ("first", "count", "second"),
    [
        ("A://:9092,B://:19092", 3, "A://:9093,B://:19093"),
        ("A://:9092,B://:9093", 3, "A://:9094,B://:9095"),
        ("A://:9092,B://:9094", 2, "A://:9093,B://:9095"),
        ("A://:9092,B://:9094", 3, "A://:9095,B://:9097"),
        ("A://0.0.0.0:9092,B://[::]:9092", 2, "A://0.0.0.0:9093,B://[::]:9093"),
        ("A://:0,B://:9092", 2, "A://:0,B://:9093"),
    ],
)
def test_listeners_of_different_brokers_never_meet(first: str, count: int, second: str) -> None:
    names = "listener.security.protocol.map=A:PLAINTEXT,B:PLAINTEXT"
    settings = (f"listeners={first}", names, "inter.broker.listener.name=A", "advertised.listeners=A://h:0")
    assert told("listeners", count, *settings)[:2] == [first, second]


def test_what_is_advertised_moves_along_and_does_not_meet_either() -> None:
    settings = (
        f"listener.security.protocol.map={TWO}",
        "listeners=PLAINTEXT://:9092,IN://:29092",
        "advertised.listeners=PLAINTEXT://h:7000,IN://h:7001",
    )
    assert told("advertised.listeners", 2, *settings) == [
        "PLAINTEXT://h:7000,IN://h:7001",
        "PLAINTEXT://h:7002,IN://h:7003",
    ]
    assert told("listeners", 2, *settings)[1] == "PLAINTEXT://:9094,IN://:29094"
    assert "advertised.listeners" not in planned(2).brokers[1].settings


def test_a_listener_of_a_quorum_needs_no_port() -> None:
    settings = ("process.roles=broker,controller", "listeners=PLAINTEXT://:9092,CONTROLLER://:9093")
    assert told("listeners", 2, *settings) == ["PLAINTEXT://:9092", "PLAINTEXT://:9093"]


def test_a_free_port_is_kept() -> None:
    broker = planned(2, "listeners=PLAINTEXT://127.0.0.1:0").brokers[1]
    again = broker.with_ports([("PLAINTEXT", "127.0.0.1", 41001)])
    assert again.settings["listeners"] == "PLAINTEXT://127.0.0.1:41001"
    assert again.with_ports([("PLAINTEXT", "127.0.0.1", 41001)]) == again
    hidden = planned(2, "listeners=PLAINTEXT://:0", "advertised.listeners=PLAINTEXT://h:80").brokers[0]
    assert hidden.with_ports([("PLAINTEXT", "h", 80)]).settings["listeners"] == "PLAINTEXT://:0"


@pytest.mark.parametrize(
    ("count", "given", "factors", "min_isr"),
    [
        (2, (), ("2", "2"), "1"),
        (3, (), ("3", "3"), "2"),
        (5, (), ("3", "3"), "2"),
        (3, (f"{OFFSETS}=1", f"{TRANSACTIONS}=2"), ("1", "2"), "1"),
        (5, (f"{OFFSETS}=5",), ("5", "3"), "2"),
        (2, (f"{OFFSETS}=5", "transaction.state.log.min.isr=2"), ("2", "2"), "2"),
        (2, ("transaction.state.log.min.isr=3",), ("2", "2"), "2"),
    ],
)
@pytest.mark.parametrize("file", [None, BASE])
def test_internal_topics_have_the_replicas_that_are_possible(
    count: int, given: tuple[str, ...], factors: tuple[str, str], min_isr: str, file: str | None
) -> None:
    settings = planned(count, *given, file=file).brokers[0].settings
    assert (settings[OFFSETS], settings[TRANSACTIONS]) == factors
    assert settings["transaction.state.log.min.isr"] == min_isr


def test_a_factor_that_is_not_possible_is_told() -> None:
    assert planned(2, f"{OFFSETS}=3").notices == (f"{OFFSETS} is 2, as many as there are brokers",)


def test_paths_below_log_directories_follow() -> None:
    assert told("cordoned.log.dirs", 2, "cordoned.log.dirs=/b") == ["/b/broker_1", "/b/broker_2"]
    assert told("cordoned.log.dirs", 2, "cordoned.log.dirs=*") == ["*", "*"]
    assert planned(2, "metadata.log.dir=/m").cluster_file == "/m/cluster.sqlite"
    assert planned(2, "ottla.cluster.file=/run/c").cluster_file == "/run/c"


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("zookeeper.connect=localhost:2181", "needs no ZooKeeper. Remove zookeeper.connect"),
        ("listeners=PLAINTEXT://:65535", "ports up to 65536"),
    ],
)
def test_what_cannot_be_is_refused(setting: str, complaint: str) -> None:
    with pytest.raises(ConfigError, match=complaint):
        planned(2, setting)
