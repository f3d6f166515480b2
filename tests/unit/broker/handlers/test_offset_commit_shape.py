"""A remembered commit is answered, and stored, as a decoded one."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.handlers.offset_commit_shape import BYTES_MAX, PARTITIONS_MAX, OffsetCommitShape, pieces_of
from coordinator.group.records import Stored
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from replication.partition import Partition
from tests.support.net_broker import Client, NetBroker, decode, frame, produce_request
from tests.unit.broker.handlers.group_requests import GROUP, NO_DELAY, commit, coordinate, join, settle

TOPIC = "t"
OF_PARTITION = m.OffsetCommitRequest.OffsetCommitRequestPartition


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[NetBroker]:
    with NetBroker(tmp_path, NO_DELAY) as running:
        running.create(TOPIC, 3)
        coordinate(running)
        yield running


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[bool | None]:
    """What `serve` said each time."""
    told: list[bool | None] = []
    serve = OffsetCommitShape.serve

    def noted(self: OffsetCommitShape, *args: object) -> int | None:
        end = serve(self, *args)  # type: ignore[arg-type]
        told.append(None if end is None else bool(end))
        return end

    monkeypatch.setattr(OffsetCommitShape, "serve", noted)
    return told


def request_for(broker: NetBroker, offset: int, version: int, **fields: Any) -> m.OffsetCommitRequest:
    """A commit of `offset` for partition 0, and of the next one for partition 2."""
    request = commit(TOPIC, offset, **fields)
    [topic] = request.topics
    topic.partitions.append(
        OF_PARTITION(partition_index=2, committed_offset=offset + 1, committed_metadata="")
    )
    if version >= 10:
        topic.name, topic.topic_id = "", broker.ctx.image.topics[TOPIC].topic_id
    return request


def send(client: Client, offset: int, version: int = 8, number: int = 1, **fields: Any) -> None:
    client.send(frame(request_for(client.broker, offset, version, **fields), version, number))


def answers(client: Client, version: int = 8) -> list[tuple[int, list[int]]]:
    """Correlation ids and errors."""
    client.broker.run()
    return [
        (number, [each.error_code for topic in answer.topics for each in topic.partitions])
        for number, data in client.answers()
        for answer in [decode(ApiKey.OFFSET_COMMIT, version, data)]
    ]


def stored(broker: NetBroker) -> dict[tuple[str, int], Stored]:
    manager = broker.ctx.groups.manager()
    return manager.runtime.read(
        manager.partition_of(GROUP), lambda shard: dict(shard.offsets.committed.committed_row(GROUP))
    )


def replica(broker: NetBroker) -> Partition:
    found = broker.ctx.replicas.get("__consumer_offsets", broker.ctx.groups.manager().partition_of(GROUP))
    assert found is not None
    return found


@pytest.mark.parametrize("version", range(11))
def test_the_second_one_is_known(broker: NetBroker, served: list[bool | None], version: int) -> None:
    client = broker.connect()
    for number, offset in enumerate((5, 7, 2**63 - 2, 0)):
        send(client, offset, version, number)
        assert answers(client, version) == [(number, [0, 0])]
        found = stored(broker)
        assert found[TOPIC, 0][:3] == (offset, -1, "here")
        assert found[TOPIC, 2][:3] == (offset + 1, -1, "")
    assert served == [True, True, True]


def test_what_differs_elsewhere_is_decoded(broker: NetBroker, served: list[bool | None]) -> None:
    client = broker.connect()
    send(client, 1)
    changed = request_for(broker, 2, 8)
    changed.topics[0].partitions[1].committed_leader_epoch = 9
    longer = request_for(broker, 3, 8)
    longer.topics[0].partitions[1].committed_metadata = "more"
    one = commit(TOPIC, 4)
    for request in (changed, longer, one):
        answers(client)
        client.send(frame(request, 8, 1))
    assert answers(client) == [(1, [0])]
    assert True not in served
    assert stored(broker)[TOPIC, 0][:3] == (4, -1, "here")
    assert stored(broker)[TOPIC, 2][:3] == (4, -1, "more")


def test_the_group_decides(broker: NetBroker, served: list[bool | None]) -> None:
    member, client = settle(broker), broker.connect()
    identity = {"member_id": member, "generation_id_or_member_epoch": 1}
    for _ in range(2):
        send(client, 5, **identity)
        assert answers(client) == [(1, [0, 0])]
    broker.post(join(), 3)
    broker.call(join(member), 3)
    send(client, 6, **identity)
    assert answers(client) == [(1, [ErrorCode.ILLEGAL_GENERATION] * 2)]
    send(client, 6, member_id=member, generation_id_or_member_epoch=2)
    assert answers(client) == [(1, [ErrorCode.REBALANCE_IN_PROGRESS] * 2)]
    broker.ctx.groups.close()
    send(client, 7, **identity)
    assert answers(client) == [(1, [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2)]
    assert served == [True, True, True]


def test_a_topic_that_has_gone_is_unknown(broker: NetBroker, served: list[bool | None]) -> None:
    client = broker.connect()
    for _ in range(2):
        send(client, 5)
        assert answers(client) == [(1, [0, 0])]
    request = m.DeleteTopicsRequest
    broker.call(request(topics=[request.DeleteTopicState(name=TOPIC)], timeout_ms=60_000), 6)
    send(client, 6)
    assert answers(client) == [(1, [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2)]
    assert served == [True]


def test_those_that_come_together_share_a_write(broker: NetBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    client, other = broker.connect(), broker.connect()
    for each in (client, other):
        send(each, 0)
        answers(each)
    writes: list[int] = []
    handle = replica(broker).log.handle
    append = handle.append

    def counted(parts: list[Any]) -> None:
        writes.append(len(parts))
        append(parts)

    monkeypatch.setattr(type(handle), "append", lambda _, parts: counted(parts))
    send(client, 1, number=1)
    client.send(b"".join(frame(request_for(broker, 8, 8), 8, number) for number in (2, 3)))
    send(other, 3, number=4)
    assert client.transport.writes == []
    assert answers(client) == [(1, [0, 0]), (2, [0, 0]), (3, [0, 0])]
    assert answers(other) == [(4, [0, 0])]
    assert writes == [3]  # batches: those that lie behind one another are one
    assert stored(broker)[TOPIC, 0][0] == 3


@pytest.mark.parametrize("step", [1, 7, 100, 150, 1 << 20])
def test_commits_behind_one_another(broker: NetBroker, served: list[bool | None], step: int) -> None:
    client = broker.connect()
    send(client, 0)
    answers(client)
    frames = [frame(request_for(broker, offset, 8), 8, offset) for offset in range(1, 11)]
    frames.insert(5, frame(m.HeartbeatRequest(group_id=GROUP, generation_id=1, member_id="x"), 4, 77))
    frames.insert(8, frame(request_for(broker, 78, 7), 7, 78))
    data = b"".join(frames)
    for at in range(0, len(data), step):
        client.send(data[at : at + step])
    for _ in range(4):
        broker.run()
    found = client.answers()
    assert [number for number, _ in found] == [1, 2, 3, 4, 5, 77, 6, 7, 78, 8, 9, 10]
    for number, data in found:
        if number < 77:
            answer = decode(ApiKey.OFFSET_COMMIT, 8, data)
            assert [each.error_code for each in answer.topics[0].partitions] == [0, 0]
    assert stored(broker)[TOPIC, 0][:3] == (10, -1, "here")
    assert stored(broker)[TOPIC, 2][:3] == (11, -1, "")
    assert None not in served
    assert step < 1 << 20 or len(served) == 3


def test_many_commits_behind_one_another(broker: NetBroker) -> None:
    client = broker.connect()
    send(client, 0)
    answers(client)
    client.send(b"".join(frame(request_for(broker, offset, 8), 8, offset) for offset in range(200)))
    found = [each for _ in range(20) for each in answers(client)]
    assert found == [(number, [0, 0]) for number in range(200)]
    assert stored(broker)[TOPIC, 0][0] == 199


def test_answers_keep_the_order_of_the_requests(broker: NetBroker) -> None:
    client = broker.connect()
    send(client, 0)
    client.send(frame(produce_request(TOPIC, 0, [b"x"]), 7, 1))
    broker.run()
    client.answers()
    send(client, 1, number=1)
    client.send(frame(produce_request(TOPIC, 0, [b"y"]), 7, 2))
    send(client, 2, number=3)
    fetch = m.OffsetFetchRequest
    asked = [fetch.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])]
    client.send(frame(fetch(group_id=GROUP, topics=asked), 7, 4))
    broker.run()
    found = client.answers()
    assert [number for number, _ in found] == [1, 2, 3, 4]
    answer = decode(ApiKey.OFFSET_FETCH, 7, found[3][1])
    assert answer.topics[0].partitions[0].committed_offset == 2  # it sees what came before it


def test_a_failed_write_refuses_them(broker: NetBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    client = broker.connect()
    for _ in range(2):
        send(client, 5)
        answers(client)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(type(replica(broker).log.handle), "append", full)
        send(client, 6, number=1)
        client.send(b"".join(frame(request_for(broker, 7, 8), 8, number) for number in (2, 3)))
        refused = [ErrorCode.NOT_COORDINATOR] * 2
        assert answers(client) == [(1, refused), (2, refused), (3, refused)]
    assert stored(broker)[TOPIC, 0][0] == 5
    send(client, 8)
    assert answers(client) == [(1, [0, 0])]
    assert stored(broker)[TOPIC, 0][0] == 8


def test_the_client_waits_while_replicas_do_not_have_it(broker: NetBroker) -> None:
    client, log = broker.connect(), replica(broker)
    send(client, 0)
    answers(client)
    log.isr = log.replicas = (1, 2)
    send(client, 1, number=1)
    send(client, 2, number=2)
    client.send(frame(m.ApiVersionsRequest(), 0, 3))
    broker.run()
    assert client.answers() == []
    log.isr = log.replicas = (1,)
    log.advance_high_watermark()
    log.wake()
    broker.run()
    assert [number for number, _ in client.answers()] == [1, 2, 3]
    assert stored(broker)[TOPIC, 0][0] == 2


def test_what_is_not_worth_remembering() -> None:
    def request(partitions: int, metadata: str = "") -> m.OffsetCommitRequest:
        topic = m.OffsetCommitRequest.OffsetCommitRequestTopic(
            name=TOPIC,
            partitions=[
                OF_PARTITION(partition_index=at, committed_offset=at, committed_metadata=metadata)
                for at in range(partitions)
            ],
        )
        return m.OffsetCommitRequest(group_id=GROUP, topics=[topic])

    asked = request(PARTITIONS_MAX)
    pieces = pieces_of(9, asked)
    assert pieces is not None
    assert len(pieces) == PARTITIONS_MAX + 1
    offsets = [each.committed_offset for each in asked.topics[0].partitions]
    assert offsets == list(range(PARTITIONS_MAX))  # it leaves the request as it was
    joined = b"".join(piece + at.to_bytes(8, "big") for at, piece in enumerate(pieces[:-1])) + pieces[-1]
    assert joined == asked.encode(9)
    assert pieces_of(9, request(PARTITIONS_MAX + 1)) is None
    assert pieces_of(9, request(1, "x" * BYTES_MAX)) is None
    assert pieces_of(9, m.OffsetCommitRequest(group_id=GROUP)) is None
