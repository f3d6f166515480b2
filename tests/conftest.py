"""Fixtures shared by all tests: real brokers of either make, started once per worker.

`ottla_process` is our broker under the real command, `apache_kafka` a real Apache Kafka 4.4.0. A test of
behaviour takes `either_broker` and runs once on each, so that both must agree with what it asserts; for what
Kafka 4 dropped there are `apache_kafka_3` and `either_old_broker`.
"""

from __future__ import annotations

import gc
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import HealthCheck, settings

from tests.support.kafka_process import KafkaProcess
from tests.support.machine import TOOLS, may_do_without
from tests.support.ottla_process import OttlaProcess
from tests.support.zookeeper_process import ZookeeperProcess

TESTS = Path(__file__).parent

# How fast an example is made or runs says nothing on a busy machine, and every run tries the same examples.
settings.register_profile(
    "ottla", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ottla")

# Folders whose fixtures are dear and must be made once: all their tests run on one worker, whichever it is.
HAVE_A_WORKER = ("clients", "packaging", "spark", "tidy", "tools")

LONGEST_ID = 100

ZOOKEEPER = "zookeeper"  # fixture, mark and group
LONGEST_SESSION_MS = 40_000

JAVA_FIXTURES = ("apache_kafka", "either_broker", "apache_kafka_3", "either_old_broker")


def pytest_configure() -> None:
    """Ctrl-C ends what tests start also where the whole run was started in a way that ignores it (nohup).

    The handler is not Python's own one: asyncio would replace that for each loop that runs, and the signal
    module writes the whole task out each time, with all that it holds.
    """
    signal.signal(signal.SIGINT, _interrupted)


def _interrupted(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What collecting makes stays until the end: the collector need not look at it again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in the same hook
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks what needs Java, keeps its users on one worker, leaves tools' tests out where allowed."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if any(name in fixtures for name in JAVA_FIXTURES):
            item.add_marker(pytest.mark.kafka)
        if ZOOKEEPER in fixtures:
            item.add_marker(pytest.mark.zookeeper)
        folder, _, file = str(item.path).removeprefix(f"{TESTS}/").partition("/")
        kinds = (kind for kind in ("spark", "kafka", ZOOKEEPER) if item.get_closest_marker(kind))
        group = folder if folder in HAVE_A_WORKER else next(kinds, None)
        if group is None and folder == "unit":
            group = file  # what pytest-xdist does for each result takes longer, the more groups there are
        if group is not None and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(group))
    for tool in filter(may_do_without, TOOLS):
        left_out = [item for item in items if item.get_closest_marker(tool.marker)]
        items[:] = [item for item in items if not item.get_closest_marker(tool.marker)]
        if left_out:
            config.hook.pytest_deselected(items=left_out)


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """A long value is named by its argument: the ids of all tests go through pytest-xdist again and again."""
    return argname if isinstance(val, str | bytes) and len(val) > LONGEST_ID else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for tool in TOOLS:
        if tool.find() is None:
            terminalreporter.write_line(f"{tool.hint}.", yellow=True)


@pytest.fixture(scope="session")
def apache_kafka() -> Iterator[KafkaProcess]:
    """A real Apache Kafka 4.4.0, shared: use topics of your own."""
    with KafkaProcess() as broker:
        yield broker


@pytest.fixture(scope="session")
def apache_kafka_3() -> Iterator[KafkaProcess]:
    """A real Apache Kafka 3.9.2, shared: use topics of your own."""
    with KafkaProcess(version="3.9.2") as broker:
        yield broker


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[ZookeeperProcess]:
    """A real ZooKeeper, shared: use a chroot of your own, and let it run when you are done. Sessions may be
    longer than any process stands still.
    """
    with ZookeeperProcess(max_session_ms=LONGEST_SESSION_MS) as server:
        yield server


@pytest.fixture(scope="session")
def ottla_process() -> Iterator[OttlaProcess]:
    """Our broker, started by the `ottla serve` command, shared: use topics of your own."""
    config = {
        "group.initial.rebalance.delay.ms": "0",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    }
    with OttlaProcess(config) as broker:
        yield broker


@pytest.fixture(params=["ottla_process", "apache_kafka"])
def either_broker(request: pytest.FixtureRequest) -> OttlaProcess | KafkaProcess:
    """Each broker in turn."""
    broker: OttlaProcess | KafkaProcess = request.getfixturevalue(request.param)
    return broker


@pytest.fixture(params=["ottla_process", "apache_kafka_3"])
def either_old_broker(request: pytest.FixtureRequest) -> OttlaProcess | KafkaProcess:
    """Our broker, then the last Kafka that speaks the versions which 4.0 removed."""
    broker: OttlaProcess | KafkaProcess = request.getfixturevalue(request.param)
    return broker
