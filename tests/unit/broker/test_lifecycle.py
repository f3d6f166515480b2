import asyncio
import gc
import logging
import os
import signal

import pytest

from broker.config.load import load_config
from broker.lifecycle import main, serve, tune_collector
from broker.metadata_dir import CannotStart
from broker.server import Broker
from replication.metadata.payloads import BadPayload
from runtime.system import run


@pytest.fixture(autouse=True)
def collector():
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


def config(path, *more):
    return load_config(None, [f"log.dirs={path}", "listeners=PLAINTEXT://127.0.0.1:0", "node.id=7", *more])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_broker_in_good_order_with_code_0(tmp_path, caplog, number):
    caplog.set_level(logging.INFO)
    addresses = []

    def ready(found):
        addresses.extend(found)
        os.kill(os.getpid(), number)

    assert main(config(tmp_path), ready) == 0
    [(name, host, port)] = addresses
    assert (name, host) == ("PLAINTEXT", "127.0.0.1")
    assert port > 0
    lines = [record.getMessage() for record in caplog.records]
    assert lines.index("[KafkaServer id=7] started") < lines.index("[KafkaServer id=7] shut down completed")


def test_a_start_that_is_refused_says_why_in_one_line_and_ends_with_code_1(tmp_path, caplog):
    (tmp_path / "meta.properties").write_text("cluster.id=c\nnode.id=3\nversion=1\n")
    assert main(config(tmp_path)) == 1
    [line] = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert "The broker cannot start" in line
    assert "belongs to node 3, this broker is node 7" in line


def test_damaged_metadata_is_refused_in_one_line(tmp_path, caplog, monkeypatch):
    async def damaged(self):
        raise BadPayload("/cluster/id", "not a JSON object")

    monkeypatch.setattr(Broker, "start", damaged)
    assert main(config(tmp_path)) == 1
    [line] = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert "/cluster/id is damaged" in line


def test_a_signal_while_it_starts_ends_the_process_at_once(tmp_path, monkeypatch):
    codes, told = [], asyncio.Event()

    def end(code):
        codes.append(code)
        told.set()

    async def slow(self):
        os.kill(os.getpid(), signal.SIGTERM)
        await told.wait()
        raise CannotStart("a real process would be gone")

    monkeypatch.setattr("os._exit", end)
    monkeypatch.setattr(Broker, "start", slow)
    assert main(config(tmp_path)) == 1
    assert codes == [128 + signal.SIGTERM]


def test_what_exists_at_start_is_left_alone_by_the_collector():
    tune_collector()
    assert gc.get_freeze_count() > 0
    young, middle, _ = gc.get_threshold()
    assert young > 700
    assert young * (middle + 1) <= 50_000  # what a collection of the middle generation looks at


def test_who_holds_the_life_of_a_broker_may_stop_it_more_than_once(tmp_path, monkeypatch):
    codes, lives = [], []
    monkeypatch.setattr("os._exit", codes.append)

    def begun(life):
        lives.append(life)
        life.stop(5)  # while it starts: a real process would be gone
        life.stopping.clear()

    def ready(_):
        lives[0].stop()
        lives[0].stop()

    loaded = config(tmp_path)
    assert run(lambda env: serve(loaded, env, ready, begun)) == 0
    assert codes == [5]
