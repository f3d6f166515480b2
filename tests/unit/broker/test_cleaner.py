import asyncio

import pytest

from broker.cleaner import RECONFIGURABLE, Cleaner
from broker.config.broker_config import BrokerConfig
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from runtime.workers import Workers
from storage.cleaner import session
from storage.log_config import LogConfig
from tests.support.handler_broker import HandlerBroker
from tests.support.logs import START_MS, append, read_records

COMPACTED = LogConfig(segment_bytes=2000, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.01)
QUICK = {"log.cleaner.backoff.ms": "10", "log.cleaner.dedupe.buffer.size": "4194304"}


def cleaner_of(broker, **settings):
    extra = {name.replace("_", "."): value for name, value in settings.items()}
    return Cleaner(
        broker.ctx.env, BrokerConfig({**broker.ctx.config.static, **QUICK, **extra}), broker.ctx.logs
    )


def filled(broker, topic="t", config=COMPACTED, count=60):
    broker.create(topic, 1)
    log = broker.ctx.logs.get(topic, 0)
    log.update_config(config)
    for number in range(count):
        append(log, build_batch([Record(0, START_MS, b"k%d" % (number % 5), b"%d" % number + bytes(80))]))
    log.flush()
    return log


async def until(condition):
    """Other tasks get turns, and the disk a little time, until it is true."""
    async with asyncio.timeout(60):
        await _until(condition)


async def _until(condition):
    loop = asyncio.get_running_loop()
    true = asyncio.Event()

    def look():
        if condition():
            true.set()
        else:
            loop.call_later(0.01, look)

    look()
    await true.wait()


def clean_offset(log):
    return log.directory.clean_offsets.get((log.topic, log.partition))


def test_a_due_log_is_cleaned_in_a_worker(tmp_path):
    with HandlerBroker(tmp_path) as broker:
        log = filled(broker)
        before, active = len(read_records(log)), log.active.base_offset
        cleaner = cleaner_of(broker)

        async def go():
            cleaner.start()
            await until(lambda: clean_offset(log) == active and not cleaner.manager.is_running(("t", 0)))
            await until(lambda: not log.directory.clean_offsets.changed)

        broker.runner.run(go())
        kept = [record for record in read_records(log) if record.offset < active]
        assert [record.offset for record in kept] == list(range(active - 5, active))
        assert before == 60
        assert cleaner.manager.metrics.last[0].end_offset == active
        assert broker.ctx.logs.cleaner_runs
        assert f"t 0 {active}" in (tmp_path / "data0" / "cleaner-offset-checkpoint").read_text()
        assert not list(tmp_path.glob("data0/t-0/*.cleaned"))
        assert not list(tmp_path.glob("data0/t-0/*.swap"))


def test_a_log_that_cannot_be_cleaned_is_set_aside_and_the_others_go_on(tmp_path):
    with HandlerBroker(tmp_path) as broker:
        bad, good = filled(broker, "bad", count=200), filled(broker, "good")
        first = next(iter(bad.local.segments))
        with open(first.path(".log"), "r+b") as file:
            file.seek(70)
            file.write(b"damage")
        cleaner = cleaner_of(broker)

        async def go():
            cleaner.start()
            await until(lambda: clean_offset(good) is not None and cleaner.manager.uncleanable)

        broker.runner.run(go())
        assert cleaner.manager.uncleanable == [("bad", 0)]
        assert cleaner.manager.uncleanable_bytes > 0
        assert clean_offset(bad) is None
        assert not list(tmp_path.glob("data0/bad-0/*.cleaned"))


def test_a_paused_partition_is_left_alone_until_it_is_resumed(tmp_path):
    with HandlerBroker(tmp_path) as broker:
        log, other = filled(broker), filled(broker, "other")
        cleaner = cleaner_of(broker)
        cleaner.manager.pause(("t", 0))

        async def go():
            cleaner.start()
            await until(lambda: clean_offset(other) is not None)
            assert clean_offset(log) is None
            cleaner.manager.resume(("t", 0))
            await until(lambda: clean_offset(log) is not None)

        broker.runner.run(go())


def test_a_pause_breaks_off_what_is_under_way(tmp_path, monkeypatch):
    with HandlerBroker(tmp_path) as broker:
        log = filled(broker)
        cleaner = cleaner_of(broker, log_cleaner_io_max_bytes_per_second="2000")

        async def go():
            cleaner.start()
            await until(lambda: cleaner.manager.is_running(("t", 0)))
            cleaner.manager.pause(("t", 0))
            await until(lambda: not cleaner.manager.is_running(("t", 0)))

        broker.runner.run(go())
        assert clean_offset(log) is None
        assert len(read_records(log)) == 60


def test_new_settings_begin_anew(tmp_path):
    with HandlerBroker(tmp_path) as broker:
        log = filled(broker)
        cleaner = cleaner_of(broker, log_cleaner_io_max_bytes_per_second="2000")

        async def go():
            cleaner.start()
            await until(lambda: cleaner.manager.is_running(("t", 0)))
            cleaner._config.apply_dynamic({"log.cleaner.io.max.bytes.per.second": "1e12"}, {})
            await until(lambda: clean_offset(log) is not None)
            cleaner._config.apply_dynamic({"log.cleaner.threads": "2"}, {})
            await until(lambda: len([task for task in cleaner._tasks if not task.done()]) == 2)

        broker.runner.run(go())
        assert cleaner.settings().memory_bytes == 4194304 // 2


@pytest.mark.parametrize(
    ("name", "value", "what", "before", "after"),
    [
        ("log.cleaner.dedupe.buffer.size", "8388608", "memory_bytes", 2 << 20, 4 << 20),
        ("log.cleaner.io.buffer.load.factor", "0.5", "load_factor", 0.9, 0.5),
        ("log.cleaner.io.buffer.size", "1048576", "window_bytes", 128 << 10, 256 << 10),
        ("log.cleaner.io.max.bytes.per.second", "1000", "bytes_per_second", float("inf"), 500.0),
        ("log.cleaner.threads", "1", "memory_bytes", 2 << 20, 4 << 20),
    ],
)
def test_a_changed_setting_holds_for_the_next_pass(tmp_path, name, value, what, before, after):
    """What there is of memory, buffers and rate is shared by the threads."""
    with HandlerBroker(tmp_path) as broker:
        settings = {"log.cleaner.threads": "2", "log.cleaner.io.max.bytes.per.second": "inf"}
        cleaner = cleaner_of(broker, **settings)
        assert getattr(cleaner.settings(), what) == before
        assert name in RECONFIGURABLE
        cleaner._config.apply_dynamic({name: value}, {})
        assert getattr(cleaner.settings(), what) == after


def test_a_worker_that_dies_costs_one_turn(tmp_path, monkeypatch):
    with HandlerBroker(tmp_path) as broker:
        log, call, crashes = filled(broker), Workers.call, []

        async def dies(workers, function, *args):
            if function is session.clean_group and not crashes:
                crashes.append(True)
                return await call(workers, exit, 3)
            return await call(workers, function, *args)

        monkeypatch.setattr(Workers, "call", dies)
        cleaner = cleaner_of(broker)

        async def go():
            cleaner.start()
            await until(lambda: clean_offset(log) is not None)

        broker.runner.run(go())
        assert crashes
        assert cleaner.manager.uncleanable == []


def test_retention_of_compacted_logs_is_the_cleaners(tmp_path):
    both = LogConfig(segment_bytes=2000, cleanup_policy=("compact", "delete"), retention_ms=1000)
    with HandlerBroker(tmp_path) as broker:
        log = filled(broker, config=both)
        cleaner = cleaner_of(broker)

        async def go():
            cleaner.start()
            await until(lambda: log.start_offset == 60)

        broker.runner.run(go())
        assert read_records(log) == []


@pytest.mark.parametrize("setting", [{"log_cleaner_enable": "false"}])
def test_without_a_cleaner_retention_is_left_to_the_rest(tmp_path, setting):
    with HandlerBroker(tmp_path) as broker:
        cleaner = cleaner_of(broker, **setting)
        cleaner.start()
        assert not broker.ctx.logs.cleaner_runs
        assert cleaner._tasks == []
