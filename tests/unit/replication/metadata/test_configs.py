"""Single changes of configuration values."""

from __future__ import annotations

import pytest

from protocol.errors import ErrorCode
from replication.metadata.configs import (
    ConfigChange,
    ConfigRefused,
    ConfigResource,
    ConfigType,
    apply_changes,
    resource_at,
)
from tests.unit.replication.cluster import Rules, topic_resource

TOPIC = topic_resource("t")
SET, DELETE, APPEND, SUBTRACT = range(4)


def after(current, *changes):
    return apply_changes(TOPIC, current, [ConfigChange(*change) for change in changes], Rules())


def test_where_resources_lie():
    assert TOPIC.path == "/config/topics/t"
    assert ConfigResource(ConfigType.BROKER, "").path == "/config/brokers/<default>"
    assert ConfigResource(ConfigType.BROKER, "1").path == "/config/brokers/1"
    assert ConfigResource(ConfigType.GROUP, "a b/c").path == "/config/groups/a%20b%2Fc"
    for resource in (
        TOPIC,
        ConfigResource(ConfigType.BROKER, ""),
        ConfigResource(ConfigType.GROUP, "g"),
        ConfigResource(ConfigType.CLIENT_METRICS, "a b/%2F*~\u00e4"),
        ConfigResource(ConfigType.CLIENT_METRICS, "<default>"),
    ):
        assert resource_at(resource.path) == resource
    assert resource_at("/config/users/u") is None
    assert resource_at("/config/users/u/clients/c") is None
    assert resource_at("/config/topics") is None


def test_set_and_delete():
    assert after({"a": "1"}, ("b", SET, "2"), ("a", SET, "3")) == {"a": "3", "b": "2"}
    assert after({"a": "1"}, ("a", DELETE, None)) == {}
    assert after({"a": "1"}, ("unset", DELETE, None)) == {"a": "1"}
    assert after({"a": "1"}, ("a", DELETE, "value is ignored")) == {}


def test_append_and_subtract():
    assert after({"x.list": "a"}, ("x.list", APPEND, "b,c")) == {"x.list": "a,b,c"}
    assert after({"x.list": "a,b"}, ("x.list", APPEND, "b, c ,c")) == {"x.list": "a,b,c"}
    assert after({"x.list": "a,b,c"}, ("x.list", SUBTRACT, "b,z")) == {"x.list": "a,c"}
    assert after({"x.list": "a"}, ("x.list", SUBTRACT, "a")) == {"x.list": ""}
    assert after({}, ("x.list", APPEND, "a")) == {"x.list": "a"}


def test_an_append_starts_from_the_value_in_force():
    assert after({}, ("good.inherited.list", APPEND, "c")) == {"good.inherited.list": "a,b,c"}
    assert after({}, ("good.inherited.list", SUBTRACT, "a")) == {"good.inherited.list": "b"}


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ([("a", SET, "1"), ("a", DELETE, None)], ErrorCode.INVALID_REQUEST),
        ([("a", SET, None)], ErrorCode.INVALID_REQUEST),
        ([("x.list", APPEND, None)], ErrorCode.INVALID_REQUEST),
        ([("plain", APPEND, "1")], ErrorCode.INVALID_CONFIG),
        ([("plain", SUBTRACT, "1")], ErrorCode.INVALID_CONFIG),
        ([("a", 4, "1")], ErrorCode.UNKNOWN_SERVER_ERROR),
        ([("a", -1, "1")], ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_refusals(changes, error):
    current = {"a": "0"}
    with pytest.raises(ConfigRefused) as refused:
        after(current, *changes)
    assert refused.value.error == error
    assert current == {"a": "0"}
