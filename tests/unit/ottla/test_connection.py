"""One blocking connection, against a broker that answers by script."""

from __future__ import annotations

import pytest

from ottla.connection import ClientError, Connection
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from tests.unit.ottla.scripted_broker import ScriptedBroker

METADATA = {ApiKey.METADATA: (0, 9)}


def connect(broker: ScriptedBroker, timeout_s: float = 5.0) -> Connection:
    return Connection("127.0.0.1", broker.port, "test", timeout_s)


def test_it_negotiates_and_speaks_the_newest_version_both_know() -> None:
    answer = m.MetadataResponse(cluster_id="here", controller_id=1)
    with ScriptedBroker(lambda request: answer, METADATA) as broker, connect(broker) as connection:
        assert connection.version_for(ApiKey.METADATA) == 9
        assert connection.call(m.MetadataRequest(topics=None)).cluster_id == "here"
        assert type(broker.requests[-1]) is m.MetadataRequest


def test_an_api_that_the_broker_lacks_is_named() -> None:
    with ScriptedBroker(lambda request: None, METADATA) as broker, connect(broker) as connection:
        assert not connection.supports(ApiKey.FETCH)
        with pytest.raises(ClientError, match="Fetch"):
            connection.version_for(ApiKey.FETCH)
        with pytest.raises(ClientError, match="Fetch"):
            connection.call(m.FetchRequest())


def test_a_broker_that_hangs_up_is_told_so() -> None:
    with (
        ScriptedBroker(lambda request: None, METADATA) as broker,
        connect(broker) as connection,
        pytest.raises(ClientError, match="closed the connection without an answer"),
    ):
        connection.call(m.MetadataRequest(topics=None))


def test_a_broker_that_is_not_there_is_named() -> None:
    with pytest.raises(ClientError, match=r"no broker answers at 127\.0\.0\.1:1 "):
        Connection("127.0.0.1", 1, "test", 5.0)


def test_only_a_brokers_own_refusal_can_be_retriable() -> None:
    assert not ClientError("no answer").retriable
    assert ClientError("later", ErrorCode.NOT_LEADER_OR_FOLLOWER).retriable
    assert not ClientError("never", ErrorCode.INVALID_TOPIC_EXCEPTION).retriable
