"""`ottla serve` as a process: where its settings come from, how it ends."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.support.ottla_process import CHECKOUT, OttlaProcess
from tests.support.waiting import wait_until
from tests.support.wire import Wire


def serve(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ottla", "serve", *arguments],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_file_is_read_and_overrides_win(tmp_path) -> None:
    properties = tmp_path / "server.properties"
    properties.write_text("node.id=7\nnum.partitions=3\nlisteners=PLAINTEXT://127.0.0.1:1\n")
    broker = OttlaProcess(directory=tmp_path / "run")
    command = [*broker.command(), str(properties)]
    broker.command = lambda: command
    with broker, Wire(broker.bootstrap_servers) as wire:
        assert wire.versions()
        assert "[KafkaServer id=7] started" in broker.output()


def test_a_newcomer_is_told_what_to_type_next() -> None:
    with OttlaProcess() as broker:
        hint = f"topics --bootstrap-server {broker.bootstrap_servers} --create --topic hello"
        wait_until(lambda: hint in broker.output(), "the hint")


def test_sigterm_ends_it_with_0() -> None:
    with OttlaProcess() as broker:
        assert broker.stop() == 0
        assert "[KafkaServer id=1] shut down completed" in broker.output()


def test_ctrl_c_ends_it_with_0() -> None:
    with OttlaProcess() as broker:
        process = broker.process
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--override", "num.partitions=x"), "num.partitions"),
        (("--override", "nothing"), "--override takes key=value"),
        (("/nowhere/server.properties",), "/nowhere/server.properties"),
        (("--override", "zookeeper.connect=a:b:c"), "zookeeper.connect"),
        (("--brokers", "2", "--override", "zookeeper.connect=a:2181"), "zookeeper.connect"),
        (("--brokers", "2", "--override", "listeners=PLAINTEXT://:65535"), "ports up to 65536"),
        (("--brokers", "0"), "--brokers"),
    ],
)
def test_a_refused_configuration_ends_it_with_1_and_a_plain_line(arguments, complaint) -> None:
    done = serve(*arguments)
    assert done.returncode == 1
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
