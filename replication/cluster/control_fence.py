"""Which control requests count: those of the newest controller, for this registration of the broker.

A controller that was replaced may still send, and what was meant for the broker before its restart may still
arrive. Both are refused as a whole. The highest controller epoch is remembered from every kind of request.

Control requests change many partitions and let the loop go on in between, so they take turns (`lock`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from protocol.errors import ErrorCode

NO_EPOCH = -1


class ControlRequest(Protocol):
    """What LeaderAndIsr, StopReplica and UpdateMetadata have in common."""

    controller_id: int
    controller_epoch: int
    broker_epoch: int


class ControlFence:
    """The controller epoch of this broker. `broker_epoch` tells its registration (the node's czxid)."""

    def __init__(self, broker_epoch: Callable[[], int]) -> None:
        self._broker_epoch = broker_epoch
        self.controller_epoch = 0
        self.lock = asyncio.Lock()

    def check(self, request: ControlRequest) -> ErrorCode:
        """NONE, 77 or 11; what is accepted sets the epoch. Call it with the lock held."""
        if request.broker_epoch != NO_EPOCH and request.broker_epoch < self._broker_epoch():
            return ErrorCode.STALE_BROKER_EPOCH
        if request.controller_epoch < self.controller_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        self.controller_epoch = request.controller_epoch
        return ErrorCode.NONE
