"""All keys of Apache Kafka 4.4.0 and 3.9.2, compared with what the two releases say of themselves."""

from __future__ import annotations

import html
import re
import subprocess

import pytest

from broker.config.definitions import (
    BROKER_KEYS,
    GROUP_KEYS,
    TOPIC_KEYS,
    ConfigKey,
    find_broker_key,
    synonyms_of,
)
from tests.support.jars import kafka_jars
from tests.support.java import java

MODES = {"read-only": "ro", "per-broker": "broker", "cluster-wide": "cluster"}
# The quorum's addresses may be empty by default, although the rule says otherwise: nothing reads them here.
NOT_CHECKED = ("controller.quorum.voters", "controller.quorum.bootstrap.servers", "authorizer.class.name")
# Kafka defines these apart: its own page has them, DescribeConfigs shows them where they are set.
DYNAMIC_ONLY = (
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)
PRINTERS = {
    "broker": "kafka.server.KafkaConfig",
    "topic": "org.apache.kafka.storage.internals.log.LogConfig",
    "group": "org.apache.kafka.coordinator.group.GroupConfig",
}


def described(version: str, kind: str) -> dict[str, dict[str, str]]:
    """What `main` of Kafka's own definition prints: a table of facts for each public key."""
    command = [
        str(java()),
        "-Xmx128m",
        "-XX:TieredStopAtLevel=1",
        "-XX:+UseSerialGC",
        "-cp",
        f"{kafka_jars(version)}/*",
        PRINTERS[kind],
    ]
    page = subprocess.run(command, capture_output=True, check=True, timeout=60).stdout.decode()
    keys = {}
    for part in page.split("<h4>")[1:]:
        name = re.search(r'<a id="([^"]+)"', part)
        assert name is not None
        rows = re.findall(r"<tr><th>(.*?):</th><td>(.*?)</td></tr>", part, re.DOTALL)
        keys[name[1]] = {head: html.unescape(cell).strip() for head, cell in rows}
    return keys


def notation(valid: str) -> str:
    """Kafka's wording of valid values in the notation of our tables."""
    if bounds := re.fullmatch(r"\[(-?[\d.]+),\.\.\.(?:,(-?[\d.]+))?\](?: or (-?\d+))?", valid):
        return f"{bounds[1]}..{bounds[2] or ''}" + (f"|{bounds[3]}" if bounds[3] else "")
    if valid.startswith("[partitionId]"):
        return "throttled"
    if valid.startswith("[0.8.0"):
        return "release"
    if choice := re.fullmatch(r"(\(case insensitive\) )?\[(.*)\]", valid):
        return ("~" if choice[1] else "") + "{" + choice[2].replace(" ", "") + "}"
    return {"": "", "non-empty string": "nonempty", "non-empty list": "nonempty", "non-null string": ""}[
        valid
    ]


def default_text(shown: str) -> str | None:
    """`3600000 (1 hour)` is 3600000, `""` the empty text, `null` and nothing are no default."""
    plain = re.sub(r" \(.*\)$", "", shown)
    return {"null": None, "": None, '""': ""}.get(plain, plain)


def differences(kind: str, key: ConfigKey, facts: dict[str, str]) -> list[str]:
    expected: dict[str, object] = {
        "kind": facts["Type"].replace("boolean", "bool"),
        "default": default_text(facts["Default"]),
    }
    if key.name not in NOT_CHECKED:
        expected["valid"] = notation(facts["Valid Values"])
    if kind == "broker":
        expected["mode"] = MODES[facts["Update Mode"]]
    else:
        expected["broker_key"] = facts["Server Default Property"].replace("null", "")
    return [
        f"{key.name}: {field} is {getattr(key, field)!r}, Kafka says {value!r}"
        for field, value in expected.items()
        if getattr(key, field) != value
    ]


@pytest.mark.kafka
@pytest.mark.parametrize(("kind", "ours"), [("broker", BROKER_KEYS), ("topic", TOPIC_KEYS)])
def test_every_key_is_as_kafka_defines_it(kind: str, ours: dict[str, ConfigKey]) -> None:
    newest, older = described("4.4.0", kind), described("3.9.2", kind)
    public = {name: key for name, key in ours.items() if not key.internal or name in DYNAMIC_ONLY}
    assert public.keys() == {**newest, **older}.keys()
    eras = {
        name: "4+" if name not in older else "<4" if name not in newest else ""
        for name in {**newest, **older}
    }
    assert {name: key.era for name, key in public.items()} == eras
    known_by_machine = {"log.dir": "/tmp/kafka-logs"}
    wrong = [
        text
        for name, key in public.items()
        for text in differences(kind, key, newest.get(name) or older[name])
        if name not in known_by_machine
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.kafka
def test_every_group_key_is_as_kafka_defines_it() -> None:
    theirs = described("4.4.0", "group")
    public = {name: key for name, key in GROUP_KEYS.items() if not key.internal}
    assert public.keys() == theirs.keys()
    apart = {"share.auto.offset.reset", "streams.rack.aware.assignment.tags"}  # more than bounds or a choice
    for name, key in public.items():
        facts = theirs[name]
        assert key.kind == facts["Type"].replace("boolean", "bool")
        assert key.default == default_text(facts["Default"])
        if name not in apart:
            assert key.valid == notation(facts["Valid Values"])


def test_every_default_is_valid() -> None:
    for key in (*BROKER_KEYS.values(), *TOPIC_KEYS.values(), *GROUP_KEYS.values()):
        if key.default is not None:
            assert key.parse(key.default) == key.default_value(), key.name


def test_every_topic_key_falls_back_to_a_broker_key_of_its_type() -> None:
    for key in TOPIC_KEYS.values():
        if key.broker_key:
            assert BROKER_KEYS[key.broker_key].kind == key.kind, key.name


def test_every_group_key_falls_back_to_a_broker_key_of_its_type() -> None:
    for key in GROUP_KEYS.values():
        if key.broker_key and key.name != "streams.assignor.name":  # the first of the broker's list
            broker_key = BROKER_KEYS[key.broker_key]
            assert (broker_key.kind, broker_key.default) == (key.kind, key.default), key.name


def test_a_listener_key_is_found_behind_its_prefix() -> None:
    assert find_broker_key("listener.name.internal.ssl.keystore.type") is BROKER_KEYS["ssl.keystore.type"]
    scram = "listener.name.internal.scram-sha-256.sasl.jaas.config"
    assert find_broker_key(scram) is BROKER_KEYS["sasl.jaas.config"]
    assert find_broker_key("listener.name.internal.no.such.key") is None
    assert find_broker_key("no.such.key") is None


def test_units_of_retention_fall_back_in_order() -> None:
    assert synonyms_of("log.retention.minutes") == (
        "log.retention.ms",
        "log.retention.minutes",
        "log.retention.hours",
    )
    assert synonyms_of("num.partitions") == ("num.partitions",)
    assert synonyms_of("listener.name.a.ssl.key.password") == (
        "listener.name.a.ssl.key.password",
        "ssl.key.password",
    )


def test_types_have_the_numbers_of_kip_569() -> None:
    numbers = {BROKER_KEYS[name].wire_type for name in ("auto.create.topics.enable", "broker.rack")}
    assert numbers == {1, 2}
    assert BROKER_KEYS["offsets.topic.replication.factor"].wire_type == 4
    assert BROKER_KEYS["ssl.key.password"].wire_type == 9
