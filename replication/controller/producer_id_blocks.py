"""Blocks of producer ids for brokers (KIP-730). A block is stored before it is given out, so no id is ever
given twice; those of a block that was not used up are lost.
"""

from __future__ import annotations

from protocol.errors import ErrorCode
from replication.controller.reign import Reign
from replication.metadata import paths, payloads
from replication.metadata.store import BadVersion, Create, NodeExists, Put


async def allocate(reign: Reign, broker: int, broker_epoch: int) -> tuple[ErrorCode, int, int]:
    """(error, first id, how many) for a broker, which must be registered with this epoch."""
    known = reign.state.brokers.get(broker)
    if known is None:
        return ErrorCode.BROKER_ID_NOT_REGISTERED, 0, 0
    if known.epoch != broker_epoch:
        return ErrorCode.STALE_BROKER_EPOCH, 0, 0
    ledger, size, path = (
        reign.office.ledger,
        reign.office.settings.producer_id_block_size,
        paths.PRODUCER_ID_BLOCK,
    )
    while True:
        node = await ledger.get(path)
        first = 0
        if node is not None and node.value:
            first = payloads.decode_producer_id_block(path, node.value)[2] + 1
        block = payloads.encode_producer_id_block(broker, first, first + size - 1)
        try:
            await ledger.write([Create(path, block) if node is None else Put(path, block, node.version)])
        except (BadVersion, NodeExists):
            continue  # a broker of before inter.broker.protocol.version 3.0 took that block itself
        return ErrorCode.NONE, first, size
