"""Client properties of the console consumer."""

from __future__ import annotations

import re

import pytest

from ottla.cli.consumer_properties import (
    GroupChoice,
    assignors,
    choose_group,
    consumer_settings,
    member_maker,
    member_settings,
    reset_policy,
)
from ottla.cli.options import ToolFailed
from ottla.client import KafkaClient
from ottla.groups.consumer import NO_RESET
from ottla.groups.heartbeat_member import HeartbeatMember
from ottla.groups.member import Member
from ottla.reader import EARLIEST, LATEST
from tests.unit.ottla.groups.scripted_group import ScriptedGroup


def test_the_group_is_named_once_or_alike_or_generated() -> None:
    assert choose_group("g", {}, {"group.id": "g"}) == GroupChoice("g", generated=False)
    assert choose_group(None, {"group.id": "p"}, {}) == GroupChoice("p", generated=False)
    generated = choose_group(None, {}, {})
    assert generated.generated
    assert re.fullmatch(r"console-consumer-\d{1,5}", generated.group_id)
    with pytest.raises(ToolFailed, match="Detected group ids: 'a', 'b'"):
        choose_group("b", {"group.id": "a"}, {})


def test_where_to_begin_without_an_offset() -> None:
    assert reset_policy({}, from_beginning=False) == LATEST
    assert reset_policy({}, from_beginning=True) == EARLIEST
    assert reset_policy({"auto.offset.reset": "earliest"}, from_beginning=False) == EARLIEST
    assert reset_policy({"auto.offset.reset": "none"}, from_beginning=False) == NO_RESET
    with pytest.raises(ToolFailed, match="Can't simultaneously specify"):
        reset_policy({"auto.offset.reset": "latest"}, from_beginning=True)
    with pytest.raises(ToolFailed, match="one of earliest, latest, none"):
        reset_policy({"auto.offset.reset": "middle"}, from_beginning=False)


def test_only_a_named_group_commits_unasked() -> None:
    named, generated = GroupChoice("g", generated=False), GroupChoice("g", generated=True)

    def interval(properties: dict[str, str], choice: GroupChoice) -> int | None:
        return consumer_settings(properties, choice, LATEST, read_committed=False).auto_commit_interval_ms

    assert interval({}, named) == 5000
    assert interval({}, generated) is None
    assert interval({"enable.auto.commit": "true", "auto.commit.interval.ms": "100"}, generated) == 100
    assert interval({"enable.auto.commit": "false"}, named) is None


def test_a_membership_follows_javas_properties() -> None:
    properties = {
        "session.timeout.ms": "10000",
        "heartbeat.interval.ms": "500",
        "max.poll.interval.ms": "60000",
        "group.instance.id": "i",
        "partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
    }
    settings = member_settings("g", properties)
    assert (settings.session_timeout_ms, settings.heartbeat_interval_ms) == (10000, 500)
    assert (settings.rebalance_timeout_ms, settings.instance_id) == (60000, "i")
    assert settings.assignors == ("cooperative-sticky",)
    assert member_settings("g", {}).assignors == ("range", "cooperative-sticky")


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(ToolFailed, match=r"one of \(case insensitive\): CLASSIC, CONSUMER"):
        member_maker("g", {"group.protocol": "streams"})
    with pytest.raises(ToolFailed, match="no assignor of this tool"):
        assignors("x.MyAssignor")


@pytest.mark.parametrize(
    ("protocol", "key"),
    [
        ("consumer", "session.timeout.ms"),
        ("Consumer", "heartbeat.interval.ms"),
        ("CONSUMER", "partition.assignment.strategy"),
        ("classic", "group.remote.assignor"),
        (None, "group.remote.assignor"),
        ("consumer", "share.acquire.mode"),
    ],
)
def test_what_a_protocol_has_no_use_for_is_refused_in_javas_words(protocol: str | None, key: str) -> None:
    properties = {key: "1"} | ({} if protocol is None else {"group.protocol": protocol})
    shown = (protocol or "classic").upper()
    with pytest.raises(ToolFailed, match=f"{key} cannot be set when group.protocol={shown}"):
        member_maker("g", properties)


def test_a_membership_of_the_newer_protocol() -> None:
    properties = {
        "group.protocol": "consumer", "group.instance.id": "i", "max.poll.interval.ms": "60000",
        "group.remote.assignor": "range",
    }  # fmt: skip
    with ScriptedGroup({}) as group, KafkaClient(group.address) as client:
        member = member_maker("g", properties)(client)
        assert isinstance(member, HeartbeatMember)
        settings = member.settings
        assert (settings.group_id, settings.instance_id, settings.rebalance_timeout_ms) == ("g", "i", 60_000)
        assert settings.remote_assignor == "range"
        assert isinstance(member_maker("g", {})(client), Member)
