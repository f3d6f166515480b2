"""Listeners and advertised listeners: what they mean and what is refused (protocol.md 2.5)."""

from __future__ import annotations

import pytest

from broker.config.broker_config import BrokerConfig
from broker.config.listeners import Listener, parse_listeners
from broker.config.values import ConfigError

MAP = "INTERNAL:PLAINTEXT,EXTERNAL:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"


def config(**keys: str) -> BrokerConfig:
    return BrokerConfig({name.replace("_", "."): value for name, value in keys.items()})


def test_the_default_is_every_address_at_9092() -> None:
    found = parse_listeners(config())
    assert found.bound == (Listener("PLAINTEXT", "PLAINTEXT", "", 9092),)
    assert found.bound[0].bind_hosts == ("",)
    assert found.advertised == found.bound
    assert found.inter_broker_name == "PLAINTEXT"


def test_names_are_upper_cased_and_mapped() -> None:
    found = parse_listeners(
        config(
            listeners="internal://127.0.0.1:9092,EXTERNAL://[::1]:9093",
            listener_security_protocol_map=MAP,
            inter_broker_listener_name="internal",
        )
    )
    assert [str(each) for each in found.bound] == ["INTERNAL://127.0.0.1:9092", "EXTERNAL://[::1]:9093"]
    assert found.inter_broker_name == "INTERNAL"


def test_localhost_is_both_loopback_addresses() -> None:
    found = parse_listeners(config(listeners="PLAINTEXT://localhost:9092"))
    assert found.bound[0].bind_hosts == ("127.0.0.1", "::1")


def test_port_0_is_advertised_as_the_port_that_was_bound() -> None:
    found = parse_listeners(config(listeners="PLAINTEXT://127.0.0.1:0"))
    assert found.resolve({"PLAINTEXT": 41234}, "host.example") == (
        Listener("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 41234),
    )


def test_an_empty_host_is_advertised_as_the_machines_name() -> None:
    found = parse_listeners(config(listeners="PLAINTEXT://:9092"))
    assert str(found.resolve({"PLAINTEXT": 9092}, "host.example")[0]) == "PLAINTEXT://host.example:9092"


def test_advertised_addresses_may_differ_and_be_fewer() -> None:
    found = parse_listeners(
        config(
            listeners="PLAINTEXT://0.0.0.0:9092,EXTERNAL://0.0.0.0:9093",
            advertised_listeners="PLAINTEXT://broker.example:19092",
            listener_security_protocol_map=MAP,
        )
    )
    assert len(found.bound) == 2
    assert [str(each) for each in found.advertised] == ["PLAINTEXT://broker.example:19092"]


def test_advertised_ports_may_repeat() -> None:
    found = parse_listeners(
        config(
            listeners="PLAINTEXT://127.0.0.1:9092,EXTERNAL://127.0.0.1:9093",
            advertised_listeners="PLAINTEXT://a:1,EXTERNAL://b:1",
            listener_security_protocol_map=MAP,
        )
    )
    assert [each.port for each in found.advertised] == [1, 1]


def test_ipv4_and_ipv6_may_share_a_port() -> None:
    found = parse_listeners(
        config(
            listeners="PLAINTEXT://127.0.0.1:9092,EXTERNAL://[::1]:9092", listener_security_protocol_map=MAP
        )
    )
    assert [each.port for each in found.bound] == [9092, 9092]


def test_kraft_listeners_are_left_out() -> None:
    found = parse_listeners(
        config(
            listeners="PLAINTEXT://127.0.0.1:9092,CTL://127.0.0.1:9093",
            advertised_listeners="PLAINTEXT://127.0.0.1:9092,CTL://127.0.0.1:9093",
            controller_listener_names="CTL",
        )
    )
    assert [each.name for each in found.bound] == ["PLAINTEXT"]
    assert [each.name for each in found.advertised] == ["PLAINTEXT"]


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"listeners": "PLAINTEXT//x:1"}, "Unable to parse 'PLAINTEXT//x:1'"),
        ({"listeners": "PLAINTEXT://x"}, "Unable to parse"),
        ({"listeners": "PLAINTEXT://x:99999"}, "port 99999"),
        ({"listeners": "CLIENTS://x:1"}, "No security protocol defined for listener CLIENTS"),
        ({"listeners": "CONTROLLER://x:1"}, "names no listener for clients"),
        ({"listeners": "PLAINTEXT://x:1,PLAINTEXT://y:2"}, "must have a different name"),
        (
            {"listeners": "PLAINTEXT://x:1,EXTERNAL://y:1", "listener.security.protocol.map": MAP},
            "must have a different port unless",
        ),
        ({"listeners": "PLAINTEXT://0.0.0.0:9092"}, "cannot use the nonroutable meta-address 0.0.0.0"),
        (
            {"listeners": "PLAINTEXT://x:1", "advertised.listeners": "SSL://x:1"},
            "must be equal to or a subset of the ones defined in listeners",
        ),
        (
            {"listeners": "PLAINTEXT://x:1", "inter.broker.listener.name": "SSL"},
            "inter.broker.listener.name must be a listener name defined in advertised.listeners",
        ),
        (
            {
                "listeners": "PLAINTEXT://x:1",
                "inter.broker.listener.name": "PLAINTEXT",
                "security.inter.broker.protocol": "PLAINTEXT",
            },
            "Only one of inter.broker.listener.name and security.inter.broker.protocol",
        ),
        ({"listener.security.protocol.map": "A:B"}, "'A:B' is not NAME:PROTOCOL"),
    ],
)
def test_what_is_refused(keys: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message.replace("(", r"\(")):
        parse_listeners(BrokerConfig(keys))
