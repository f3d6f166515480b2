"""A share group's own settings on the data path (resource type GROUP), on our broker and on Kafka 4.4.0."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from tests.conformance.test_group_configs import GROUP, listed
from tests.conformance.test_share_records import begun
from tests.support.share_member import ACCEPT, RELEASE, RENEW, ShareMember, initialize
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

_groups = itertools.count()


def configure(wire: WireClient, group: str, **settings: str) -> int:
    """Set keys (_ for .) of a group; the error."""
    request = m.IncrementalAlterConfigsRequest
    changes = [
        request.AlterableConfig(name=name.replace("_", "."), config_operation=0, value=value)
        for name, value in settings.items()
    ]
    resource = request.AlterConfigsResource(resource_type=GROUP, resource_name=group, configs=changes)
    return int(wire.send(request(resources=[resource]), 1).responses[0].error_code)


@pytest.fixture
def member(wire: WireClient, topic: str) -> Callable[..., ShareMember]:
    """Makes a member of a group with these settings, which never read; old records are there before."""
    old_ms = int(time.time() * 1000) - 7_200_000
    wire.produce_values(topic, b"a", b"b", b"c", timestamp=old_ms)
    topic_id = bytes(wire.metadata(topic).topics[0].topic_id)

    def make(**settings: str) -> ShareMember:
        group = f"share-settings-{next(_groups)}"
        if settings:
            assert configure(wire, group, **settings) == 0
            wait_until(lambda: group in listed(wire), "the settings to count")
        initialize(wire, group, topic_id, start_offset=-1)
        return ShareMember(wire, group, topic_id)

    return make


def test_groups_begin_at_the_end(wire: WireClient, topic: str, member: Callable[..., ShareMember]) -> None:
    ann = begun(member())
    wire.produce_values(topic, b"d")
    assert ann.fetch_until() == [(3, 3, 1)]


@pytest.mark.parametrize("reset", ["earliest", "by_duration:PT10H"])
def test_groups_may_begin_earlier(member: Callable[..., ShareMember], reset: str) -> None:
    assert member(share_auto_offset_reset=reset).fetch_until() == [(0, 2, 1)]


def test_without_a_record_that_is_young_enough_there_is_no_start(
    wire: WireClient, topic: str, member: Callable[..., ShareMember]
) -> None:
    ann = member(share_auto_offset_reset="by_duration:PT1H")
    errors: list[int] = []

    def told() -> bool:
        errors[:] = [row.error_code for row in ann.fetch(max_wait_ms=300).rows.values()]
        return bool(errors)

    wait_until(told, "an answer")
    assert errors == [ErrorCode.OFFSET_NOT_AVAILABLE]
    wire.produce_values(topic, b"d", timestamp=int(time.time() * 1000))
    assert ann.fetch_until() == [(3, 3, 1)]


def test_limits_of_a_group(member: Callable[..., ShareMember]) -> None:
    ann = member(
        share_auto_offset_reset="earliest",
        share_record_lock_duration_ms="20000",
        share_delivery_count_limit="2",
        share_renew_acknowledge_enable="false",
    )
    assert ann.fetch_until() == [(0, 2, 1)]
    assert ann.acknowledge().acquisition_lock_timeout_ms == 20_000
    assert ann.ack_error((0, 0, RENEW), is_renew_ack=True) == ErrorCode.INVALID_RECORD_STATE
    assert ann.ack_error((0, 0, RELEASE)) == 0
    assert ann.fetch_until() == [(0, 0, 2)]
    assert ann.ack_error((0, 0, RELEASE)) == 0
    assert ann.ack_error((1, 2, ACCEPT)) == 0
    assert ann.fetch(max_wait_ms=300).acquired == []


@pytest.mark.parametrize(
    "settings",
    [
        {"share_delivery_count_limit": "1"},
        {"share_auto_offset_reset": "bogus"},
        {"share_auto_offset_reset": "by_duration:1H"},
        {"share_isolation_level": "x"},
    ],
)
def test_wrong_settings_are_refused(wire: WireClient, settings: dict[str, str]) -> None:
    assert configure(wire, "share-settings", **settings) == ErrorCode.INVALID_CONFIG
