"""ISO 8601 durations as java.time.Duration reads them, without signs."""

from __future__ import annotations

import pytest

from broker.config.durations import iso_duration_ms


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("PT1H", 3_600_000),
        ("P1D", 86_400_000),
        ("P2DT3H4M5.678S", 2 * 86_400_000 + 3 * 3_600_000 + 4 * 60_000 + 5_678),
        ("pt15s", 15_000),
        ("PT0.0019S", 1),
        ("PT0S", 0),
    ],
)
def test_lengths(text: str, expected_ms: int) -> None:
    assert iso_duration_ms(text) == expected_ms


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "1H", "PT-1H", "-PT1H", "P1H", "PT1D", "P1DT", "PT1.S", "PT1H "]
)
def test_what_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="no duration"):
        iso_duration_ms(text)
