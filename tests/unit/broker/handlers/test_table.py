"""The table of handlers covers its versions: the codec knows every version that is advertised."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from broker.handlers.table import CLUSTER, HANDLERS, HOT_VERSIONS, LATE, SERVED_VERSIONS
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


@pytest.mark.parametrize("key", [*LATE, *CLUSTER], ids=lambda key: key.name)
def test_a_late_handler_is_there_when_it_is_called(key: ApiKey) -> None:
    name, low, high = (LATE | CLUSTER)[key]
    module = importlib.import_module(f"broker.handlers.{name}")
    assert callable(module.handle)
    assert (getattr(module, "MIN_VERSION", low), getattr(module, "MAX_VERSION", high)) == (low, high)


def test_a_broker_without_groups_does_not_import_their_coordinator() -> None:
    program = "import broker.server, sys; print([n for n in sys.modules if n.startswith('coordinator')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
