"""What clients notice when a broker of a cluster goes: how long nothing is acknowledged.

An idempotent librdkafka producer with acks=all and its own defaults sends 500 records a second; the figure is
the longest time between two acknowledgements around the fault. `kill` is kill -9, and the session with
ZooKeeper ends 2 s after that, which is when the others can know. The topic has one partition, so that no
other one's acknowledgements hide the gap.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaError, Message, Producer

from bench.driver import call, connect
from bench.footprint import api_versions_frame
from bench.rounds import Plan, Row, Sample, measure
from bench.three import IDS, Three, rotated
from tests.support.waiting import wait_until

SECTION = "Faults: longest time without an acknowledgement"
BACK_SECTION = "A broker that is killed and started again within its session"
MANY, MANY_ROUNDS = 1000, 2
PAUSE_SECONDS = 0.002
WARM_ACKS, LATER_ACKS = 300, 500
LIMIT_SECONDS = 120.0
PING_SECONDS = 0.005
_numbers = itertools.count(1)


class Acks:
    """A producer in a thread, and when its records were acknowledged (monotonic seconds)."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._topic = topic
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "acks": "all", "log_level": 0}
        )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="acks")
        self.at: list[float] = []
        self.failed = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self.more(WARM_ACKS)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(PAUSE_SECONDS):
            self._producer.produce(self._topic, b"x" * 100, on_delivery=self._told)
            self._producer.poll(0)
        self._producer.flush(LIMIT_SECONDS)

    def _told(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.at.append(time.monotonic())
        else:
            self.failed += 1

    def more(self, count: int) -> None:
        """Wait for so many more."""
        wanted = len(self.at) + count
        wait_until(lambda: len(self.at) >= wanted, "acknowledgements", LIMIT_SECONDS)

    def longest_gap(self, since: float) -> float:
        """In seconds, of the gaps that end after `since`."""
        return max(after - before for before, after in itertools.pairwise(self.at) if after > since)


def rows(sides: Sequence[Three], plan: Plan) -> Iterator[Row]:
    """One kind of fault after the other; in between all brokers are in sync again."""
    faults: tuple[tuple[str, Callable[[Three], Sample]], ...] = (
        ("the leader is killed", partial(kill, controller=False)),
        ("the leader, which is the controller, is killed", partial(kill, controller=True)),
        ("the leader is stopped, controlled", partial(stop, controller=False)),
        ("the leader, the controller, is stopped", partial(stop, controller=True)),
    )
    for label, run in faults:
        row = Row(SECTION, label, "ms", lower_is_better=True)
        yield measure(row, {side.kind: partial(run, side) for side in sides}, plan.rounds)
    yield from _many([side for side in sides if side.kind == "ottla"], plan)
    row = Row(BACK_SECTION, "from the kill until all are in sync", "s", lower_is_better=True, digits=1)
    yield measure(row, {side.kind: partial(restart, side) for side in sides}, plan.rounds)


def _topic(side: Three, controller: bool) -> tuple[str, int]:
    """A new topic of one partition and its leader, which is the controller or is not."""
    name = f"bench-fault-{next(_numbers)}"
    active = side.metadata().controller_id
    leader = active if controller else next(number for number in IDS if number != active)
    side.create_topic(name, [rotated(leader)])
    return name, leader


def kill(side: Three, controller: bool) -> Sample:
    """The longest gap in ms."""
    topic, leader = _topic(side, controller)
    with Acks(side.bootstrap_servers, topic) as acks:
        since = time.monotonic()
        side.brokers[leader].kill()
        acks.more(LATER_ACKS)
        gap = acks.longest_gap(since)
    side.await_session_end(leader)
    _back(side, leader, topic)
    return Sample(_checked(acks, gap) * 1e3)


def stop(side: Three, controller: bool) -> Sample:
    """The longest gap in ms, from SIGTERM until the broker is back and in sync."""
    topic, leader = _topic(side, controller)
    with Acks(side.bootstrap_servers, topic) as acks:
        since = time.monotonic()
        side.brokers[leader].stop()
        acks.more(LATER_ACKS)
        _back(side, leader, topic)
        gap = acks.longest_gap(since)
    return Sample(_checked(acks, gap) * 1e3)


def restart(side: Three) -> Sample:
    """Seconds until it is in sync again. RuntimeError where it does not start."""
    topic, leader = _topic(side, False)
    since = time.monotonic()
    side.brokers[leader].kill()
    try:
        side.brokers[leader].start()
        side.await_full_isr(topic, LIMIT_SECONDS)
    except RuntimeError as error:
        raise RuntimeError("the broker ended instead of starting") from error
    return Sample(time.monotonic() - since)


def _back(side: Three, broker_id: int, topic: str) -> None:
    side.brokers[broker_id].start()
    side.await_full_isr(topic, LIMIT_SECONDS)


def _checked(acks: Acks, gap: float) -> float:
    if acks.failed:
        raise RuntimeError(f"{acks.failed} records were given up")
    return gap


def _many(sides: Sequence[Three], plan: Plan) -> Iterator[Row]:
    """Of ours alone: with Apache Kafka a round of 250 partitions took up to 70 s."""
    partitions = int(MANY * plan.scale)
    for side in sides:
        spread = [rotated(IDS[index % len(IDS)]) for index in range(partitions)]
        side.create_topic("bench-many", spread)
    for controller, who in ((False, "A broker"), (True, "The controller")):
        section = f"{who} of {partitions:,} partitions is killed"
        found: dict[str, list[dict[str, float]]] = {side.kind: [] for side in sides}

        def run(side: Three, controller: bool, into: list[dict[str, float]]) -> Sample:
            into.append(lose(side, partitions, controller))
            return Sample(into[-1]["written"])

        runners = {side.kind: partial(run, side, controller, found[side.kind]) for side in sides}
        measured = measure(Row(section, "", "s"), runners, min(plan.rounds, MANY_ROUNDS))
        for key, label, unit, digits in (
            ("led", "until every partition has a leader", "s", 2),
            ("written", "until every partition has taken a record", "s", 2),
            ("held", "the longest answer of the others to a ping", "ms", 0),
        ):
            row = Row(section, label, unit, lower_is_better=True, digits=digits)
            row.notes = measured.notes if key == "led" else []
            row.samples = {kind: [Sample(each[key]) for each in got] for kind, got in found.items() if got}
            yield row
    for side in sides:
        side.delete_topic("bench-many")


def lose(side: Three, partitions: int, controller: bool) -> dict[str, float]:
    """Kill one broker of all; write to every partition; bring it back."""
    active = side.metadata().controller_id
    victim = active if controller else next(number for number in IDS if number != active)
    producer = Producer(
        {"bootstrap.servers": side.bootstrap_servers, "enable.idempotence": True, "log_level": 0}
    )
    _to_each(producer, partitions)
    others = [side.address(number) for number in IDS if number != victim]
    with Pings(others) as pings:
        since = time.monotonic()
        side.brokers[victim].kill()
        led: list[float] = []
        watching = threading.Thread(target=lambda: led.append(_all_led(side, victim)))
        watching.start()
        _to_each(producer, partitions)
        written = time.monotonic() - since
        watching.join()
    side.await_session_end(victim)
    _back(side, victim, "bench-many")
    return {"led": led[0] - since, "written": written, "held": pings.longest * 1e3}


def _to_each(producer: Producer, partitions: int) -> None:
    """A record to each partition, acknowledged."""
    failed: list[str] = []
    for index in range(partitions):
        producer.produce(
            "bench-many",
            b"x" * 100,
            partition=index,
            on_delivery=lambda error, _: failed.append(str(error)) if error else None,
        )
    left = producer.flush(LIMIT_SECONDS)
    if left or failed:
        raise RuntimeError(f"{left + len(failed)} records were not acknowledged {failed[:1]}")


def _all_led(side: Three, victim: int) -> float:
    """When all partitions had a leader that lives."""
    wait_until(
        lambda: all(each.leader_id not in (-1, victim) for each in side.partitions("bench-many")),
        "every partition to have a leader",
        LIMIT_SECONDS,
    )
    return time.monotonic()


class Pings:
    """A request of a few bytes to each broker, again and again; `longest` is the slowest answer, in s."""

    def __init__(self, addresses: Sequence[tuple[str, int]]) -> None:
        self.longest = 0.0
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(address,)) for address in addresses]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, address: tuple[str, int]) -> None:
        frame = api_versions_frame()
        with connect(*address) as sock:
            while not self._stop.wait(PING_SECONDS):
                start = time.monotonic()
                call(sock, frame)
                self.longest = max(self.longest, time.monotonic() - start)
