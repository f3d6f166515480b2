"""Controlled shutdown, the side of the broker that goes (KIP-188).

The controller is asked to move leaderships away until this broker leads nothing that has other replicas. It
is asked a few times; then the broker stops all the same, and the others notice by its registration.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.cluster.channel import ChannelLost
from replication.cluster.controller_client import ControllerClient

_log = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class DepartureSettings:
    """controlled.shutdown.max.retries and controlled.shutdown.retry.backoff.ms."""

    attempts: int = 3
    backoff_ms: int = 5000


async def depart(
    client: ControllerClient, broker_id: int, broker_epoch: Callable[[], int], settings: DepartureSettings
) -> bool:
    """Whether the controller has taken everything over. Never raises for what the other side does."""
    for attempt in range(settings.attempts):
        if attempt:
            await asyncio.sleep(settings.backoff_ms / 1000)
        request = m.ControlledShutdownRequest(broker_id=broker_id, broker_epoch=broker_epoch())
        try:
            answer: m.ControlledShutdownResponse = await client.ask(request)
        except ChannelLost as lost:
            _log.info("The controller was not reached for a controlled shutdown: %s", lost)
            continue
        if answer.error_code == ErrorCode.NONE and not answer.remaining_partitions:
            _log.info("Controlled shutdown request returned successfully")
            return True
        _log.info(
            "Controlled shutdown is not complete: %s, %d partition(s) are still led here",
            ErrorCode(answer.error_code).name,
            len(answer.remaining_partitions),
        )
    _log.warning("Proceeding to do an unclean shutdown as all the controlled shutdown attempts failed")
    return False
