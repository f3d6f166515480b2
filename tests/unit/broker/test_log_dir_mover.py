"""Moves between log directories: what is refused, replaced and called off, and how they end (KIP-113)."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker.log_dir_mover import RATE, LogDirMover
from protocol.errors import ErrorCode
from protocol.records.batch import batches, read_header
from storage.log_manager import LogManager
from tests.support.handler_broker import HandlerBroker


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[HandlerBroker]:
    with HandlerBroker(tmp_path, log_dirs=3) as running:
        running.create("t", 1)
        for number in range(5):
            running.produce("t", 0, [(number, b"x" * 100)])
        yield running


def logs(broker: HandlerBroker) -> LogManager:
    return broker.ctx.logs


def where(broker: HandlerBroker) -> str:
    return Path(broker.ctx.logs.get("t", 0).directory.path).name


def wait(broker: HandlerBroker, condition: Callable[[], bool]) -> None:
    async def until() -> None:
        async with asyncio.timeout(60):
            while True:
                if condition():
                    return
                await asyncio.sleep(0.005)

    broker.runner.run(until())


def alter(broker: HandlerBroker, number: int, topic: str = "t", index: int = 0) -> ErrorCode:
    async def ask() -> ErrorCode:
        return broker.ctx.mover.alter(topic, index, broker.paths[number])

    return broker.runner.run(ask())


def slow(broker: HandlerBroker, rate: int) -> None:
    broker.config.apply_dynamic({RATE: str(rate)}, {})


def test_a_partition_moves_and_is_served_there(broker: HandlerBroker) -> None:
    assert where(broker) == "data0"
    assert alter(broker, 1) == ErrorCode.NONE
    wait(broker, lambda: where(broker) == "data1")
    partition = broker.ctx.replicas.get("t", 0)
    assert partition.log is logs(broker).get("t", 0)
    broker.produce("t", 0, [(9, b"more")])
    data = partition.log.read(0, 1 << 20, 6).to_bytes()
    assert [read_header(data, at).base_offset for at, _ in batches(data)] == [0, 1, 2, 3, 4, 5]
    assert len(logs(broker).futures) == 0
    assert [len(each.logs) for each in logs(broker).dirs] == [0, 1, 0]


def test_several_at_once_and_back(broker: HandlerBroker) -> None:
    broker.create("u", 6)
    for index in range(6):
        broker.produce("u", index, [(1, b"%d" % index)])
    for number in (2, 0):
        for index in range(6):
            assert alter(broker, number, "u", index) == ErrorCode.NONE
        path = broker.paths[number]
        wait(broker, lambda path=path: all(logs(broker).get("u", i).directory.path == path for i in range(6)))
    assert [logs(broker).get("u", index).end_offset for index in range(6)] == [1] * 6


def test_refusals(broker: HandlerBroker) -> None:
    mover = broker.ctx.mover
    assert mover.alter("t", 0, "/nowhere") == ErrorCode.LOG_DIR_NOT_FOUND
    assert mover.alter("t", 0, f"{broker.paths[1]}/") == ErrorCode.LOG_DIR_NOT_FOUND
    assert alter(broker, 1, "t", 4) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert alter(broker, 1, "x" * 249) == ErrorCode.INVALID_TOPIC_EXCEPTION
    logs(broker).dirs[2].fail(OSError(errno.EIO, "gone"))
    assert alter(broker, 2) == ErrorCode.KAFKA_STORAGE_ERROR
    logs(broker).dirs[0].fail(OSError(errno.EIO, "gone"))
    assert alter(broker, 1) == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_cordoned_directory_takes_none(broker: HandlerBroker) -> None:
    broker.config.apply_dynamic({}, {"cordoned.log.dirs": broker.paths[1]})
    assert [each.cordoned for each in logs(broker).dirs] == [False, True, False]
    assert alter(broker, 1) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert alter(broker, 1, "later") == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    broker.config.apply_dynamic({}, {"cordoned.log.dirs": "*"})
    assert [each.cordoned for each in logs(broker).dirs] == [True] * 3
    broker.config.apply_dynamic({}, {})
    assert alter(broker, 1) == ErrorCode.NONE


def test_the_same_again_changes_nothing_another_directory_replaces_the_own_one_cancels(
    broker: HandlerBroker,
) -> None:
    slow(broker, 1)
    assert alter(broker, 1) == ErrorCode.NONE
    first = logs(broker).futures.get("t", 0)
    assert alter(broker, 1) == ErrorCode.NONE
    assert logs(broker).futures.get("t", 0) is first
    assert alter(broker, 2) == ErrorCode.NONE
    second = logs(broker).futures.get("t", 0)
    assert second.directory.path == broker.paths[2]
    assert first.closed
    assert alter(broker, 0) == ErrorCode.NONE
    assert logs(broker).futures.get("t", 0) is None
    assert second.closed
    slow(broker, 1 << 40)
    wait(broker, lambda: broker.ctx.mover._workers == 0)
    assert where(broker) == "data0"


def test_the_throttle_holds_a_move_until_it_is_lifted(broker: HandlerBroker) -> None:
    for _ in range(20):
        broker.produce("t", 0, [(1, b"x" * 10_000)])
    slow(broker, 1000)
    assert alter(broker, 1) == ErrorCode.NONE
    future = logs(broker).futures.get("t", 0)
    wait(broker, lambda: future.end_offset > 0)
    assert future.end_offset < 25
    assert where(broker) == "data0"
    slow(broker, 1 << 40)
    wait(broker, lambda: where(broker) == "data1")


def test_a_moving_partition_is_not_cleaned(broker: HandlerBroker) -> None:
    mover = broker.ctx.mover
    slow(broker, 1)
    assert alter(broker, 1) == ErrorCode.NONE
    assert mover._cleaner._paused == {("t", 0): 1}
    assert alter(broker, 0) == ErrorCode.NONE
    slow(broker, 1 << 40)
    wait(broker, lambda: not mover._cleaner._paused)


def test_writers_do_not_keep_a_move_from_its_end(broker: HandlerBroker) -> None:
    async def write_all_the_time() -> int:
        written = 0
        async with asyncio.timeout(60):
            while where(broker) == "data0":
                broker.produce("t", 0, [(1, b"y" * 200)])
                written += 1
                await asyncio.sleep(0)
        return written

    for _ in range(50):
        broker.produce("t", 0, [(1, b"x" * 10_000)])
    assert alter(broker, 1) == ErrorCode.NONE
    written = broker.runner.run(write_all_the_time())
    log = logs(broker).get("t", 0)
    assert log.end_offset == 55 + written
    assert log.high_watermark == log.end_offset


def test_with_the_topic_the_move_ends(broker: HandlerBroker) -> None:
    slow(broker, 1)
    assert alter(broker, 1) == ErrorCode.NONE
    logs(broker).delete("t", 0)
    slow(broker, 1 << 40)
    wait(broker, lambda: broker.ctx.mover._workers == 0)
    assert len(logs(broker).futures) == 0


def test_a_full_target_is_tried_again_and_a_failed_one_ends_the_move(
    broker: HandlerBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow(broker, 1)
    assert alter(broker, 1) == ErrorCode.NONE
    handle = logs(broker).futures.get("t", 0).active.handle
    append, refused = type(handle).append, []

    def full(self: object, parts: object) -> None:
        if self is handle and not refused:
            refused.append(parts)
            raise OSError(errno.ENOSPC, "no space")
        append(self, parts)

    monkeypatch.setattr(type(handle), "append", full)
    slow(broker, 1 << 40)
    wait(broker, lambda: where(broker) == "data1")
    assert len(refused) == 1
    assert not logs(broker).dirs[1].offline
    slow(broker, 1)
    assert alter(broker, 2) == ErrorCode.NONE
    logs(broker).dirs[2].fail(OSError(errno.EIO, "gone"))
    slow(broker, 1 << 40)
    wait(broker, lambda: broker.ctx.mover._workers == 0)
    assert where(broker) == "data1"


def test_moves_go_on_after_a_restart_and_copies_of_no_partition_go(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path, log_dirs=2) as broker:
        for name in ("t", "gone"):
            broker.create(name)
            number = 1 - broker.paths.index(logs(broker).get(name, 0).directory.path)
            slow(broker, 1)
            for _ in range(5):
                broker.produce(name, 0, [(1, b"x")])
            assert alter(broker, number, name) == ErrorCode.NONE
        target = broker.ctx.logs.futures.get("t", 0).directory.path
        tree = broker.tree
    with HandlerBroker(tmp_path, tree=tree, log_dirs=2) as broker:
        assert len(logs(broker).futures) == 2
        image = broker.ctx.image.with_topics((), removed=["gone"])
        broker.ctx.holder.current = image  # a deletion that a crash cut short
        broker.ctx.replicas._by_name.pop(("gone", 0))

        async def resume() -> None:
            broker.ctx.mover.resume()

        broker.runner.run(resume())
        wait(broker, lambda: logs(broker).get("t", 0).directory.path == target)
        assert len(logs(broker).futures) == 0


def test_lines_tell_what_was_refused(broker: HandlerBroker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    broker.ctx.mover.alter("t", 0, "/nowhere")
    assert "Unable to alter log dirs for t-0 to /nowhere: LOG_DIR_NOT_FOUND" in caplog.text
    assert isinstance(broker.ctx.mover, LogDirMover)
