"""The share coordinator as brokers see it: FindCoordinator for share partitions, and the five operations."""

from __future__ import annotations

from typing import Any

import pytest

from coordinator.placement import partition_for
from coordinator.share.records import ShareKey, read_key, read_snapshot, read_update, record_type
from protocol import messages as m
from protocol.records.batch import batches, records
from protocol.uuids import uuid_to_text
from tests.conformance.share_requests import STATE_TOPIC, Share, find
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

NOWHERE = (-1, "", -1)


@pytest.fixture
def share(wire: WireClient, name: str) -> Share:
    """A topic, and a coordinator that serves."""
    share = Share(wire, wire.create_topic(name, partitions=2))
    share.wait()
    return share


def test_a_share_partition_has_a_coordinator(share: Share) -> None:
    [broker] = share.wire.metadata().brokers
    keys = [share.key(), share.key(1), "g:with:colons:" + uuid_to_text(share.topic_id) + ":0"]
    for key, one in zip(keys, find(share.wire, *keys), strict=True):
        assert (one.key, one.error_code, one.error_message) == (key, 0, "")
        assert (one.node_id, one.host, one.port) == (broker.node_id, broker.host, broker.port)


def test_malformed_keys(share: Share) -> None:
    topic_id = uuid_to_text(share.topic_id)
    bad = ["", ":", "g", f"g:{topic_id}", f":{topic_id}:0", f" :{topic_id}:0", f"g:{topic_id}:x", "g:short:0"]
    bad += [f"g:{topic_id}:2147483648", f"g:{topic_id}: 1", f"g:{topic_id}xy:1", "g::0"]
    for key, one in zip(bad, find(share.wire, *bad), strict=True):
        assert (one.key, one.error_code, one.node_id, one.host, one.port) == (key, 42, *NOWHERE)
    good = [
        f"g:{topic_id}:-1",
        f"g:{topic_id}:+1",
        f"g:{topic_id}:1:",
        f"g:{topic_id}==:1",
        f"a: :{topic_id}:0",
    ]
    assert [one.error_code for one in find(share.wire, *good)] == [0] * len(good)
    mixed = find(share.wire, "g", share.key())
    assert [one.error_code for one in mixed] == [42, 0]
    assert mixed[0].error_message == ""


def test_the_topic_is_internal_and_kept(share: Share) -> None:
    [topic] = share.wire.metadata(STATE_TOPIC).topics
    assert (topic.error_code, topic.is_internal) == (0, True)
    request = m.DescribeConfigsRequest
    resource = request.DescribeConfigsResource(resource_type=2, resource_name=STATE_TOPIC)
    [answer] = share.wire.send(request(resources=[resource]), 4).results
    changed = {each.name: each.value for each in answer.configs if each.config_source == 1}
    assert changed == {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "min.insync.replicas": "1",
        "retention.ms": "-1",
        "segment.bytes": "104857600",
    }


def test_state_comes_back_as_it_was_written(share: Share) -> None:
    assert share.initialize(start=10) == m.InitializeShareGroupStateResponse.PartitionResult(partition=0)
    found = share.read(leader_epoch=3)
    assert (found.error_code, found.error_message) == (0, None)
    assert (found.state_epoch, found.start_offset, found.state_batches) == (0, 10, [])
    written = share.write((10, 19, 2, 1), (20, 29, 0, 1), start=10, leader_epoch=3, complete=10)
    assert written == m.WriteShareGroupStateResponse.PartitionResult(partition=0)
    found = share.read(leader_epoch=3)
    assert [repr(each) for each in found.state_batches] == [
        repr(m.ReadShareGroupStateResponse.StateBatch(
            first_offset=first, last_offset=last, delivery_state=state, delivery_count=1
        )) for first, last, state in ((10, 19, 2), (20, 29, 0))
    ]  # fmt: skip
    shown = share.summary()
    assert (shown.error_code, shown.error_message, shown.state_epoch) == (0, None, 0)
    assert (shown.leader_epoch, shown.start_offset, shown.delivery_complete_count) == (3, 10, 10)
    assert share.summary(version=0).start_offset == 10


def test_of_batches_over_one_offset_the_higher_count_then_the_higher_state_wins(share: Share) -> None:
    share.initialize()
    share.write((0, 9, 0, 1))
    share.write((5, 14, 2, 1))
    assert share.batches() == [(0, 4, 0, 1), (5, 14, 2, 1)]
    share.write((0, 14, 0, 1))
    assert share.batches() == [(0, 4, 0, 1), (5, 14, 2, 1)]
    share.write((3, 6, 0, 2))
    assert share.batches() == [(0, 2, 0, 1), (3, 6, 0, 2), (7, 14, 2, 1)]
    share.write((20, 24, 4, 5), (15, 19, 2, 1), (0, 2, 0, 2))
    assert share.batches() == [(0, 6, 0, 2), (7, 19, 2, 1), (20, 24, 4, 5)]
    share.write(start=10)
    assert share.batches() == [(10, 19, 2, 1), (20, 24, 4, 5)]
    share.write((8, 11, 4, 3), start=10)
    assert share.batches() == [(10, 11, 4, 3), (12, 19, 2, 1), (20, 24, 4, 5)]


def test_the_start_goes_up_only_and_the_count_with_it(share: Share) -> None:
    share.initialize(start=5)

    def counts() -> tuple[int, int]:
        shown = share.summary()
        return shown.start_offset, shown.delivery_complete_count

    assert counts() == (5, 0)
    share.write(start=5, complete=3)
    assert counts() == (5, 3)
    share.write(start=5, complete=2)
    assert counts() == (5, 3)
    share.write(start=8, complete=1)
    assert counts() == (8, 1)
    share.write(start=6, complete=9)
    assert counts() == (8, 1)
    share.write(start=-1, complete=9)
    assert counts() == (8, 1)
    share.write(start=9, version=0)
    assert counts() == (9, -1)


def test_a_start_that_nobody_has_decided(share: Share) -> None:
    share.initialize(start=-1)
    assert share.read().start_offset == -1
    shown = share.summary()
    assert (shown.start_offset, shown.delivery_complete_count) == (-1, -1)
    share.write((3, 4, 0, 1), start=-1)
    assert share.batches() == [(3, 4, 0, 1)]
    assert share.read().start_offset == -1


def test_old_leaders_are_fenced(share: Share) -> None:
    share.initialize()
    assert share.read(leader_epoch=5).error_code == 0
    refused = share.write((0, 0, 2, 1), leader_epoch=4)
    assert refused.error_code == 74
    assert refused.error_message == ("The leader epoch in the request is older than the epoch on the broker.")
    assert share.read(leader_epoch=4).error_code == 74
    assert share.write((0, 0, 2, 1), leader_epoch=6).error_code == 0
    assert share.summary().leader_epoch == 5  # a write does not say who leads
    assert share.read(leader_epoch=5).state_batches[0].last_offset == 0
    assert share.initialize(state_epoch=1).error_code == 0
    assert share.summary().leader_epoch == 0
    assert share.read(leader_epoch=4).error_code == 74


def test_old_state_epochs_are_fenced(share: Share) -> None:
    share.initialize(state_epoch=3, start=7)
    share.write((7, 9, 2, 1), start=7, state_epoch=3)
    assert share.write((7, 7, 2, 1), state_epoch=2).error_code == 124
    refused = share.initialize(state_epoch=2)
    assert refused.error_code == 124
    assert refused.error_message == (
        "The coordinator rejected the request because the state epoch did not match."
    )
    assert share.write((8, 9, 4, 2), start=7, state_epoch=9).error_code == 0
    assert share.read().state_epoch == 3
    assert share.batches() == [(7, 7, 2, 1), (8, 9, 4, 2)]
    assert share.initialize(state_epoch=3, start=1).error_code == 0  # the same epoch begins anew
    assert (share.batches(), share.read().start_offset) == ([], 1)


def test_what_was_not_initialized(share: Share) -> None:
    refused = share.read()
    assert (refused.error_code, refused.error_message, refused.start_offset) == (
        42,
        "Read operation on uninitialized share partition not allowed.",
        0,
    )
    refused = share.write((0, 1, 2, 1))
    assert (refused.error_code, refused.error_message) == (
        42,
        "Write operation on uninitialized share partition not allowed.",
    )
    shown = share.summary()
    assert (shown.error_code, shown.state_epoch, shown.leader_epoch, shown.start_offset) == (0, 0, 0, -1)
    assert shown.delivery_complete_count == -1
    assert (share.delete().error_code, share.delete().error_message) == (0, None)


def test_deleted_state_is_gone_with_its_epochs(share: Share) -> None:
    share.initialize(state_epoch=4)
    share.read(leader_epoch=4)
    assert share.delete() == m.DeleteShareGroupStateResponse.PartitionResult(partition=0)
    assert share.read(leader_epoch=4).error_code == 42
    assert share.initialize(state_epoch=0).error_code == 0
    assert share.read(leader_epoch=0).error_code == 0


def test_negative_numbers(share: Share) -> None:
    partition, leader, state = (
        f"The {what} cannot be a negative number." for what in ("partition id", "leader epoch", "state epoch")
    )

    def told(result: Any) -> tuple[int, str | None]:
        return result.error_code, result.error_message

    assert told(share.initialize(partition=-1)) == (42, partition)
    assert told(share.initialize(state_epoch=-1)) == (42, state)
    assert told(share.read(partition=-1)) == (42, partition)
    assert told(share.read(leader_epoch=-1)) == (42, leader)
    assert told(share.write(partition=-1)) == (42, partition)
    assert told(share.write(leader_epoch=-1, state_epoch=-1)) == (42, leader)
    assert told(share.write(state_epoch=-1)) == (42, state)
    assert told(share.delete(partition=-1)) == (42, partition)
    assert told(share.summary(partition=-1)) == (42, partition)


@pytest.mark.parametrize("place", [{"topic_id": bytes(15) + b"x"}, {"topic_id": bytes(16)}, {"partition": 2}])
def test_topics_and_partitions_that_do_not_exist(share: Share, place: dict[str, Any]) -> None:
    share.initialize()
    for refused in (share.initialize(**place), share.delete(**place), share.summary(**place)):
        assert (refused.error_code, refused.error_message) == (
            3,
            "This server does not host this topic-partition.",
        )
    assert share.read(**place).error_code == share.write(**place).error_code == 42


def test_the_state_of_a_deleted_topic_is_dropped(share: Share, name: str) -> None:
    share.initialize()
    request = m.DeleteTopicsRequest
    topic = request.DeleteTopicState(name=name)
    [deleted] = share.wire.send(request(topics=[topic], timeout_ms=30_000), 6).responses
    assert deleted.error_code == 0
    wait_until(lambda: share.read().error_code == 42, "the state to be dropped")


def test_requests_that_ask_for_nothing(share: Share) -> None:
    for cls, version, entry in (
        (m.InitializeShareGroupStateRequest, 0, "InitializeStateData"),
        (m.ReadShareGroupStateRequest, 0, "ReadStateData"),
        (m.WriteShareGroupStateRequest, 1, "WriteStateData"),
        (m.DeleteShareGroupStateRequest, 0, "DeleteStateData"),
        (m.ReadShareGroupStateSummaryRequest, 1, "ReadStateSummaryData"),
    ):
        empty = getattr(cls, entry)(topic_id=share.topic_id)
        one = getattr(cls, entry)(topic_id=share.topic_id, partitions=[cls.PartitionData(partition=0)])
        for group, topics, partitions in (
            (share.group, [], 0),
            ("", [one], 0),
            (share.group, [empty], 0),
            (share.group, [one, empty], 1 if cls is m.InitializeShareGroupStateRequest else 0),
        ):
            results = share.wire.send(cls(group_id=group, topics=topics), version).results
            assert sum(len(each.partitions) for each in results) == partitions, (cls, group, topics)


def test_several_partitions_in_one_request(share: Share) -> None:
    cls = m.InitializeShareGroupStateRequest
    topic = cls.InitializeStateData(
        topic_id=share.topic_id,
        partitions=[
            cls.PartitionData(partition=0, start_offset=1),
            cls.PartitionData(partition=1, start_offset=2),
            cls.PartitionData(partition=2),
            cls.PartitionData(partition=0, start_offset=3),
        ],
    )
    [result] = share.wire.send(cls(group_id=share.group, topics=[topic]), 0).results
    assert result.topic_id == share.topic_id
    assert sorted((each.partition, each.error_code) for each in result.partitions) == [(0, 0), (1, 0), (2, 3)]
    assert share.read().start_offset == 3
    assert share.read(partition=1).start_offset == 2


def log_of(share: Share) -> list[tuple[str, Any]]:
    """The records of partition 0 of the test's topic: kind and value, without the time."""
    key = ShareKey(share.group, share.topic_id, 0)
    place = partition_for(share.key(), 50)
    answer = share.wire.fetch(STATE_TOPIC, 0, place, partition_max_bytes=1 << 24)
    assert answer.error_code == 0
    found: list[tuple[str, Any]] = []
    for record in (each for at, _ in batches(answer.records) for each in records(answer.records, at)):
        assert record.key is not None
        if read_key(record.key) != key:
            continue
        if record.value is None:
            found.append(("tombstone", record_type(record.key)))
        elif record_type(record.key) == 1:
            found.append(("update", read_update(record.value)))
        else:
            snapshot = read_snapshot(record.value)
            assert snapshot is not None
            assert snapshot.create_timestamp == snapshot.write_timestamp > 1_700_000_000_000
            snapshot.create_timestamp = snapshot.write_timestamp = 0
            found.append(("snapshot", snapshot))
    return found


def test_the_records(share: Share) -> None:
    share.initialize(state_epoch=2, start=5)
    share.read(leader_epoch=1)
    share.write((5, 6, 2, 1), (5, 9, 0, 1), (3, 4, 2, 1), leader_epoch=3, state_epoch=4, start=5, complete=2)
    share.write((7, 7, 4, 5), leader_epoch=1, state_epoch=2, start=6, version=0)
    share.initialize(state_epoch=2, start=-1)
    share.delete()
    update, snapshot = m.ShareUpdateValue, m.ShareSnapshotValue
    batch = update.StateBatch
    assert log_of(share) == [
        ("snapshot", snapshot(state_epoch=2, start_offset=5, delivery_complete_count=0)),
        ("update", update(leader_epoch=1, start_offset=5, delivery_complete_count=0)),
        (
            "update",
            update(
                leader_epoch=1,
                start_offset=5,
                delivery_complete_count=2,
                state_batches=[
                    batch(first_offset=5, last_offset=6, delivery_state=2, delivery_count=1),
                    batch(first_offset=7, last_offset=9, delivery_state=0, delivery_count=1),
                ],
            ),
        ),
        (
            "update",
            update(
                leader_epoch=1,
                start_offset=6,
                state_batches=[batch(first_offset=7, last_offset=7, delivery_state=4, delivery_count=5)],
            ),
        ),
        ("snapshot", snapshot(snapshot_epoch=1, state_epoch=2, start_offset=-1)),
        ("tombstone", 0),
    ]


def test_a_snapshot_after_five_hundred_updates(share: Share) -> None:
    share.initialize()
    share.read(leader_epoch=1)
    for offset in range(399):
        assert share.write((offset, offset, 2, 1), leader_epoch=1).error_code == 0
    share.initialize()  # does not begin the count anew
    for offset in range(102):
        share.write((offset, offset, 2, 1), leader_epoch=1)
    log = log_of(share)
    assert [kind for kind, _ in log] == [
        *["snapshot", *["update"] * 400],
        *["snapshot", *["update"] * 100],
        *["snapshot", "update"],
    ]
    first, second = log[401][1], log[502][1]
    assert (first.snapshot_epoch, first.state_batches) == (1, [])
    assert (second.snapshot_epoch, second.leader_epoch) == (2, 0)
    assert [(each.first_offset, each.last_offset) for each in second.state_batches] == [(0, 100)]
    assert log[-1][1].snapshot_epoch == 2
    assert share.batches(leader_epoch=1) == [(0, 101, 2, 1)]
