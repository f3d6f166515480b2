"""API keys and their titles."""

from __future__ import annotations

import pytest

from protocol.api_keys import ApiKey, api_name


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


def test_a_key_of_no_api_is_named_by_its_number() -> None:
    assert [api_name(key) for key in (0, 94, 95, -1)] == [
        "Produce",
        "UnregisterController",
        "API 95",
        "API -1",
    ]
