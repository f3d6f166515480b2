"""Rules between the group.* keys."""

from __future__ import annotations

import pytest

from broker.config.broker_config import BrokerConfig
from broker.config.group_bounds import broken_orders


@pytest.mark.parametrize("kind", ["consumer", "share", "streams"])
@pytest.mark.parametrize(
    ("static", "problem"),
    [
        (
            {"session.timeout.ms": "44999"},
            "session.timeout.ms greater than or equal to min.session.timeout.ms",
        ),
        ({"session.timeout.ms": "60001"}, "session.timeout.ms less than or equal to max.session.timeout.ms"),
        (
            {"heartbeat.interval.ms": "4999"},
            "heartbeat.interval.ms greater than or equal to min.heartbeat.interval.ms",
        ),
        (
            {"heartbeat.interval.ms": "15001"},
            "heartbeat.interval.ms less than or equal to max.heartbeat.interval.ms",
        ),
        (
            {"assignment.interval.ms": "15001"},
            "assignment.interval.ms less than or equal to max.assignment.interval.ms",
        ),
        (
            {"min.assignment.interval.ms": "1001"},
            "assignment.interval.ms greater than or equal to min.assignment.interval.ms",
        ),
        (
            {"heartbeat.interval.ms": "45000", "max.heartbeat.interval.ms": "45000"},
            "heartbeat.interval.ms less than session.timeout.ms",
        ),
    ],
)
def test_what_is_in_force_lies_within_the_bounds_of_groups(
    kind: str, static: dict[str, str], problem: str
) -> None:
    found = broken_orders(BrokerConfig({f"group.{kind}.{name}": value for name, value in static.items()}))
    key, words = problem.split(" ", 1)
    relation, other = words.rsplit(" ", 1)
    assert found == [f"group.{kind}.{key} must be {relation} group.{kind}.{other}"]


def test_the_defaults_break_no_rule() -> None:
    assert broken_orders(BrokerConfig({})) == []


@pytest.mark.parametrize(("assignors", "count"), [("", 0), ("simple,other", 2)])
def test_share_groups_have_one_assignor(assignors: str, count: int) -> None:
    assert broken_orders(BrokerConfig({"group.share.assignors": assignors})) == [
        f"group.share.assignors must contain exactly one assignor, but found {count}"
    ]
