"""What admin requests show (coordinators.md 3.7), and subscriptions (section 6)."""

from __future__ import annotations

import pytest

from coordinator.group.classic.describe import (
    delete_error,
    described,
    described_absent,
    listed,
    offset_delete_error,
    read_topics,
    subscribed_topics,
    topics_of_subscription,
)
from coordinator.group.classic.group import ClassicGroup
from protocol import messages as m
from protocol.errors import ErrorCode
from tests.unit.coordinator.group.classic.play import Play, stable


def subscription(*topics: str, version: int = 0) -> bytes:
    body = m.ConsumerProtocolSubscription(topics=list(topics), user_data=None).encode(version)
    return version.to_bytes(2, "big") + body


def consumers(*subscriptions: bytes, protocol_type: str = "consumer") -> ClassicGroup:
    """A Stable group whose members have these subscriptions."""
    play = stable(None, *"abc"[: len(subscriptions)], type=protocol_type)
    group = play.existing()
    for member, metadata in zip(group.members.values(), subscriptions, strict=True):
        member.protocols = (("range", metadata),)
    return group


def test_a_stable_group_is_described_in_full() -> None:
    play = stable(None, "a", "b", protocols="range:x,rr:y")
    shown = described(play.existing())
    assert (shown.error_code, shown.group_id) == (ErrorCode.NONE, "g")
    assert (shown.group_state, shown.protocol_type, shown.protocol_data) == ("Stable", "consumer", "range")
    assert [
        (each.member_id, each.client_id, each.client_host, each.member_metadata, each.member_assignment)
        for each in shown.members
    ] == [
        (play.ids["a"][0], "a", "/10.0.0.1", b"x", b"A"),
        (play.ids["b"][0], "b", "/10.0.0.1", b"x", b"B"),
    ]


@pytest.mark.parametrize("joins", ["join b protocols=range:z |", "join c v=3 |"])
def test_a_group_in_rebalance_shows_members_without_metadata(joins: str) -> None:
    play = stable(None, "a", "b")
    play.run(joins)
    shown = described(play.existing())
    assert (shown.group_state, shown.protocol_type) == ("PreparingRebalance", "consumer")
    assert shown.protocol_data == ""
    assert len(shown.members) >= 2
    assert all(each.member_metadata == each.member_assignment == b"" for each in shown.members)


def test_an_empty_group_keeps_its_type() -> None:
    play = stable(None, "a")
    play.run("leave a | a left NONE NONE")
    shown = described(play.existing())
    assert (shown.group_state, shown.protocol_type, shown.members) == ("Empty", "consumer", [])


def test_an_absent_group_is_dead_and_an_error_from_version_6() -> None:
    before, after = described_absent("g", 5), described_absent("g", 6)
    assert (before.error_code, before.group_state) == (ErrorCode.NONE, "Dead")
    assert (after.error_code, after.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert after.error_message == "Group g not found."
    for version, shown in ((0, before), (5, before), (6, after)):
        m.DescribeGroupsResponse(groups=[shown]).encode(version)


def test_listing() -> None:
    shown = listed(stable(None, "a", type="connect").existing())
    assert (shown.group_id, shown.protocol_type, shown.group_state, shown.group_type) == (
        "g",
        "connect",
        "Stable",
        "classic",
    )


def test_only_empty_groups_are_deleted() -> None:
    play = stable(None, "a")
    assert delete_error(play.existing()) is ErrorCode.NON_EMPTY_GROUP
    play.run("join b v=3 |")
    assert delete_error(play.existing()) is ErrorCode.NON_EMPTY_GROUP
    play = stable(None, "a")
    play.run("leave a | a left NONE NONE")
    assert delete_error(play.existing()) is ErrorCode.NONE
    play.run("unload |")
    assert delete_error(play.existing()) is ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_of_other_types_are_deleted_only_when_the_group_is_empty() -> None:
    assert offset_delete_error(stable(None, "a").existing()) is ErrorCode.NONE
    play = stable(None, "a", type="connect")
    assert offset_delete_error(play.existing()) is ErrorCode.NON_EMPTY_GROUP
    play.run("leave a | a left NONE NONE")
    assert offset_delete_error(play.existing()) is ErrorCode.NONE
    play.run("unload |")
    assert offset_delete_error(play.existing()) is ErrorCode.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("version", range(4))
def test_topics_of_all_versions_are_read(version: int) -> None:
    assert topics_of_subscription(subscription("one", "two", version=version)) == ["one", "two"]


def test_a_version_from_the_future_and_trailing_bytes_are_read_as_far_as_known() -> None:
    assert topics_of_subscription(b"\x00\x63" + subscription("one")[2:] + b"more") == ["one"]


@pytest.mark.parametrize(
    "metadata",
    [b"", b"\x00", b"\xff\xff\x00\x00\x00\x00", b"\x00\x00\x00\x00\x00\x05", b"\x00\x00\xff\xff\xff\xf0"],
)
def test_bytes_that_are_no_subscription(metadata: bytes) -> None:
    assert topics_of_subscription(metadata) is None


def test_a_group_is_subscribed_to_what_any_member_names() -> None:
    group = consumers(subscription("one"), subscription("two", "three", version=3))
    assert subscribed_topics(group) == {"one", "two", "three"}
    assert read_topics(group) == {"one", "two", "three"}


def test_one_unreadable_subscription_counts_as_all_topics() -> None:
    group = consumers(subscription("one"), b"junk")
    assert subscribed_topics(group) is None
    assert read_topics(group) is None


def test_other_types_and_empty_groups_subscribe_to_nothing() -> None:
    group = consumers(subscription("one"), protocol_type="connect")
    assert subscribed_topics(group) is None
    assert read_topics(group) == frozenset()
    play = Play()
    play.do_join("a")
    assert read_topics(play.existing()) == frozenset()
