"""The keys of ZooKeeper together."""

from __future__ import annotations

import re

import pytest

from broker.config.broker_config import BrokerConfig
from broker.config.load import load_config
from broker.config.values import ConfigError
from broker.config.zookeeper import zookeeper_settings
from replication.metadata.zookeeper_settings import ZookeeperSettings
from runtime.client_tls import ClientTls
from tests.support.certificates import Authority


def test_settings_of_zookeeper_are_those_of_kafkas_keys():
    plain = zookeeper_settings(BrokerConfig({"zookeeper.connect": "a,b:2/c"}))
    assert plain == ZookeeperSettings("a,b:2", "/c", 18_000, 18_000, 10)
    given = {
        "zookeeper.connect": "a",
        "zookeeper.session.timeout.ms": "2000",
        "zookeeper.max.in.flight.requests": "3",
        "ottla.zookeeper.digest": "u:p",
        "zookeeper.set.acl": "true",
    }
    assert zookeeper_settings(BrokerConfig(given)) == ZookeeperSettings("a", "", 2000, 2000, 3, "u:p", True)
    timeout = {"zookeeper.connection.timeout.ms": "500"}
    assert zookeeper_settings(BrokerConfig(given | timeout)).connection_timeout_ms == 500


@pytest.mark.parametrize("release", ["3.4", "3.4-IV0", "3.8", "3.9-IV0"])
def test_the_protocol_between_brokers_may_be_pinned_to_what_is_spoken(release):
    given = f"zookeeper.connect=a\ninter.broker.protocol.version={release}"
    assert load_config(given).warnings == ()


@pytest.mark.parametrize("release", ["0.10.2", "2.8-IV1", "3.3"])
def test_an_older_protocol_between_brokers_stops_the_start(release):
    given = f"zookeeper.connect=a\ninter.broker.protocol.version={release}"
    with pytest.raises(ConfigError, match=r"inter\.broker\.protocol\.version.*3\.4 to 3\.9"):
        load_config(given)


def test_tls_by_kafkas_keys(tmp_path):
    authority = Authority(tmp_path)
    keys = authority.issue("broker")
    given = {
        "zookeeper.connect": "a",
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
        "zookeeper.ssl.truststore.location": str(authority.path),
    }
    plain = ClientTls(trust_store=str(authority.path), versions=("TLSv1.2", "TLSv1.3"))
    assert zookeeper_settings(BrokerConfig(given)).tls == plain
    more = {
        "zookeeper.ssl.keystore.location": str(keys),
        "zookeeper.ssl.keystore.password": "secret",
        "zookeeper.ssl.keystore.type": "pem",
        "zookeeper.ssl.endpoint.identification.algorithm": "",
        "zookeeper.ssl.protocol": "TLSv1.3",
        "zookeeper.ssl.cipher.suites": "ECDHE-ECDSA-AES128-GCM-SHA256,ECDHE-RSA-AES128-GCM-SHA256",
        "zookeeper.set.acl": "true",
    }
    found = zookeeper_settings(BrokerConfig(given | more))
    ciphers = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256"
    assert found.tls == ClientTls(str(keys), "secret", str(authority.path), False, ("TLSv1.3",), ciphers)
    both = {"zookeeper.ssl.enabled.protocols": "TLSv1.2,TLSv1.3"}
    assert zookeeper_settings(BrokerConfig(given | more | both)).tls.versions == ("TLSv1.2", "TLSv1.3")
    assert zookeeper_settings(BrokerConfig({**given, "zookeeper.ssl.client.enable": "false"})).tls is None


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("clientCnxnSocket", "org.apache.zookeeper.ClientCnxnSocketNIO", "ClientCnxnSocketNetty"),
        ("ssl.truststore.location", "/nowhere.pem", "No such file"),
        ("ssl.truststore.location", "/a/truststore.jks", "no PEM file"),
        ("ssl.truststore.type", "JKS", "no PEM file"),
        ("ssl.keystore.location", __file__, "no PEM file"),
        ("ssl.protocol", "TLSv1.1", "TLSv1.2 and TLSv1.3 can be spoken"),
        ("ssl.enabled.protocols", "SSLv3,TLSv1.3", "SSLv3"),
        ("ssl.endpoint.identification.algorithm", "LDAPS", "neither HTTPS nor empty"),
        ("ssl.crl.enable", "true", "zookeeper.ssl.crl.enable"),
        ("ssl.ocsp.enable", "true", "zookeeper.ssl.ocsp.enable"),
    ],
)
def test_tls_that_cannot_be_had_stops_the_start(tmp_path, name, value, said):
    authority = Authority(tmp_path)
    given = {
        "zookeeper.connect": "a",
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.truststore.location": str(authority.path),
        f"zookeeper.{name}": value,
    }
    with pytest.raises(ConfigError, match=re.escape(said)):
        load_config("".join(f"{key}={text}\n" for key, text in given.items()))


@pytest.mark.parametrize(
    "given",
    [
        "zookeeper.connect=h:port",
        "zookeeper.connect=h\nzookeeper.set.acl=true",
        "zookeeper.connect=h\nottla.zookeeper.digest=nobody",
    ],
)
def test_what_cannot_be_stops_the_start_with_the_key_named(given):
    with pytest.raises(ConfigError, match=r"zookeeper\.(connect|set\.acl)"):
        load_config(given)
