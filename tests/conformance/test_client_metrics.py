"""Client metrics subscriptions as resources with a configuration (KIP-714, KIP-1142; protocol.md 4.5)."""

from __future__ import annotations

import itertools
import os

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from tests.conformance.test_configs import APPEND, DELETE, SET, SUBTRACT, change, describe, entries, replace
from tests.support.broker_settings import await_effect
from tests.support.wire_client import WireClient

CLIENT_METRICS = 16
SOURCE_DEFAULT, SOURCE_CLIENT_METRICS = 5, 7

_numbers = itertools.count()


@pytest.fixture
def subscription() -> str:
    """A name of the test's own, of characters that no topic may have."""
    return f"conformance {os.getpid()}/{next(_numbers)}"


def listed(wire: WireClient, version: int = 1) -> set[tuple[int, str]]:
    types = [CLIENT_METRICS] if version else []
    answer = wire.send(m.ListConfigResourcesRequest(resource_types=types), version)
    assert answer.error_code == 0
    return {(resource.resource_type, resource.resource_name) for resource in answer.config_resources}


def values(wire: WireClient, subscription: str) -> dict[str, str]:
    return {key: entry.value for key, entry in entries(wire, CLIENT_METRICS, subscription).items()}


def test_without_values_it_has_the_defaults(wire: WireClient, subscription: str) -> None:
    found = entries(wire, CLIENT_METRICS, subscription, include_synonyms=True)
    assert {key: (e.value, e.config_source, e.config_type, e.synonyms) for key, e in found.items()} == {
        "interval.ms": ("300000", SOURCE_DEFAULT, 3, []),
        "match": ("", SOURCE_DEFAULT, 7, []),
        "metrics": ("", SOURCE_DEFAULT, 7, []),
    }
    assert describe(wire, CLIENT_METRICS, "").error_code == ErrorCode.INVALID_REQUEST


def test_it_is_listed_as_long_as_it_has_values(wire: WireClient, subscription: str) -> None:
    assert change(wire, CLIENT_METRICS, subscription, ("metrics", SET, "a.b,c")) == 0
    assert change(wire, CLIENT_METRICS, f"{subscription}-x", ("metrics", SET, "a"), validate_only=True) == 0
    for version in (0, 1):
        await_effect(lambda version=version: (CLIENT_METRICS, subscription) in listed(wire, version))
        assert (CLIENT_METRICS, f"{subscription}-x") not in listed(wire, version)
    entry = entries(wire, CLIENT_METRICS, subscription, "metrics", include_synonyms=True)["metrics"]
    assert (entry.value, entry.config_source, entry.read_only) == ("a.b,c", SOURCE_CLIENT_METRICS, False)
    assert [(s.name, s.value, s.source) for s in entry.synonyms] == [
        ("metrics", "a.b,c", SOURCE_CLIENT_METRICS)
    ]
    assert change(wire, CLIENT_METRICS, subscription, ("metrics", DELETE, None)) == 0
    await_effect(lambda: (CLIENT_METRICS, subscription) not in listed(wire))


@pytest.mark.parametrize(
    ("op", "error"),
    [
        (("interval.ms", SET, "100"), ErrorCode.NONE),
        (("interval.ms", SET, "3600000"), ErrorCode.NONE),
        (("interval.ms", SET, "99"), ErrorCode.INVALID_REQUEST),
        (("interval.ms", SET, "3600001"), ErrorCode.INVALID_REQUEST),
        (("interval.ms", SET, "x"), ErrorCode.INVALID_CONFIG),
        (("interval.ms", SET, ""), ErrorCode.INVALID_CONFIG),
        (("metrics", SET, "*"), ErrorCode.NONE),
        (("metrics", SET, ""), ErrorCode.NONE),
        (("metrics", SET, None), ErrorCode.INVALID_REQUEST),
        (("metrics", APPEND, "a"), ErrorCode.INVALID_CONFIG),
        (("metrics", SUBTRACT, "a"), ErrorCode.INVALID_CONFIG),
        (("match", SET, "client_id=a,client_software_name=b.*"), ErrorCode.NONE),
        (("match", SET, "client_source_port=^12"), ErrorCode.NONE),
        (("match", SET, ""), ErrorCode.NONE),
        (("match", SET, "client_id=[x"), ErrorCode.INVALID_CONFIG),
        (("match", SET, "client_id"), ErrorCode.INVALID_CONFIG),
        (("match", SET, "client_id=a=b"), ErrorCode.INVALID_CONFIG),
        (("match", SET, "foo=bar"), ErrorCode.INVALID_CONFIG),
        (("no.such.key", SET, "1"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_a_value_may_be(
    wire: WireClient, subscription: str, op: tuple[str, int, str | None], error: int
) -> None:
    assert change(wire, CLIENT_METRICS, subscription, op) == error
    change(wire, CLIENT_METRICS, subscription, (op[0], DELETE, None))


def test_the_old_alter_replaces_everything(wire: WireClient, subscription: str) -> None:
    assert change(wire, CLIENT_METRICS, subscription, ("metrics", SET, "a"), ("match", SET, "")) == 0
    assert replace(wire, CLIENT_METRICS, subscription, {"interval.ms": "7000"}) == 0
    replaced = {"interval.ms": "7000", "match": "", "metrics": ""}
    await_effect(lambda: values(wire, subscription) == replaced)
    assert replace(wire, CLIENT_METRICS, subscription, {"x": "1"}) == ErrorCode.INVALID_REQUEST
    assert replace(wire, CLIENT_METRICS, subscription, {}) == 0


def test_it_needs_a_name(wire: WireClient) -> None:
    assert change(wire, CLIENT_METRICS, "", ("metrics", SET, "a")) == ErrorCode.INVALID_REQUEST


def test_what_each_key_is_for(wire: WireClient, subscription: str) -> None:
    found = entries(wire, CLIENT_METRICS, subscription, include_documentation=True)
    assert all(len(entry.documentation) > 20 for entry in found.values())


@pytest.mark.parametrize(
    ("types", "error"), [([0], 35), ([1], 35), ([99], 35), ([4, 99], 35), ([4, 4], 0), ([16], 0)]
)
def test_types_that_cannot_be_listed_are_35(wire: WireClient, types: list[int], error: int) -> None:
    assert wire.send(m.ListConfigResourcesRequest(resource_types=types), 1).error_code == error


@pytest.mark.parametrize("kind", [0, 1, 3, 99])
def test_types_that_cannot_be_altered_are_42(wire: WireClient, kind: int) -> None:
    assert change(wire, kind, "x", ("a", SET, "1")) == ErrorCode.INVALID_REQUEST
    assert replace(wire, kind, "x", {"a": "1"}) == ErrorCode.INVALID_REQUEST
