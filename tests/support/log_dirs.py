"""Brokers with several log directories: their settings, what they say of them, and a way to break one.

A directory fails without root's rights and without a file system of its own by a folder that stands where the
next high watermark checkpoint is written: a broker of either make meets an I/O error there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from protocol import messages as m
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

NAMES = ("data", "b", "c")  # the first one is where both processes look for meta.properties


class Lies(NamedTuple):
    """One log in DescribeLogDirs."""

    where: str
    size: int
    lag: int
    is_future: bool


def settings(directory: Path, **more: str) -> dict[str, str]:
    """Three log directories; metadata has one of its own, so that any of the three may fail."""
    return {
        "log.dirs": ",".join(str(directory / name) for name in NAMES),
        "metadata.log.dir": str(directory / "metadata"),
        "replica.high.watermark.checkpoint.interval.ms": "200",
        "num.partitions": "1",
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def alter(wire: WireClient, path: Path | str, topic: str, *partitions: int, version: int = 2) -> list[int]:
    """Ask for a move; the error of each partition."""
    request = m.AlterReplicaLogDirsRequest
    topics = [request.AlterReplicaLogDirTopic(name=topic, partitions=list(partitions))]
    answer = wire.send(request(dirs=[request.AlterReplicaLogDir(path=str(path), topics=topics)]), version)
    [told] = answer.results
    assert told.topic_name == topic
    errors = {row.partition_index: row.error_code for row in told.partitions}
    return [errors[index] for index in partitions]


def described(wire: WireClient, version: int = 5) -> dict[str, Any]:
    """The rows of DescribeLogDirs by the directory's name."""
    answer = wire.send(m.DescribeLogDirsRequest(topics=None), version)
    return {Path(row.log_dir).name: row for row in answer.results}


def lies(wire: WireClient, topic: str) -> dict[int, list[Lies]]:
    """Where the logs of a topic lie: one each, or two while a partition moves."""
    found: dict[int, list[Lies]] = {}
    for name, row in described(wire).items():
        for each in row.topics:
            for place in each.partitions if each.name == topic else ():
                log = Lies(name, place.partition_size, place.offset_lag, place.is_future_key)
                found.setdefault(place.partition_index, []).append(log)
    return {index: sorted(found[index], key=lambda each: each.is_future) for index in sorted(found)}


def places(wire: WireClient, topic: str) -> dict[int, str]:
    """The directory of each partition's log."""
    return {index: logs[0].where for index, logs in lies(wire, topic).items()}


def await_move(wire: WireClient, topic: str, index: int, name: str) -> None:
    """Until the partition lies there and nowhere else."""

    def there() -> bool:
        return [(log.where, log.is_future) for log in lies(wire, topic).get(index, [])] == [(name, False)]

    wait_until(there, f"{topic}-{index} to lie in {name}")


def break_dir(directory: Path) -> None:
    """Let the next checkpoint in a log directory fail. One that is just being written is awaited."""

    def is_broken() -> bool:
        try:
            (directory / "replication-offset-checkpoint.tmp").mkdir()
        except FileExistsError:
            return False
        return True

    wait_until(is_broken, f"the checkpoint of {directory} to be written")


def mend_dir(directory: Path) -> None:
    (directory / "replication-offset-checkpoint.tmp").rmdir()
