"""A group's own settings win over the broker's."""

from __future__ import annotations

import pytest

from broker.config.broker_config import BrokerConfig
from broker.share.settings import ShareGroupSettings
from replication.share.ports import Limits, Reset


def settings(**of_group: str) -> ShareGroupSettings:
    values = {name.replace("_", "."): value for name, value in of_group.items()}
    config = BrokerConfig(
        {
            "node.id": "1",
            "group.share.record.lock.duration.ms": "20000",
            "group.share.delivery.count.limit": "4",
            "group.share.partition.max.record.locks": "300",
        }
    )
    return ShareGroupSettings(config, lambda group, name: values.get(name) if group == "g" else None)


def test_without_its_own_a_group_has_the_brokers() -> None:
    found = settings()
    assert found.limits("g") == Limits(20_000, 4, 300)
    assert found.reset("g") == (Reset.LATEST, 0)
    assert not found.read_committed("g")
    assert found.renew_allowed("g")


def test_its_own_win() -> None:
    found = settings(
        share_record_lock_duration_ms="15000",
        share_delivery_count_limit="2",
        share_partition_max_record_locks="100",
        share_isolation_level="read_committed",
        share_renew_acknowledge_enable="false",
        share_auto_offset_reset="earliest",
    )
    assert found.limits("g") == Limits(15_000, 2, 100)
    assert found.limits("other") == Limits(20_000, 4, 300)
    assert found.read_committed("g")
    assert not found.renew_allowed("g")
    assert found.reset("g") == (Reset.EARLIEST, 0)


@pytest.mark.parametrize("text", ["by_duration:PT1M", "BY_DURATION:pt1m"])
def test_a_start_by_time(text: str) -> None:
    assert settings(share_auto_offset_reset=text).reset("g") == (Reset.BY_DURATION, 60_000)


def test_broker_defaults() -> None:
    assert ShareGroupSettings(BrokerConfig({"node.id": "1"})).limits("g") == Limits(30_000, 5, 2000)
