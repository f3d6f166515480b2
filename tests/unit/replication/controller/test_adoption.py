"""Adopting topics from log directories."""

from __future__ import annotations

from replication.controller.adoption import LogOnDisk, adopt, grown

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


def test_partitions_that_go_on_from_the_known_ones_are_added():
    [topic], _ = adopt([LogOnDisk("t", 0, ID, 4)], 7)
    logs = [
        LogOnDisk("t", 0, ID, 4),
        LogOnDisk("t", 2, ID, 9),
        LogOnDisk("t", 1, ID, -1),
        LogOnDisk("t", 4, ID, 0),
        LogOnDisk("unknown", 1, ID, 0),
    ]
    [(now, added)] = grown({"t": topic}, logs, 7)
    assert [(p.index, p.leader, p.leader_epoch, p.isr) for p in added] == [(1, 7, 0, (7,)), (2, 7, 10, (7,))]
    assert now.partitions == topic.partitions + added
    assert (now.name, now.topic_id) == ("t", ID)


def test_a_partition_of_another_topic_id_or_behind_a_gap_is_not_added():
    [topic], _ = adopt([LogOnDisk("t", 0, ID, 4)], 7)
    assert grown({"t": topic}, [LogOnDisk("t", 1, OTHER, 0)], 7) == []
    assert grown({"t": topic}, [LogOnDisk("t", 1, None, 0), LogOnDisk("t", 2, ID, 0)], 7) == []
    assert grown({"t": topic}, [LogOnDisk("t", 0, ID, 4)], 7) == []
