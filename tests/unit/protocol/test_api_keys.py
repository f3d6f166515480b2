"""API keys and their titles."""

from __future__ import annotations

import pytest

from protocol.api_keys import ApiKey


@pytest.mark.parametrize(
    ("key", "title"),
    [
        (0, "Produce"),
        (4, "LeaderAndIsr"),
        (18, "ApiVersions"),
        (23, "OffsetForLeaderEpoch"),
        (29, "DescribeAcls"),
        (50, "DescribeUserScramCredentials"),
        (93, "StreamsGroupTopologyDescriptionUpdate"),
    ],
)
def test_titles_are_the_names_of_messages(key: int, title: str) -> None:
    assert ApiKey(key).title == title


def test_keys_have_no_gap() -> None:
    assert sorted(ApiKey) == list(range(95))
