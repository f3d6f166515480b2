"""From files, options and the environment to a configuration, and what the user is told."""

from __future__ import annotations

import pytest

from broker.adapters.metadata_store import is_member
from broker.config.load import environment_settings, load_config
from broker.config.values import ConfigError

HOME = {"HOME": "/home/user"}


def test_without_a_file_the_single_node_profile_holds() -> None:
    loaded = load_config(None, environ=HOME)
    config = loaded.config
    assert config.node_id == 1
    assert config.log_dirs == ("/home/user/.local/share/ottla/kafka-logs",)
    assert loaded.listeners.bound[0].bind_hosts == ("127.0.0.1", "::1")
    assert config.integer("offsets.topic.replication.factor") == 1
    assert config.integer("transaction.state.log.min.isr") == 1
    assert config.integer("group.initial.rebalance.delay.ms") == 0
    assert loaded.warnings == ()
    assert loaded.notices == (
        "No configuration file: single-node profile, data in /home/user/.local/share/ottla/kafka-logs",
    )


def test_the_profile_of_several_brokers_leaves_internal_topics_their_replicas() -> None:
    loaded = load_config(None, environ=HOME, brokers=3)
    config = loaded.config
    assert config.log_dirs == ("/home/user/.local/share/ottla/kafka-cluster",)
    assert config.node_id == 1
    assert config.integer("offsets.topic.replication.factor") == 3
    assert config.integer("transaction.state.log.min.isr") == 2
    assert config.integer("group.initial.rebalance.delay.ms") == 0
    assert loaded.listeners.bound[0].bind_hosts == ("127.0.0.1", "::1")
    assert loaded.notices == (
        "No configuration file: profile of a single machine, "
        "data in /home/user/.local/share/ottla/kafka-cluster",
    )


def test_the_profile_gives_way_to_options_and_environment() -> None:
    loaded = load_config(
        None,
        ["log.dirs=/data", "broker.id=4"],
        {"XDG_DATA_HOME": "/xdg", "KAFKA_LISTENERS": "PLAINTEXT://127.0.0.1:0"},
    )
    assert loaded.config.log_dirs == ("/data",)
    assert loaded.config.node_id == 4
    assert loaded.listeners.bound[0].host == "127.0.0.1"
    assert load_config(None, environ={"XDG_DATA_HOME": "/xdg"}).config.log_dirs == ("/xdg/ottla/kafka-logs",)


def test_a_file_stands_without_the_profile() -> None:
    loaded = load_config(b"broker.id=2\nlisteners=PLAINTEXT://127.0.0.1:9092\n", environ=HOME)
    assert loaded.config.log_dirs == ("/tmp/kafka-logs",)
    assert loaded.config.integer("offsets.topic.replication.factor") == 3
    assert loaded.notices == ()


def test_options_win_over_the_environment_and_that_over_the_file() -> None:
    file = "num.partitions=2\nmessage.max.bytes=10\nfetch.max.bytes=2000\n"
    environ = {"KAFKA_NUM_PARTITIONS": "3", "KAFKA_MESSAGE_MAX_BYTES": "20"}
    config = load_config(file, ["num.partitions=4"], environ).config
    assert config.integer("num.partitions") == 4
    assert config.integer("message.max.bytes") == 20
    assert config.integer("fetch.max.bytes") == 2000


def test_variables_are_translated_as_in_the_image() -> None:
    environ = {
        "KAFKA_ADVERTISED_LISTENERS": "a",
        "KAFKA_LISTENER_NAME_MY__NAME_SCRAM___SHA___256_KEY": "b",
        "KAFKA_HEAP_OPTS": "-Xmx1g",
        "KAFKA_LOG4J_OPTS": "x",
        "KAFKA_OPTS": "x",
        "CLUSTER_ID": "x",
        "PATH": "x",
    }
    assert environment_settings(environ) == {
        "advertised.listeners": "a",
        "listener.name.my_name.scram-sha-256.key": "b",
    }


def test_a_kraft_file_starts_with_one_line() -> None:
    loaded = load_config(
        """
        process.roles=broker,controller
        node.id=1
        controller.quorum.voters=1@localhost:9093
        listeners=PLAINTEXT://:9092,CONTROLLER://:9093
        inter.broker.listener.name=PLAINTEXT
        advertised.listeners=PLAINTEXT://localhost:9092
        controller.listener.names=CONTROLLER
        listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL
        num.network.threads=3
        log.dirs=/tmp/kraft-combined-logs
        """
    )
    assert loaded.config.node_id == 1
    assert [each.name for each in loaded.listeners.bound] == ["PLAINTEXT"]
    assert loaded.warnings == ()
    assert loaded.notices == (
        "Settings for Kafka's own metadata quorum are not needed here: "
        "process.roles, controller.quorum.voters, controller.listener.names",
    )


def test_an_unknown_key_gives_one_warning_with_the_nearest_name() -> None:
    loaded = load_config("num.partition=3\nzzz=1\n")
    assert loaded.warnings == (
        "Unknown configuration key num.partition. Did you mean num.partitions?",
        "Unknown configuration key zzz",
    )
    assert loaded.config.static["zzz"] == "1"


def test_a_key_without_effect_gives_one_warning_when_it_is_no_default() -> None:
    assert load_config("num.io.threads=8\n").warnings == ()
    assert load_config("num.io.threads=16\n").warnings == ("num.io.threads=16 has no effect yet",)
    assert load_config("num.partitions=16\n").warnings == ()


@pytest.mark.parametrize(
    "line",
    [
        "ssl.keystore.location=/x.pem",
        "listener.name.plaintext.ssl.keystore.location=/x.pem",
        "sasl.enabled.mechanisms=PLAIN",
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users=User:admin",
        "client.quota.callback.class=x.Y",
        "max.connection.creation.rate=10",
        "delegation.token.secret.key=s",
        "create.topic.policy.class.name=x.Y",
        "security.inter.broker.protocol=SSL",
    ],
)
def test_a_promise_of_protection_stops_the_start(line: str) -> None:
    with pytest.raises(ConfigError, match="promises protection") as refused:
        load_config(line)
    assert line.partition("=")[0] in str(refused.value)


def test_protection_at_its_default_is_no_promise() -> None:
    assert load_config("ssl.client.auth=none\nauthorizer.class.name=\n").warnings == ()


def test_another_listener_protocol_stops_the_start() -> None:
    with pytest.raises(ConfigError, match="Listener SSL asks for SSL"):
        load_config("listeners=PLAINTEXT://localhost:9092,SSL://localhost:9093\n")


@pytest.mark.parametrize("line", ["zookeeper.connect=localhost:2181", "ottla.cluster.file=/data/cluster"])
def test_a_broker_that_is_told_of_others_is_a_member(line: str) -> None:
    assert is_member(load_config(f"{line}\nbroker.id=1\n").config)
    assert not is_member(load_config(None).config)


def test_all_bad_values_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as refused:
        load_config("num.partitions=x\nlog.segment.bytes=1\n")
    assert len(str(refused.value).splitlines()) == 2


def test_rules_between_keys_stop_the_start() -> None:
    with pytest.raises(ConfigError, match=r"same value as `broker\.id`"):
        load_config("node.id=1\nbroker.id=2\n")


@pytest.mark.parametrize("option", ["num.partitions", "=3"])
def test_an_option_without_key_and_value_is_refused(option: str) -> None:
    with pytest.raises(ConfigError, match="--override takes key=value"):
        load_config(None, [option])


def test_a_broken_file_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config("a=\\u1")


def test_ids_that_zookeeper_gives_cannot_be_taken() -> None:
    """As Kafka: only where brokers without an id get one, and only in a cluster on ZooKeeper."""
    ours = ["zookeeper.connect=127.0.0.1:2181", "broker.id=51"]
    with pytest.raises(ConfigError, match=r"not be greater than reserved\.broker\.max\.id=50"):
        load_config(b"reserved.broker.max.id=50", ours, {})
    for override in ("reserved.broker.max.id=51", "broker.id.generation.enable=false"):
        assert load_config(b"reserved.broker.max.id=50", [*ours, override], {}).config.node_id == 51
    assert load_config(b"reserved.broker.max.id=50", ["broker.id=51"], {}).config.node_id == 51
