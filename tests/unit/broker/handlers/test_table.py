"""The table of handlers covers its versions: the codec knows every version that is advertised."""

from __future__ import annotations

import pytest

from broker.handlers.table import HANDLERS, HOT_VERSIONS, SERVED_VERSIONS
from protocol import messages as m
from protocol.api_keys import ApiKey


@pytest.mark.parametrize("key", SERVED_VERSIONS, ids=lambda key: key.name)
def test_every_advertised_version_has_a_codec(key: ApiKey) -> None:
    low, high = SERVED_VERSIONS[key]
    request, response = m.request_class(key), m.response_class(key)
    assert request.MIN_VERSION <= low <= high <= request.MAX_VERSION
    assert response.MIN_VERSION <= low <= high <= response.MAX_VERSION


def test_hot_apis_are_served_apart() -> None:
    assert not HANDLERS.keys() & HOT_VERSIONS.keys()
    assert SERVED_VERSIONS.keys() == HANDLERS.keys() | HOT_VERSIONS.keys()
    assert list(SERVED_VERSIONS) == sorted(SERVED_VERSIONS)
