"""The clients of the groups part, against a real broker."""

from __future__ import annotations

from pathlib import Path

from bench import group_reload, job
from bench.starting import second_life
from ottla.client import KafkaClient
from protocol import messages as m
from tests.support.ottla_process import OttlaProcess


def test_a_group_of_the_load_settles_rebalances_and_commits(tmp_path: Path) -> None:
    """The clients of the groups part against a real broker."""
    with OttlaProcess(directory=tmp_path) as ottla:
        with KafkaClient(f"{ottla.host}:{ottla.port}") as client:
            client.create_topic("groups-of-the-load", 10)
            client.call(m.FindCoordinatorRequest(coordinator_keys=["g"]), version=4)
        where = {"host": ottla.host, "port": ottla.port, "topic": "groups-of-the-load"}
        took = job.run("bench.group_load:rebalance", **where, partitions=40, size=5, rounds=3, prefix="r")
        assert took["seconds"] > 0
        for kind in ("heartbeat", "commit"):
            done = job.run(
                "bench.group_load:full_speed",
                **where,
                kind=kind,
                connections=3,
                depth=2,
                seconds=1.0,
                prefix=kind,
            )
            assert done["answers"] > 0
            lines: list[str] = []
            late = job.run(
                "bench.group_load:steady",
                lines.append,
                **where,
                kind=kind,
                groups=3,
                size=4,
                rate=200,
                seconds=1.0,
                warm_up_seconds=0.1,
                prefix=f"steady-{kind}",
            )
            assert 0 < late["p50"] <= late["p99"]
            assert lines[0] == "measuring\n"


def test_a_broker_is_filled_and_comes_back_with_all_its_groups() -> None:
    seconds, stall_ms = second_life(
        "ottla", lambda broker: group_reload.fill(broker, 3), group_reload.look, 120
    )
    assert seconds > 0
    assert stall_ms is not None
