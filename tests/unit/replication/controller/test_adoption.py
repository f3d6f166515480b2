"""Adopting topics from log directories."""

from __future__ import annotations

from replication.controller.adoption import LogOnDisk, adopt

ID, OTHER = bytes([1]) * 16, bytes([2]) * 16


def test_whole_topics_are_adopted_with_an_epoch_above_the_logs():
    logs = [LogOnDisk("t", 1, ID, 4), LogOnDisk("t", 0, ID, -1), LogOnDisk("a", 0, OTHER, 0)]
    topics, left = adopt(logs, 7)
    assert left == []
    assert [topic.name for topic in topics] == ["a", "t"]
    assert topics[1].topic_id == ID
    assert [(p.index, p.leader, p.leader_epoch, p.isr) for p in topics[1].partitions] == [
        (0, 7, 0, (7,)),
        (1, 7, 5, (7,)),
    ]


def test_what_does_not_tell_a_whole_topic_is_left():
    logs = [
        LogOnDisk("no-id", 0, None, 0),
        LogOnDisk("two-ids", 0, ID, 0),
        LogOnDisk("two-ids", 1, OTHER, 0),
        LogOnDisk("gap", 0, ID, 0),
        LogOnDisk("gap", 2, ID, 0),
        LogOnDisk("__cluster_metadata", 0, ID, 0),
        LogOnDisk("bad name", 0, ID, 0),
    ]
    topics, left = adopt(logs, 1)
    assert topics == []
    assert left == ["__cluster_metadata", "bad name", "gap", "no-id", "two-ids"]
