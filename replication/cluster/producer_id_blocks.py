"""Blocks of producer ids, asked of the controller (AllocateProducerIds, KIP-730)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.cluster.channel import ChannelLost
from replication.cluster.controller_client import ControllerClient
from replication.controller.outcomes import NoBlock

RETRY_S: Final = 0.05


class ProducerIdBlocks:
    """Brings the next block as (first id, how many)."""

    def __init__(
        self, client: ControllerClient, broker_id: int, broker_epoch: Callable[[], int], timeout_s: float
    ) -> None:
        self._client = client
        self._broker_id = broker_id
        self._broker_epoch = broker_epoch
        self._timeout_s = timeout_s

    async def allocate(self) -> tuple[int, int]:
        """A block that is this broker's alone. Raises NoBlock."""
        try:
            async with asyncio.timeout(self._timeout_s):
                while True:
                    block = await self._ask()
                    if block is not None:
                        return block
                    await asyncio.sleep(RETRY_S)
        except TimeoutError:
            raise NoBlock("the controller gave no block of producer ids") from None

    async def _ask(self) -> tuple[int, int] | None:
        request = m.AllocateProducerIdsRequest(broker_id=self._broker_id, broker_epoch=self._broker_epoch())
        try:
            answer: m.AllocateProducerIdsResponse = await self._client.ask(request)
        except ChannelLost:
            return None
        if answer.error_code != ErrorCode.NONE:
            return None
        return answer.producer_id_start, answer.producer_id_len
