"""Controlled shutdown, the side of the broker that goes (KIP-188).

The controller is asked to move leaderships away until this broker leads nothing that has other replicas. It
is asked a few times; then the broker stops all the same, and the others notice by its registration.

The controller's answer may come before its orders do. Kafka's brokers close their connections then, under
producers that wait for acks=all; ours go on until they have been told that they lead no more, and all who
wait have heard so. Who heard it asks for the new leader at once, maybe of a broker that has not been told
yet, and asks here again after its retry.backoff.ms. A connection that is closed by then makes librdkafka wait
for a second, so a broker that led something stays a moment longer.

When all brokers stop at once the last ones find nobody to take over. Kafka's wait out their pauses; ours go
as soon as no other broker is left.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.cluster.channel import ChannelLost
from replication.cluster.controller_client import ControllerClient

LOOK_EVERY_S: Final = 0.1
ORDERS_WITHIN_S: Final = 1.0
ORDERS_LOOK_S: Final = 0.005
STAY_S: Final = 0.25

_log = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class DepartureSettings:
    """controlled.shutdown.max.retries and controlled.shutdown.retry.backoff.ms. `limit_s` bounds all of it: a
    controller that hangs must not keep a broker from stopping in the time that a service manager gives it.
    """

    attempts: int = 3
    backoff_ms: int = 5000
    limit_s: float = 20.0


async def depart(
    client: ControllerClient,
    broker_id: int,
    broker_epoch: Callable[[], int],
    settings: DepartureSettings,
    is_last: Callable[[], bool],
    leads: Callable[[], bool],
) -> bool:
    """Whether the controller has taken everything over. Never raises for what the other side does. `is_last`
    tells whether no other broker is registered, `leads` whether this one still has a role to hand over.
    """
    led = leads()
    try:
        async with asyncio.timeout(settings.limit_s):
            for attempt in range(settings.attempts):
                if attempt:
                    await _back_off(settings.backoff_ms / 1000, is_last)
                if is_last():
                    _log.info("No other broker is left that could take over")
                    return False
                request = m.ControlledShutdownRequest(broker_id=broker_id, broker_epoch=broker_epoch())
                if await _is_released(client, request):
                    await _until_told(leads)
                    if led:
                        await asyncio.sleep(STAY_S)
                    return True
    except TimeoutError:
        _log.info("The controller has not moved everything away within %g s", settings.limit_s)
    _log.warning("Proceeding to do an unclean shutdown as all the controlled shutdown attempts failed")
    return False


async def _is_released(client: ControllerClient, request: m.ControlledShutdownRequest) -> bool:
    """Ask once; whether this broker leads nothing any more that others could lead."""
    try:
        answer: m.ControlledShutdownResponse = await client.ask(request)
    except ChannelLost as lost:
        _log.info("The controller was not reached for a controlled shutdown: %s", lost)
        return False
    if answer.error_code == ErrorCode.NONE and not answer.remaining_partitions:
        _log.info("Controlled shutdown request returned successfully")
        return True
    _log.info(
        "Controlled shutdown is not complete: %s, %d partition(s) are still led here",
        ErrorCode(answer.error_code).name,
        len(answer.remaining_partitions),
    )
    return False


async def _back_off(pause_s: float, is_last: Callable[[], bool]) -> None:
    while pause_s > 0 and not is_last():
        await asyncio.sleep(min(LOOK_EVERY_S, pause_s))
        pause_s -= LOOK_EVERY_S


async def _until_told(leads: Callable[[], bool]) -> None:
    left_s = ORDERS_WITHIN_S
    while leads() and left_s > 0:
        await asyncio.sleep(ORDERS_LOOK_S)
        left_s -= ORDERS_LOOK_S
