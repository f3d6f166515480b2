"""DescribeLogDirs (protocol.md 4.6, LD1)."""

from __future__ import annotations

import pytest

from protocol import messages as m
from tests.support.wire_client import WireClient

Ask = m.DescribeLogDirsRequest


@pytest.mark.parametrize("version", range(1, 6))
def test_sizes_are_those_of_the_stored_batches(wire: WireClient, name: str, version: int) -> None:
    wire.create_topic(name, partitions=2)
    wire.produce_values(name, b"a" * 1000)
    stored = sum(map(len, wire.stored_batches(name)))
    topics = [Ask.DescribableLogDirTopic(topic=name, partitions=[0, 1])]
    answer = wire.send(Ask(topics=topics), version)
    found = {
        p.partition_index: (p.partition_size, p.offset_lag, p.is_future_key)
        for result in answer.results
        for t in result.topics
        if t.name == name
        for p in t.partitions
    }
    assert found == {0: (stored, 0, False), 1: (0, 0, False)}
    for result in answer.results:
        assert result.error_code == 0
        assert result.log_dir.startswith("/")
        if version >= 4:
            assert result.total_bytes >= result.usable_bytes > 0
        if version >= 5:
            assert result.is_cordoned is False


def test_null_means_everything_and_unknown_topics_nothing(wire: WireClient, topic: str) -> None:
    def names(request: m.DescribeLogDirsRequest) -> set[str]:
        return {t.name for result in wire.send(request, 4).results for t in result.topics}

    assert topic in names(Ask(topics=None))
    assert names(Ask(topics=[Ask.DescribableLogDirTopic(topic=f"{topic}-x", partitions=[0])])) == set()
