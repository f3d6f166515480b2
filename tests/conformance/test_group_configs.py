"""Settings of single groups (resource type 32): what is shown, what may be set, and that it is in force."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from tests.conformance.test_configs import (
    APPEND,
    DELETE,
    SET,
    SOURCE_DEFAULT,
    SOURCE_DYNAMIC_DEFAULT,
    SUBTRACT,
    Change,
    change,
    describe,
    entries,
    replace,
)
from tests.support.broker_settings import await_effect
from tests.support.consumer_member import ConsumerMember
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

BROKER, GROUP = 4, 32
SOURCE_GROUP = 8

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"
RESET, ISOLATION, RENEW = "share.auto.offset.reset", "share.isolation.level", "share.renew.acknowledge.enable"
TAGS, ASSIGNOR = "streams.rack.aware.assignment.tags", "streams.assignor.name"
INTERNAL = "streams.acceptable.recovery.lag"
DEAD_LETTERS = "errors.deadletterqueue.topic.name"

DEFAULTS = {
    SESSION: ("45000", 3),
    HEARTBEAT: ("5000", 3),
    "consumer.assignment.interval.ms": ("1000", 3),
    "share.session.timeout.ms": ("45000", 3),
    "share.heartbeat.interval.ms": ("5000", 3),
    "share.record.lock.duration.ms": ("30000", 3),
    "share.delivery.count.limit": ("5", 3),
    "share.partition.max.record.locks": ("2000", 3),
    "share.assignment.interval.ms": ("1000", 3),
    RESET: ("latest", 2),
    ISOLATION: ("read_uncommitted", 2),
    RENEW: ("true", 1),
    "streams.session.timeout.ms": ("45000", 3),
    "streams.heartbeat.interval.ms": ("5000", 3),
    "streams.num.standby.replicas": ("0", 3),
    "streams.initial.rebalance.delay.ms": ("3000", 3),
    "streams.assignment.interval.ms": ("1000", 3),
    TAGS: ("", 7),
    ASSIGNOR: ("sticky", 2),
    DEAD_LETTERS: ("", 2),
    "errors.deadletterqueue.copy.record.enable": ("false", 1),
}
BROKER_KEYS = {name: f"group.{name}" for name in DEFAULTS} | {
    ASSIGNOR: "group.streams.assignors",
    **{
        name: name
        for name in (RESET, ISOLATION, RENEW, DEAD_LETTERS, "errors.deadletterqueue.copy.record.enable")
    },
}

_numbers = itertools.count()


@pytest.fixture
def group(wire: WireClient) -> Iterator[str]:
    """A group of the test's own that nobody has heard of, with characters that no topic may have."""
    name = f"settings {os.getpid()}/{next(_numbers)}"
    yield name
    assert replace(wire, GROUP, name, {}) == 0


def shown(wire: WireClient, group: str, key: str) -> tuple[str, int]:
    entry = entries(wire, GROUP, group, key)[key]
    return entry.value, entry.config_source


def changed(wire: WireClient, group: str, *ops: tuple[str, int, str | None]) -> tuple[int, str | None]:
    """The error and the text of a change that is only checked."""
    configs = [Change.AlterableConfig(name=key, config_operation=op, value=value) for key, op, value in ops]
    resource = Change.AlterConfigsResource(resource_type=GROUP, resource_name=group, configs=configs)
    [answer] = wire.send(Change(resources=[resource], validate_only=True), 1).responses
    return answer.error_code, answer.error_message


def listed(wire: WireClient) -> set[str]:
    """The groups whose own settings count: they are described before."""
    answer = wire.send(m.ListConfigResourcesRequest(resource_types=[GROUP]), 1)
    assert answer.error_code == 0
    assert {each.resource_type for each in answer.config_resources} <= {GROUP}
    return {each.resource_name for each in answer.config_resources}


def test_a_group_that_nobody_knows_has_every_default(wire: WireClient, group: str) -> None:
    found = entries(wire, GROUP, group, include_synonyms=True)
    assert {name: (e.value, e.config_type) for name, e in found.items()} == DEFAULTS
    for name, entry in found.items():
        assert (entry.config_source, entry.read_only, entry.is_sensitive) == (SOURCE_DEFAULT, False, False)
        synonyms = [(each.name, each.value, each.source) for each in entry.synonyms]
        assert synonyms == [(BROKER_KEYS[name], entry.value, SOURCE_DEFAULT)]
    assert group not in listed(wire)


def test_it_needs_a_name(wire: WireClient) -> None:
    result = describe(wire, GROUP, "")
    assert (result.error_code, result.error_message) == (
        ErrorCode.INVALID_REQUEST,
        "Group name must not be empty",
    )
    text = "Default group resources are not allowed."
    assert changed(wire, "", (SESSION, SET, "50000")) == (ErrorCode.INVALID_REQUEST, text)
    assert replace(wire, GROUP, "", {SESSION: "50000"}) == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_its_own_values_are_shown_at_every_version(wire: WireClient, group: str, version: int) -> None:
    assert change(wire, GROUP, group, (SESSION, SET, " 50000 "), (RENEW, SET, "FALSE")) == 0
    await_effect(lambda: shown(wire, group, SESSION) == ("50000", SOURCE_GROUP))
    found = entries(wire, GROUP, group, version=version)
    assert (found[RENEW].value, found[RENEW].config_source) == ("false", SOURCE_GROUP)
    assert {name for name, e in found.items() if e.config_source == SOURCE_GROUP} == {SESSION, RENEW}


def test_its_own_value_comes_first_among_the_synonyms(wire: WireClient, group: str) -> None:
    assert change(wire, GROUP, group, (SESSION, SET, "50000"), (RESET, SET, "earliest")) == 0
    await_effect(lambda: shown(wire, group, SESSION) == ("50000", SOURCE_GROUP))
    found = entries(wire, GROUP, group, include_synonyms=True)
    synonyms = {key: [(s.name, s.value, s.source) for s in found[key].synonyms] for key in (SESSION, RESET)}
    assert synonyms == {
        SESSION: [
            (SESSION, "50000", SOURCE_GROUP),
            ("group.consumer.session.timeout.ms", "45000", SOURCE_DEFAULT),
        ],
        RESET: [(RESET, "earliest", SOURCE_GROUP), (RESET, "latest", SOURCE_DEFAULT)],
    }


def test_the_brokers_value_is_every_groups_default(wire: WireClient, group: str) -> None:
    key = "consumer.assignment.interval.ms"
    try:
        assert change(wire, BROKER, "", (f"group.{key}", SET, "3000")) == 0
        await_effect(lambda: shown(wire, group, key) == ("3000", SOURCE_DYNAMIC_DEFAULT))
    finally:
        assert change(wire, BROKER, "", (f"group.{key}", DELETE, None)) == 0
    await_effect(lambda: shown(wire, group, key) == ("1000", SOURCE_DEFAULT))


def test_internal_keys_are_shown_where_they_are_set(wire: WireClient, group: str) -> None:
    assert INTERNAL not in entries(wire, GROUP, group)
    assert change(wire, GROUP, group, (INTERNAL, SET, "+7")) == 0
    await_effect(lambda: INTERNAL in entries(wire, GROUP, group))
    entry = entries(wire, GROUP, group, include_synonyms=True)[INTERNAL]
    assert [(s.name, s.value, s.source) for s in entry.synonyms] == [
        (INTERNAL, "+7", SOURCE_GROUP),
        (f"group.{INTERNAL}", "10000", SOURCE_DEFAULT),
    ]


def test_it_is_listed_as_long_as_it_has_values(wire: WireClient, group: str) -> None:
    assert change(wire, GROUP, group, (RESET, SET, "earliest")) == 0
    await_effect(lambda: group in listed(wire))
    assert change(wire, GROUP, group, (RESET, DELETE, None)) == 0
    await_effect(lambda: group not in listed(wire))
    assert change(wire, GROUP, group, ("no.such.key", DELETE, None)) == 0
    assert change(wire, GROUP, group, (RESET, SET, "earliest"), validate_only=True) == 0
    assert group not in listed(wire)


def test_the_old_alter_replaces_everything(wire: WireClient, group: str) -> None:
    assert change(wire, GROUP, group, (SESSION, SET, "50000")) == 0
    assert replace(wire, GROUP, group, {ISOLATION: "read_committed"}) == 0
    await_effect(lambda: shown(wire, group, ISOLATION) == ("read_committed", SOURCE_GROUP))
    assert shown(wire, group, SESSION) == ("45000", SOURCE_DEFAULT)
    assert replace(wire, GROUP, group, {"no.such.key": "1"}) == ErrorCode.INVALID_CONFIG
    assert replace(wire, GROUP, group, {ISOLATION: None}) == ErrorCode.INVALID_REQUEST
    assert replace(wire, GROUP, group, {SESSION: "1"}) == ErrorCode.INVALID_CONFIG
    assert shown(wire, group, ISOLATION) == ("read_committed", SOURCE_GROUP)


@pytest.mark.parametrize(
    ("key", "lowest", "highest"),
    [
        (SESSION, 45_000, 60_000),
        (HEARTBEAT, 5_000, 15_000),
        ("consumer.assignment.interval.ms", 0, 15_000),
        ("share.session.timeout.ms", 45_000, 60_000),
        ("share.heartbeat.interval.ms", 5_000, 15_000),
        ("share.record.lock.duration.ms", 15_000, 60_000),
        ("share.delivery.count.limit", 2, 10),
        ("share.partition.max.record.locks", 100, 4_000),
        ("share.assignment.interval.ms", 0, 15_000),
        ("streams.session.timeout.ms", 45_000, 60_000),
        ("streams.heartbeat.interval.ms", 5_000, 15_000),
        ("streams.assignment.interval.ms", 0, 15_000),
    ],
)
def test_the_brokers_bounds(wire: WireClient, group: str, key: str, lowest: int, highest: int) -> None:
    for value in (lowest, highest):
        assert changed(wire, group, (key, SET, str(value))) == (ErrorCode.NONE, None)
    text = f"{key} must be in the range {lowest} to {highest} inclusive."
    assert changed(wire, group, (key, SET, str(highest + 1))) == (ErrorCode.INVALID_CONFIG, text)
    below = changed(wire, group, (key, SET, str(lowest - 1)))
    at_least = f"Invalid value {lowest - 1} for configuration {key}: Value must be at least {lowest}"
    assert below in ((ErrorCode.INVALID_CONFIG, text), (ErrorCode.INVALID_CONFIG, at_least))


@pytest.mark.parametrize(
    ("op", "error", "text"),
    [
        ((SESSION, SET, "x"), 40, f"Invalid value x for configuration {SESSION}: Not a number of type INT"),
        ((SESSION, SET, " "), 40, f"Invalid value   for configuration {SESSION}: Not a number of type INT"),
        ((SESSION, SET, "0"), 40, f"Invalid value 0 for configuration {SESSION}: Value must be at least 1"),
        ((SESSION, SET, None), 42, f"Null value not supported for : {SESSION}"),
        ((SESSION, APPEND, "1"), 40, f"Can't APPEND to key {SESSION} because its type is not LIST."),
        (("no.such.key", SET, "1"), 40, "Unknown group config name: no.such.key"),
        (
            (RENEW, SET, " no"),
            40,
            f"Invalid value  no for configuration {RENEW}: Expected value to be either true or false",
        ),
        (
            (ISOLATION, SET, "READ_COMMITTED"),
            40,
            f"Invalid value READ_COMMITTED for configuration {ISOLATION}: "
            "String must be one of: read_committed, read_uncommitted",
        ),
        (
            (RESET, SET, "none"),
            40,
            f"Invalid value none for configuration {RESET}: Invalid value `none` for configuration {RESET}. "
            "The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
        ),
        ((RESET, SET, "by_duration:P1DT2H"), 0, None),
        ((TAGS, SET, "a, b"), 0, None),
        ((TAGS, SET, "a,a"), 40, f"{TAGS} must not contain duplicate tag keys."),
        ((TAGS, SET, "a,,b"), 40, f"Configuration '{TAGS}' values must not be empty."),
        ((TAGS, APPEND, "a"), 40, f"Can't APPEND to key {TAGS} because its type is not LIST."),
        ((TAGS, SUBTRACT, "a"), 40, f"Can't SUBTRACT to key {TAGS} because its type is not LIST."),
        (
            (ASSIGNOR, SET, "x"),
            40,
            f"{ASSIGNOR} 'x' is not a registered task assignor. Registered assignors are: [sticky].",
        ),
        (
            ("streams.num.standby.replicas", SET, "3"),
            40,
            "streams.num.standby.replicas must be less than or equal to 2",
        ),
        (
            ("streams.task.offset.interval.ms", SET, "1"),
            40,
            "streams.task.offset.interval.ms must be greater than or equal to 15000",
        ),
        ((DEAD_LETTERS, SET, "a b"), 0, None),
        ((DEAD_LETTERS, SET, "__a"), 40, f"{DEAD_LETTERS}: DLQ topic name must not start with '__'"),
    ],
)
def test_what_a_value_may_be(
    wire: WireClient, group: str, op: tuple[str, int, str | None], error: int, text: str | None
) -> None:
    assert changed(wire, group, op) == (error, text)


@pytest.mark.parametrize(
    ("values", "first"),
    [
        ({SESSION: "1", HEARTBEAT: "1"}, f"{HEARTBEAT} must be in the range"),
        ({SESSION: "1", "no.such.key": "1"}, "Unknown group config name: no.such.key"),
        ({RENEW: "x", TAGS: "a,a"}, f"{TAGS} must not contain"),
        ({DEAD_LETTERS: "__a", ASSIGNOR: "x"}, f"{ASSIGNOR} 'x' is not"),
        ({SESSION: "1", RENEW: "x"}, f"Invalid value x for configuration {RENEW}"),
    ],
)
def test_which_of_two_faults_is_told(
    wire: WireClient, group: str, values: dict[str, str], first: str
) -> None:
    error, text = changed(wire, group, *((key, SET, value) for key, value in values.items()))
    assert error == ErrorCode.INVALID_CONFIG
    assert (text or "").startswith(first)


def test_a_key_twice_is_42(wire: WireClient, group: str) -> None:
    twice = ((SESSION, SET, "50000"), (SESSION, SET, "50001"))
    assert change(wire, GROUP, group, *twice) == ErrorCode.INVALID_REQUEST


def test_what_each_key_is_for(wire: WireClient, group: str) -> None:
    found = entries(wire, GROUP, group, include_documentation=True)
    assert all(len(entry.documentation) > 20 for entry in found.values())


def test_a_member_is_told_its_groups_heartbeat_interval(
    wire: WireClient, name: str, member: Callable[..., ConsumerMember]
) -> None:
    assert change(wire, GROUP, name, (HEARTBEAT, SET, "7000")) == 0
    await_effect(lambda: name in listed(wire))
    ann = member()
    ann.join()
    assert ann.beat().heartbeat_interval_ms == 7000
    assert change(wire, GROUP, name, (HEARTBEAT, DELETE, None)) == 0
    wait_until(lambda: ann.beat().heartbeat_interval_ms == 5000, "the default interval")
