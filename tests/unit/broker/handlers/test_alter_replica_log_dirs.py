"""AlterReplicaLogDirs: KIP-113; the errors are those of `broker.log_dir_mover`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from protocol import messages as m
from tests.support.handler_broker import HandlerBroker

Request = m.AlterReplicaLogDirsRequest


def alter(
    broker: HandlerBroker, *wishes: tuple[str, str, list[int]], version: int = 2
) -> list[tuple[str, list[tuple[int, int]]]]:
    """(path, topic, partitions) each; what is answered by topic."""
    dirs = [
        Request.AlterReplicaLogDir(
            path=path, topics=[Request.AlterReplicaLogDirTopic(name=topic, partitions=partitions)]
        )
        for path, topic, partitions in wishes
    ]
    answer = broker.call(Request(dirs=dirs), version)
    return [(t.topic_name, [(p.partition_index, p.error_code) for p in t.partitions]) for t in answer.results]


async def moved_from(broker: HandlerBroker, directory: str) -> str:
    """The directory of a-0, once it is another."""
    async with asyncio.timeout(60):
        while True:
            path = broker.ctx.logs.get("a", 0).directory.path
            if path != directory:
                return path
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_one_answer_for_each_partition_by_topic(tmp_path: Path, version: int) -> None:
    with HandlerBroker(tmp_path, log_dirs=2) as broker:
        broker.create("a", 2)
        broker.create("b")
        first, second = broker.paths
        answered = alter(
            broker, (second, "a", [0, 1, 7]), (second, "b", [0]), (first, "absent", [0]), version=version
        )
        assert answered == [("a", [(0, 0), (1, 0), (7, 3)]), ("b", [(0, 0)]), ("absent", [(0, 3)])]
        assert alter(broker, version=version) == []


def test_the_last_of_two_directories_counts(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path, log_dirs=3) as broker:
        broker.create("a")
        first, second, third = broker.paths
        assert alter(broker, (second, "a", [0]), (third, "a", [0])) == [("a", [(0, 0)])]

        assert broker.runner.run(moved_from(broker, first)) == third


def test_a_directory_may_be_chosen_before_the_partition_is_there(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path, log_dirs=3) as broker:
        assert alter(broker, (broker.paths[2], "a", [0, 1])) == [("a", [(0, 3), (1, 3)])]
        broker.create("a", 3)
        places = [broker.ctx.logs.get("a", index).directory.path for index in range(3)]
        assert places == [broker.paths[2], broker.paths[2], broker.paths[0]]
