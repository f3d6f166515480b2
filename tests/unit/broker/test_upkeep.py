import asyncio

from broker.config.broker_config import BrokerConfig
from broker.upkeep import Upkeep
from runtime.blocking import BlockingBusy
from storage import checkpoints, names
from tests.support.net_broker import NetBroker, produce_request

EVERY_10_MS = {
    "replica.high.watermark.checkpoint.interval.ms": "10",
    "log.flush.offset.checkpoint.interval.ms": "10",
    "log.flush.start.offset.checkpoint.interval.ms": "10",
}


def test_checkpoints_follow_the_logs(tmp_path):
    with NetBroker(tmp_path) as broker:
        broker.create("orders", 1)
        broker.connect().call(produce_request("orders", 0, [b"a", b"b"]), 9)
        ctx = broker.ctx
        [directory] = ctx.logs.dirs

        async def until_written():
            Upkeep(ctx.env, BrokerConfig({**ctx.config.static, **EVERY_10_MS}), ctx.logs).start()
            path = directory.path_of(names.HIGH_WATERMARKS)
            async with asyncio.timeout(10):
                while checkpoints.read_offsets(ctx.env.files, path).get(("orders", 0)) != 2:
                    await ctx.env.run_blocking(ctx.env.files.exists, path)

        broker.run(until_written())
        assert not directory.offline


def test_a_disk_that_fails_a_checkpoint_is_taken_out_of_service(tmp_path, monkeypatch):
    with NetBroker(tmp_path) as broker:
        ctx = broker.ctx
        [directory] = ctx.logs.dirs

        def fails(*_):
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(checkpoints, "write_offsets", fails)
        upkeep = Upkeep(ctx.env, ctx.config, ctx.logs)
        broker.run(upkeep._checkpoint(names.HIGH_WATERMARKS, lambda log: log.high_watermark))
        assert directory.offline
        monkeypatch.undo()


def test_work_that_fails_is_tried_again_and_that_of_no_interval_runs_once(tmp_path):
    with NetBroker(tmp_path) as broker:
        ctx, turns, once = broker.ctx, [], []

        async def until_tried_again():
            third = asyncio.Event()

            async def work():
                turns.append(len(turns))
                if len(turns) == 3:
                    third.set()
                raise OSError(28, "No space left on device") if len(turns) == 1 else BlockingBusy("busy")

            async def note():
                once.append(True)

            upkeep = Upkeep(ctx.env, ctx.config, ctx.logs)
            upkeep._every("something that is done once", 0, note)
            upkeep._every("something that fails", 1, work)
            async with asyncio.timeout(10):
                await third.wait()

        broker.run(until_tried_again())
        assert once == [True]


def test_a_file_that_cannot_be_removed_keeps_no_other_from_going(tmp_path, monkeypatch):
    with NetBroker(tmp_path) as broker:
        ctx, gone = broker.ctx, []

        def stays():
            raise PermissionError(1, "Operation not permitted")

        monkeypatch.setattr(ctx.logs, "take_doomed", lambda: [stays, lambda: gone.append("second")])
        broker.run(Upkeep(ctx.env, ctx.config, ctx.logs)._remove_files())
        assert gone == ["second"]
