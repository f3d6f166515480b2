import asyncio
import dataclasses
import os

from broker import upkeep
from broker.config.broker_config import BrokerConfig
from broker.upkeep import Upkeep
from runtime.blocking import BlockingBusy
from storage import checkpoints, names
from storage.flush_job import FlushJob
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
            async with asyncio.timeout(60):
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
        work = Upkeep(ctx.env, ctx.config, ctx.logs)
        broker.run(work._checkpoint(names.HIGH_WATERMARKS))
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

            timed = Upkeep(ctx.env, ctx.config, ctx.logs)
            timed._every("something that is done once", 0, note)
            timed._every("something that fails", 1, work)
            async with asyncio.timeout(60):
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


def test_retention_and_the_removal_of_its_files_go_by_the_clock(tmp_path):
    with NetBroker(tmp_path) as broker:
        broker.create("orders", 1)
        for _ in range(3):
            broker.connect().call(produce_request("orders", 0, [b"a"]), 9)
        ctx = broker.ctx
        log = ctx.logs.get("orders", 0)
        log.update_config(dataclasses.replace(log.config, retention_ms=0, file_delete_delay_ms=0))
        often = {"log.retention.check.interval.ms": "10", "log.initial.task.delay.ms": "0"}

        async def until_empty():
            Upkeep(ctx.env, BrokerConfig({**ctx.config.static, **often}), ctx.logs).start()
            async with asyncio.timeout(60):
                while any(name.startswith("0" * 20) for name in os.listdir(log.local.directory)):
                    await ctx.env.run_blocking(os.listdir, log.local.directory)

        broker.run(until_empty())
        assert (log.start_offset, log.end_offset, log.size_bytes) == (3, 3, 0)


def test_a_sync_that_somebody_waits_for_is_made_however_busy_the_threads_are(tmp_path, monkeypatch):
    with NetBroker(tmp_path) as broker:
        broker.create("orders", 1)
        broker.connect().call(produce_request("orders", 0, [b"a"]), 9)
        ctx, told = broker.ctx, []
        log = ctx.logs.get("orders", 0)
        monkeypatch.setattr(upkeep, "BUSY_SECONDS", 0.0)
        refusals = iter([BlockingBusy("busy"), BlockingBusy("busy")])
        real = ctx.env.blocking.submit

        def submit(function, *args):
            refusal = next(refusals, None)
            if refusal is not None:
                raise refusal
            return real(function, *args)

        monkeypatch.setattr(ctx.env.blocking, "submit", submit)
        work = Upkeep(ctx.env, ctx.config, ctx.logs)
        broker.run(work._sync(FlushJob(log, 1)))
        assert log.recovery_point == 0  # nobody waits: the next one covers it
        refusals = iter([BlockingBusy("busy"), BlockingBusy("busy")])
        broker.run(work._sync(FlushJob(log, 1, ended=lambda job, error: told.append(error))))
        assert log.recovery_point == 1
        assert told == [None]


def test_work_on_every_log_lets_the_loop_have_its_turns(tmp_path, monkeypatch):
    with NetBroker(tmp_path) as broker:
        ctx, seen = broker.ctx, []
        monkeypatch.setattr(upkeep, "STEP_SECONDS", 0.0)

        async def work():
            def steps():
                for number in range(3):
                    asyncio.get_running_loop().call_soon(seen.append, f"other {number}")
                    seen.append(f"step {number}")
                    yield 1

            await Upkeep(ctx.env, ctx.config, ctx.logs)._in_steps(steps())

        broker.run(work())
        assert seen == ["step 0", "other 0", "step 1", "other 1", "step 2", "other 2"]
