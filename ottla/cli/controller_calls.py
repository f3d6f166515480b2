"""Requests that only the controller of a cluster answers: found by metadata, and again when it moves."""

from __future__ import annotations

import time
from typing import Any

from ottla.client import ClientError, KafkaClient
from protocol import messages as m
from protocol.errors import ErrorCode

ATTEMPTS = 10
PAUSE_S = 0.3


def ask_controller(client: KafkaClient, request: m.Message) -> Any:
    """The answer of the controller; that of the last one asked where it moves on and on."""
    for attempt in range(ATTEMPTS):
        metadata: m.MetadataResponse = client.call(m.MetadataRequest(topics=[]))
        client.nodes = {broker.node_id: (broker.host, broker.port) for broker in metadata.brokers}
        if metadata.controller_id not in client.nodes:
            answer = None
        else:
            answer = client.call(request, metadata.controller_id)
            if answer.error_code != ErrorCode.NOT_CONTROLLER:
                return answer
        if attempt < ATTEMPTS - 1:
            time.sleep(PAUSE_S)
    if answer is None:
        raise ClientError("the cluster has no controller now", ErrorCode.NOT_CONTROLLER)
    return answer
