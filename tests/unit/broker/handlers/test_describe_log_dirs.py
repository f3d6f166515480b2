"""DescribeLogDirs: protocol.md 4.6, LD1."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from broker.handlers import describe_log_dirs
from protocol import messages as m
from runtime.pieces import Steps, at_once
from tests.support.handler_broker import HandlerBroker

Request = m.DescribeLogDirsRequest
Response = m.DescribeLogDirsResponse
Result = m.DescribeLogDirsResponse.DescribeLogDirsResult


def describe(broker: HandlerBroker, version: int, topics: list[tuple[str, list[int]]] | None) -> list[Result]:
    wanted = None
    if topics is not None:
        wanted = [Request.DescribableLogDirTopic(topic=name, partitions=indexes) for name, indexes in topics]
    answer = broker.call(Request(topics=wanted), version)
    assert answer.error_code == 0
    return answer.results


def contents(result: Result) -> dict[str, list[int]]:
    return {topic.name: [p.partition_index for p in topic.partitions] for topic in result.topics}


@pytest.mark.parametrize("version", range(6))
def test_a_directory_at_every_version(broker: HandlerBroker, version: int) -> None:
    broker.create("a", 2)
    broker.produce("a", 1, [(1, b"x" * 100)])
    (result,) = describe(broker, version, None)
    assert (result.error_code, result.log_dir) == (0, broker.paths[0])
    assert contents(result) == {"a": [0, 1]}
    sizes = [partition.partition_size for partition in result.topics[0].partitions]
    assert sizes == [0, broker.ctx.replicas.get("a", 1).log.size_bytes]
    assert sizes[1] > 100
    assert [(p.offset_lag, p.is_future_key) for p in result.topics[0].partitions] == [(0, False)] * 2
    assert (result.total_bytes > 0) == (version >= 4)
    assert (result.usable_bytes > 0) == (version >= 4)
    assert result.is_cordoned is False


def test_only_what_is_asked_for(broker: HandlerBroker) -> None:
    broker.create("a", 2)
    broker.create("b")
    (result,) = describe(broker, 4, [("a", [1, 9]), ("nope", [0])])
    assert contents(result) == {"a": [1]}
    assert contents(describe(broker, 4, [])[0]) == {}
    assert contents(describe(broker, 4, [("a", [])])[0]) == {}


@pytest.fixture
def steps(broker: HandlerBroker, monkeypatch: pytest.MonkeyPatch) -> Steps[Response]:
    """Two of six logs are described."""
    monkeypatch.setattr(describe_log_dirs, "AT_ONCE", 2)
    broker.create("a", 6)
    begun = describe_log_dirs._describe(broker.ctx, Request(topics=None))
    next(begun)
    return begun


def test_many_logs_are_described_in_pieces_without_those_that_go_meanwhile(
    broker: HandlerBroker, steps: Steps[Response]
) -> None:
    del broker.ctx.logs.dirs[0].logs["a", 4]
    next(steps)
    next(steps)
    (result,) = at_once(steps).results
    assert contents(result) == {"a": [0, 1, 2, 3, 5]}


def test_a_directory_that_fails_while_it_is_described(broker: HandlerBroker, steps: Steps[Response]) -> None:
    broker.ctx.logs.dirs[0].fail(OSError(errno.EIO, "gone"))
    (result,) = at_once(steps).results
    assert (result.error_code, result.topics, result.total_bytes) == (56, [], -1)


def test_several_directories_and_one_that_failed(tmp_path: Path) -> None:
    with HandlerBroker(tmp_path, log_dirs=2) as broker:
        broker.create("a", 4)
        first, second = describe(broker, 4, None)
        assert (contents(first)["a"], contents(second)["a"]) == ([0, 2], [1, 3])
        broker.ctx.logs.dirs[1].fail(OSError(errno.EIO, "gone"))
        first, second = describe(broker, 4, None)
        assert (first.error_code, contents(first)["a"]) == (0, [0, 2])
        assert (second.error_code, second.topics, second.total_bytes) == (56, [], -1)
