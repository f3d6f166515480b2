"""DescribeCluster: protocol.md 4.3, C1."""

from __future__ import annotations

from dataclasses import replace

import pytest

from protocol import messages as m
from tests.support.handler_broker import HandlerBroker

Request = m.DescribeClusterRequest


@pytest.mark.parametrize("version", range(3))
def test_the_cluster(broker: HandlerBroker, version: int) -> None:
    answer = broker.call(Request(), version, "EXTERNAL")
    assert (answer.error_code, answer.error_message, answer.endpoint_type) == (0, None, 1)
    assert answer.cluster_id == broker.ctx.image.cluster_id
    assert answer.controller_id == 1
    (known,) = answer.brokers
    assert (known.broker_id, known.host, known.port, known.rack) == (1, "public.test", 19092, "r1")
    assert known.is_fenced is False
    assert answer.cluster_authorized_operations == -(1 << 31)


def test_authorised_operations_when_asked(broker: HandlerBroker) -> None:
    answer = broker.call(Request(include_cluster_authorized_operations=True), 2)
    assert answer.cluster_authorized_operations == 8096


@pytest.mark.parametrize(
    ("kind", "error", "message"),
    [
        (0, 115, "Unsupported endpoint type 0"),
        (2, 114, "The request was sent to an endpoint of type BROKER"),
        (3, 115, "Unsupported endpoint type 3"),
    ],
)
def test_only_brokers_are_here(broker: HandlerBroker, kind: int, error: int, message: str) -> None:
    answer = broker.call(Request(endpoint_type=kind), 1)
    assert answer.error_code == error
    assert answer.error_message.startswith(message)
    assert (answer.controller_id, answer.brokers) == (-1, [])


def test_a_controller_that_is_not_in_the_list(broker: HandlerBroker) -> None:
    broker.ctx.holder.current = replace(broker.ctx.image, controller_id=9)
    assert broker.call(Request(), 0).controller_id == -1
