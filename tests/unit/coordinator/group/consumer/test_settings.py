"""Settings of consumer groups."""

import pytest

from coordinator.group.consumer.settings import ConsumerSettings, MigrationPolicy


@pytest.mark.parametrize(
    ("name", "upgrades", "downgrades"),
    [
        ("disabled", False, False), ("upgrade", True, False),
        ("downgrade", False, True), ("bidirectional", True, True),
    ],
)  # fmt: skip
def test_what_a_policy_allows(name: str, upgrades: bool, downgrades: bool) -> None:
    policy = MigrationPolicy(name)
    assert (policy.upgrades, policy.downgrades) == (upgrades, downgrades)


def test_kafkas_defaults() -> None:
    settings = ConsumerSettings()
    assert list(settings.assignors) == ["uniform", "range"]
    assert settings.group_config("g", "consumer.session.timeout.ms") == 45_000
    assert settings.group_config("g", "consumer.heartbeat.interval.ms") == 5_000
    assert settings.group_config("g", "consumer.assignment.interval.ms") == 1_000
    assert settings.migration is MigrationPolicy.BIDIRECTIONAL
    assert settings.regex_refresh_ms == 600_000
    assert settings.enabled()
