"""A consumer in a group: where it begins, what it commits, when it joins again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pytest

from ottla.client import ClientError, KafkaClient
from ottla.groups.consumer import NO_RESET, ConsumerSettings, GroupConsumer
from ottla.reader import EARLIEST, LATEST
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from tests.unit.ottla.groups.scripted_group import ScriptedGroup

ENDS = {EARLIEST: 0, LATEST: 3}


class FakeMember:
    """What the consumer sees of a membership."""

    def __init__(self, places: Sequence[tuple[str, int]]) -> None:
        self.group_id, self.keeps = "g", False
        self.places = list(places)
        self.rejoins, self.lost, self.left = True, False, False
        self.joins: list[list[str]] = []
        self.commits: list[Mapping] = []

    def check(self) -> None:
        return

    def join(self, topics: Sequence[str], partition_counts: object, timeout_s: float | None) -> list:
        self.joins.append(list(topics))
        self.rejoins = self.lost = False
        return self.places

    def commit(self, offsets: Mapping) -> bool:
        self.commits.append(dict(offsets))
        return True

    def leave(self) -> None:
        self.left = True


def listed(request: m.ListOffsetsRequest) -> m.ListOffsetsResponse:
    (topic,) = request.topics
    (part,) = topic.partitions
    answer = m.ListOffsetsResponse.ListOffsetsPartitionResponse(
        partition_index=part.partition_index, offset=ENDS[part.timestamp]
    )
    return m.ListOffsetsResponse(
        topics=[m.ListOffsetsResponse.ListOffsetsTopicResponse(name=topic.name, partitions=[answer])]
    )


def fetched(request: m.FetchRequest) -> m.FetchResponse:
    (topic,) = request.topics
    batch = build_batch([Record(0, 1, None, b"%d" % offset, ()) for offset in range(3)], leader_epoch=6)
    return m.FetchResponse(
        responses=[
            m.FetchResponse.FetchableTopicResponse(
                topic=topic.topic,
                partitions=[
                    m.FetchResponse.PartitionData(
                        partition_index=part.partition,
                        high_watermark=3,
                        records=batch if part.fetch_offset < 3 else b"",
                    )
                    for part in topic.partitions
                ],
            )
        ]
    )


def offsets(**committed: int) -> m.OffsetFetchResponse:
    response = m.OffsetFetchResponse
    topics = [
        response.OffsetFetchResponseTopics(
            name=topic,
            partitions=[response.OffsetFetchResponsePartitions(partition_index=0, committed_offset=offset)],
        )
        for topic, offset in committed.items()
    ]
    return response(groups=[response.OffsetFetchResponseGroup(group_id="g", topics=topics)])


@pytest.fixture
def group() -> Iterator[ScriptedGroup]:
    answers = {
        m.ListOffsetsRequest: listed,
        m.FetchRequest: fetched,
        m.OffsetFetchRequest: [offsets(t=1)],
    }
    with ScriptedGroup(answers, {ApiKey.FETCH: (4, 12)}) as scripted:
        yield scripted


@pytest.fixture
def client(group) -> Iterator[KafkaClient]:
    with KafkaClient(group.address) as connected:
        yield connected


def values(consumer: GroupConsumer) -> list[bytes | None]:
    return [each.record.value for each in consumer.read(1)]


def test_it_begins_at_what_is_committed_and_commits_what_was_handed_out(client) -> None:
    member = FakeMember([("t", 0)])
    consumer = GroupConsumer(client, member, lambda: ["t"], ConsumerSettings(LATEST))
    reading = consumer.read(1)
    assert next(reading).record.value == b"1"
    reading.close()
    consumer.close()
    assert (member.joins, member.left) == ([["t"]], True)
    assert member.commits == [{("t", 0): (2, 6)}]


def test_without_an_offset_it_begins_at_the_end_asked_for(group, client) -> None:
    group.answers[m.OffsetFetchRequest] = [offsets()]
    for reset, expected in ((EARLIEST, [b"0", b"1", b"2"]), (LATEST, [])):
        member = FakeMember([("t", 0)])
        consumer = GroupConsumer(client, member, lambda: ["t"], ConsumerSettings(reset))
        assert values(consumer) == expected
        consumer.close()
        assert [next(iter(each.values()))[0] for each in member.commits] == [3]
    consumer = GroupConsumer(client, FakeMember([("t", 0)]), lambda: ["t"], ConsumerSettings(NO_RESET))
    with pytest.raises(ClientError, match=r"no reset policy for partitions: \[t-0\]"):
        values(consumer)


def test_before_a_rebalance_it_commits_unless_all_is_lost(client) -> None:
    member = FakeMember([("t", 0)])
    consumer = GroupConsumer(client, member, lambda: ["t"], ConsumerSettings(LATEST))
    values(consumer)
    member.rejoins = True
    values(consumer)
    assert member.commits == [{("t", 0): (3, 6)}]
    member.rejoins = member.lost = True
    values(consumer)
    assert (len(member.commits), len(member.joins)) == (1, 3)


@pytest.mark.parametrize(
    ("keeps", "lost", "expected"),
    [(True, False, []), (False, False, [b"1", b"2"]), (True, True, [b"1", b"2"])],
)
def test_what_a_membership_keeps_goes_on_where_it_is(
    client, keeps: bool, lost: bool, expected: list[bytes]
) -> None:
    member = FakeMember([("t", 0)])
    member.keeps = keeps
    settings = ConsumerSettings(LATEST, auto_commit_interval_ms=None)
    consumer = GroupConsumer(client, member, lambda: ["t"], settings)
    assert values(consumer) == [b"1", b"2"]  # 1 is what is committed
    member.rejoins, member.lost = True, lost
    assert values(consumer) == expected


def test_commits_come_at_intervals_or_not_at_all(client) -> None:
    for interval_ms, commits in ((0, 2), (None, 0)):
        member = FakeMember([("t", 0)])
        settings = ConsumerSettings(LATEST, auto_commit_interval_ms=interval_ms)
        consumer = GroupConsumer(client, member, lambda: ["t"], settings)
        values(consumer)
        values(consumer)
        assert len(member.commits) == commits
        consumer.close()
        assert member.left


def test_new_topics_make_it_join_again(client) -> None:
    topics = ["t"]
    member = FakeMember([])
    settings = ConsumerSettings(LATEST, metadata_max_age_ms=0)
    consumer = GroupConsumer(client, member, lambda: topics, settings)
    assert values(consumer) == []
    values(consumer)
    topics.append("u")
    values(consumer)
    assert member.joins == [["t"], ["t", "u"]]


def test_it_leaves_even_if_the_last_commit_fails(client) -> None:
    member = FakeMember([("t", 0)])
    consumer = GroupConsumer(client, member, lambda: ["t"], ConsumerSettings(LATEST))
    values(consumer)

    def refuse(offsets: Mapping) -> bool:
        raise ClientError("too large", ErrorCode.OFFSET_METADATA_TOO_LARGE)

    member.commit = refuse
    with pytest.raises(ClientError):
        consumer.close()
    assert member.left
