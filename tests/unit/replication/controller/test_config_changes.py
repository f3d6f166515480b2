"""AlterConfigs and IncrementalAlterConfigs as plans."""

from __future__ import annotations

import pytest

from protocol.errors import ErrorCode
from replication.controller.config_changes import plan_increments, plan_replacement
from replication.metadata.configs import ConfigChange, ConfigResource, ConfigType
from replication.metadata.store import Create, Delete, Put
from tests.unit.replication.cluster import Rules, topic_resource
from tests.unit.replication.controller.test_topic_creation import cluster, existing

A, B = topic_resource("a"), topic_resource("b")
IMAGE = cluster(1, topics=[existing("a"), existing("b")]).with_configs({A: {"good.1": "1", "good.2": "2"}})


def test_replacement_drops_what_is_not_named():
    outcomes, plan = plan_replacement(IMAGE, [(A, [("good.3", "3")]), (B, [("good", "x")])], Rules())
    assert [o.error for o in outcomes] == [ErrorCode.NONE] * 2
    assert plan.configs == {A: {"good.3": "3"}, B: {"good": "x"}}
    assert [type(operation) for operation in plan.operations] == [Put, Create]


def test_no_override_left_removes_the_node():
    _, plan = plan_replacement(IMAGE, [(A, [])], Rules())
    assert plan.operations == [Delete(A.path)]
    assert plan.configs == {A: {}}


def test_nothing_changed_writes_nothing():
    same = [("good.2", "2"), ("good.1", "1")]
    outcomes, plan = plan_replacement(IMAGE, [(A, same), (B, [])], Rules())
    assert [o.error for o in outcomes] == [ErrorCode.NONE] * 2
    assert plan.operations == []


def test_increments_keep_the_rest():
    changes = [ConfigChange("good.1", 1, None), ConfigChange("good.list", 2, "x")]
    outcomes, plan = plan_increments(IMAGE, [(A, changes)], Rules())
    assert outcomes[0].error == ErrorCode.NONE
    assert plan.configs == {A: {"good.2": "2", "good.list": "x"}}


def test_a_resource_is_changed_as_a_whole_or_not_at_all_and_others_go_on():
    bad = [ConfigChange("good.5", 0, "5"), ConfigChange("unknown", 0, "1")]
    good = [ConfigChange("good.5", 0, "5")]
    outcomes, plan = plan_increments(IMAGE, [(A, bad), (B, good)], Rules())
    assert [o.error for o in outcomes] == [ErrorCode.INVALID_CONFIG, ErrorCode.NONE]
    assert plan.configs == {B: {"good.5": "5"}}


@pytest.mark.parametrize(
    ("resource", "error"),
    [
        (topic_resource("missing"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (topic_resource("a/b"), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (topic_resource(""), ErrorCode.INVALID_TOPIC_EXCEPTION),
        (ConfigResource(ConfigType.BROKER, "one"), ErrorCode.INVALID_REQUEST),
        (ConfigResource(ConfigType.BROKER, "-1"), ErrorCode.INVALID_REQUEST),
        (ConfigResource(ConfigType.GROUP, ""), ErrorCode.INVALID_REQUEST),
        (ConfigResource(ConfigType.BROKER_LOGGER, "1"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_resources_that_take_no_values(resource, error):
    outcomes, plan = plan_replacement(IMAGE, [(resource, [("good", "1")])], Rules())
    assert outcomes[0].error == error
    assert plan.operations == []


@pytest.mark.parametrize("name", ["", "1"])
def test_brokers_and_their_default(name):
    resource = ConfigResource(ConfigType.BROKER, name)
    outcomes, plan = plan_replacement(IMAGE, [(resource, [("good", "1")])], Rules())
    assert outcomes[0].error == ErrorCode.NONE
    assert plan.configs == {resource: {"good": "1"}}


def test_repetitions_and_nulls():
    outcomes, _ = plan_replacement(IMAGE, [(A, [("good", "1")]), (A, [("good", "2")])], Rules())
    assert [o.error for o in outcomes] == [ErrorCode.INVALID_REQUEST]
    for entries in ([("good", "1"), ("good", "1")], [("good", None)]):
        outcomes, plan = plan_replacement(IMAGE, [(A, entries)], Rules())
        assert outcomes[0].error == ErrorCode.INVALID_REQUEST
        assert plan.operations == []
