"""Version ranges and names."""

from __future__ import annotations

import pytest

from protocol.schema.model import NO_VERSIONS, OPEN_END, Versions, snake_case


def test_a_range_holds_both_its_ends() -> None:
    versions = Versions(2, 4)
    assert [version for version in range(7) if version in versions] == [2, 3, 4]
    assert 0 not in NO_VERSIONS
    assert "2" not in versions


@pytest.mark.parametrize(
    ("versions", "text"),
    [(Versions(3, 3), "3"), (Versions(3, 5), "3-5"), (Versions(3, OPEN_END), "3+"), (NO_VERSIONS, "none")],
)
def test_a_range_reads_as_in_the_notation(versions: Versions, text: str) -> None:
    assert str(versions) == text


def test_an_inner_range_is_cut_to_the_outer() -> None:
    assert Versions(1, OPEN_END).within(Versions(0, 7)) == Versions(1, 7)
    assert Versions(8, OPEN_END).within(Versions(0, 7)) == Versions(8, 7)


@pytest.mark.parametrize(
    ("kafkas", "ours"),
    [
        ("Topics", "topics"),
        ("ThrottleTimeMs", "throttle_time_ms"),
        ("commitTimestamp", "commit_timestamp"),
        ("V3AndBelowTopics", "v3_and_below_topics"),
        ("ZkMigrationReady", "zk_migration_ready"),
        ("IncludeFencedBrokers", "include_fenced_brokers"),
        ("ISRVersion", "isr_version"),
    ],
)
def test_attributes_are_kafkas_names_in_snake_case(kafkas: str, ours: str) -> None:
    assert snake_case(kafkas) == ours
