"""Requests that only the controller of a cluster answers, with one error code for all of an answer."""

from __future__ import annotations

from typing import Any

from ottla.client import KafkaClient
from protocol import messages as m


def ask_controller(client: KafkaClient, request: m.Message) -> Any:
    """The answer of the controller; that of the last broker asked where there is none for long."""
    return client.call_controller(request, lambda answer: [answer.error_code])
