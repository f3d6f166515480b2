"""ApiVersions: names of client software, destinations, the advertised ranges."""

from __future__ import annotations

import pytest

from broker.handlers.table import HANDLERS, SERVED_VERSIONS
from protocol import messages as m
from protocol.api_keys import ApiKey
from tests.support.handler_broker import HandlerBroker


@pytest.mark.parametrize("version", range(6))
def test_the_table_is_what_is_told(broker: HandlerBroker, version: int) -> None:
    answer = broker.call(
        m.ApiVersionsRequest(client_software_name="test", client_software_version="1.0"), version
    )
    assert answer.error_code == 0
    told = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
    assert told == {int(key): versions for key, versions in SERVED_VERSIONS.items()}
    assert list(told) == sorted(told)
    assert told[ApiKey.PRODUCE] == (0, 13)
    assert told[ApiKey.FETCH] == (0, 18)
    assert [each.name for each in answer.finalized_features] == (
        ["group.version", "share.version", "transaction.version"] if version >= 3 else []
    )


def test_nothing_unbuilt_is_advertised() -> None:
    assert not SERVED_VERSIONS.keys() & {ApiKey.SASL_HANDSHAKE, ApiKey.LEADER_AND_ISR}
    for handler in HANDLERS.values():
        assert handler.max_version <= m.request_class(handler.api_key).MAX_VERSION


@pytest.mark.parametrize(
    ("name", "number", "error"),
    [
        ("apache-kafka-java", "4.4.0", 0),
        ("a", "1", 0),
        ("", "1", 42),
        ("a", "", 42),
        ("a", "1-", 42),
        ("-a", "1", 42),
        ("a b", "1", 42),
        ("a\n", "1", 42),
        ("ä", "1", 42),
    ],
)
def test_software_names_are_checked_from_v3_on(
    broker: HandlerBroker, name: str, number: str, error: int
) -> None:
    request = m.ApiVersionsRequest(client_software_name=name, client_software_version=number)
    for version in (3, 5):
        answer = broker.call(request, version)
        assert answer.error_code == error
        assert (answer.api_keys == []) == (error != 0)
    assert broker.call(m.ApiVersionsRequest(), 2).error_code == 0


def test_a_client_that_meant_another_broker_is_told(broker: HandlerBroker) -> None:
    own = broker.ctx.image.cluster_id
    cases = [
        (None, -1, 0),
        (own, 1, 0),
        (own, 5, 129),
        ("other", 1, 129),
        ("other", 5, 129),
        (None, 1, 42),
        (None, 5, 42),
        (own, -1, 42),
        ("other", -1, 42),
        ("", -1, 42),
    ]
    for cluster_id, node_id, error in cases:
        request = m.ApiVersionsRequest(
            client_software_name="a", client_software_version="1", cluster_id=cluster_id, node_id=node_id
        )
        assert broker.call(request, 5).error_code == error, (cluster_id, node_id)
