"""Blocks of producer ids."""

from __future__ import annotations

from protocol.errors import ErrorCode
from replication.controller import producer_id_blocks
from replication.metadata import paths, payloads
from replication.metadata.store import Put
from tests.unit.replication.controller.desk import Desk, story


@story
async def test_blocks_follow_each_other_and_are_stored_first():
    at = await Desk.with_topics()
    epoch = at.state.brokers[2].epoch
    assert await producer_id_blocks.allocate(at.reign, 2, epoch) == (ErrorCode.NONE, 0, 1000)
    path = paths.PRODUCER_ID_BLOCK
    assert payloads.decode_producer_id_block(path, at.tree.nodes[path].value) == (2, 0, 999)
    assert await producer_id_blocks.allocate(at.reign, 2, epoch) == (ErrorCode.NONE, 1000, 1000)
    await at.next_epoch()
    assert await producer_id_blocks.allocate(at.reign, 2, epoch) == (ErrorCode.NONE, 2000, 1000)


@story
async def test_only_registered_brokers_get_one():
    at = await Desk.with_topics()
    epoch = at.state.brokers[2].epoch
    for wrong in (epoch - 1, epoch + 1):
        assert (await producer_id_blocks.allocate(at.reign, 2, wrong))[0] is ErrorCode.STALE_BROKER_EPOCH
    assert (await producer_id_blocks.allocate(at.reign, 9, 1))[0] is ErrorCode.BROKER_ID_NOT_REGISTERED


@story
async def test_a_block_that_an_old_broker_took_itself_is_passed_over():
    at = await Desk.with_topics()
    epoch, get = at.state.brokers[2].epoch, at.ledger.get

    async def late(path):
        node = await get(path)
        at.ledger.get = get
        await at.store.multi([Put(path, payloads.encode_producer_id_block(7, 0, 999))])
        return node

    at.ledger.get = late
    assert await producer_id_blocks.allocate(at.reign, 2, epoch) == (ErrorCode.NONE, 1000, 1000)


@story
async def test_a_missing_node_is_made():
    at = await Desk.with_topics()
    await at.store.delete(paths.PRODUCER_ID_BLOCK)
    assert (await producer_id_blocks.allocate(at.reign, 2, at.state.brokers[2].epoch))[1] == 0
