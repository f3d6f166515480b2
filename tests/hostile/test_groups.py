"""Groups that take much, in few bytes or in many: memory, time of the loop, and what becomes of those who
have gone.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from protocol import messages as m
from tests.hostile.attacks import allow_descriptors, ask, connect, request_frame
from tests.hostile.groups import (
    LONG_SESSION_MS,
    TOPIC,
    beating,
    commit,
    committing,
    join_and_sync,
    joining,
    subscription,
    with_groups,
)
from tests.hostile.victim import MIB, NORMAL_CLIENT_S, STRANGER_BYTES, Victim
from tests.support.waiting import wait_until

SETTINGS = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1000"}
NAMES = [f"a-topic-that-is-not-there-{number}" for number in range(20_000)]


@contextmanager
def attacked() -> Iterator[Victim]:
    with Victim(SETTINGS) as started:
        with_groups(started)
        yield started
        assert started.serves()
        assert not [line for line in started.lines() if "Traceback" in line or " ERROR " in line]


@pytest.fixture
def victim() -> Iterator[Victim]:
    with attacked() as started:
        yield started


@pytest.fixture(scope="module")
def shared() -> Iterator[Victim]:
    """For attacks that leave nothing behind."""
    with attacked() as started:
        yield started


# -- much from little: one thing that is there, asked for again and again


def offsets_many_times(victim: Victim) -> tuple[bytes, int]:
    with victim.wire() as wire:
        assert commit(wire, "offsets-many-times", dict.fromkeys(range(100), 7), "m" * 4000) == [0] * 100
    request = m.OffsetFetchRequest
    group = request.OffsetFetchRequestGroup(group_id="offsets-many-times", topics=None)
    return request_frame(request(groups=[group] * 20_000), 8), 8 * MIB


def partitions_many_times(victim: Victim) -> tuple[bytes, int]:
    with victim.wire() as wire:
        assert commit(wire, "partitions-many-times", {0: 7}, "m" * 4000) == [0]
    request = m.OffsetFetchRequest
    topic = request.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0] * 90_000)
    return request_frame(request(group_id="partitions-many-times", topics=[topic]), 7), MIB


def deleted_many_times(victim: Victim) -> tuple[bytes, int]:
    with victim.wire() as wire:
        join_and_sync(wire, "deleted-many-times", subscription(NAMES))
    request = m.OffsetDeleteRequest
    partition = request.OffsetDeleteRequestPartition(partition_index=0)
    topic = request.OffsetDeleteRequestTopic(name=TOPIC, partitions=[partition] * 50_000)
    return request_frame(request(group_id="deleted-many-times", topics=[topic]), 0), MIB


def deleted_many_times_by_name(victim: Victim) -> tuple[bytes, int]:
    with victim.wire() as wire:
        assert wire.send(beating("deleted-many-times-by-name", "a", NAMES), 1).error_code == 0
    request = m.OffsetDeleteRequest
    partition = request.OffsetDeleteRequestPartition(partition_index=0)
    topics = [request.OffsetDeleteRequestTopic(name=TOPIC, partitions=[partition])] * 30_000
    return request_frame(request(group_id="deleted-many-times-by-name", topics=topics), 0), MIB


def described_many_times(victim: Victim) -> tuple[bytes, int]:
    with victim.wire() as wire:
        join_and_sync(wire, "described-many-times", b"m" * 500_000, b"a" * 400_000)
    return request_frame(m.DescribeGroupsRequest(groups=["described-many-times"] * 20_000), 5), 2 * MIB


def consumers_described_many_times(victim: Victim) -> tuple[bytes, int]:
    with victim.wire() as wire:
        assert wire.send(beating("consumers-described-many-times", "a", NAMES), 1).error_code == 0
    return request_frame(
        m.ConsumerGroupDescribeRequest(group_ids=["consumers-described-many-times"] * 20_000), 1
    ), 2 * MIB


def sharers_described_many_times(victim: Victim) -> tuple[bytes, int]:
    with victim.wire() as wire:
        request = m.ShareGroupHeartbeatRequest(
            group_id="sharers-described-many-times", member_id="a", subscribed_topic_names=NAMES
        )
        assert wire.send(request, 1).error_code == 0
    return request_frame(
        m.ShareGroupDescribeRequest(group_ids=["sharers-described-many-times"] * 20_000), 1
    ), 2 * MIB


def share_offsets_many_times(victim: Victim) -> tuple[bytes, int]:
    request = m.DescribeShareGroupOffsetsRequest
    topic = request.DescribeShareGroupOffsetsRequestTopic
    topics = [topic(topic_name=TOPIC, partitions=list(range(half, half + 20_000))) for half in (0, 20_000)]
    group = request.DescribeShareGroupOffsetsRequestGroup(group_id="share-offsets-many-times", topics=topics)
    return request_frame(request(groups=[group]), 1), 8 * MIB


def absent_ones(victim: Victim) -> tuple[bytes, int]:
    names = [f"no-{number}" for number in range(90_000)]
    return request_frame(m.DescribeGroupsRequest(groups=names), 5), 8 * MIB


def deleted_ones(victim: Victim) -> tuple[bytes, int]:
    names = [f"no-{number}" for number in range(90_000)]
    return request_frame(m.DeleteGroupsRequest(groups_names=names), 2), 8 * MIB


@pytest.mark.parametrize(
    "attack",
    [
        offsets_many_times,
        partitions_many_times,
        deleted_many_times,
        deleted_many_times_by_name,
        described_many_times,
        consumers_described_many_times,
        sharers_described_many_times,
        share_offsets_many_times,
        absent_ones,
        deleted_ones,
    ],
)
def test_one_request_that_asks_for_very_much(
    shared: Victim, attack: Callable[[Victim], tuple[bytes, int]]
) -> None:
    data, answer_bytes = attack(shared)
    with shared.normal_client() as client, shared.memory() as memory:
        size = ask(shared, data)
    assert size is not None
    assert size < answer_bytes
    assert (client.errors, client.worst_s < NORMAL_CLIENT_S) == (0, True), client
    assert memory.peak_growth < STRANGER_BYTES, memory


# -- much from much: what members bring stays until their sessions end


def big_metadata() -> list[bytes]:
    """300 MiB for half an hour."""
    frame = request_frame(joining("g", [("range", bytes(15 * MIB))], session_ms=LONG_SESSION_MS), 3)
    return [frame] * 20


def many_protocols() -> list[bytes]:
    protocols = [(f"protocol-{number}", b"x") for number in range(45_000)]
    return [request_frame(joining("g", protocols, session_ms=LONG_SESSION_MS), 3)] * 20


def many_names() -> list[bytes]:
    """As many as a record can hold, in twenty members."""
    names = [[f"{member}-{number}" * 2 for number in range(40_000)] for member in range(20)]
    return [request_frame(beating("g", f"m{member}", each), 1) for member, each in enumerate(names)]


@pytest.mark.parametrize("attack", [big_metadata, many_protocols, many_names])
def test_members_that_bring_megabytes(victim: Victim, attack: Callable[[], list[bytes]]) -> None:
    """Those that are too many hear 15; a member as others are still finds room."""
    frames = attack()
    with victim.normal_client() as client, victim.memory() as memory, ExitStack() as stack:
        peers = [stack.enter_context(connect(victim)) for _ in frames]
        for peer, data in zip(peers, frames, strict=True):
            peer.sendall(data)
        with victim.wire() as wire:
            join_and_sync(wire, "another", subscription(["t"]))
    assert (client.errors, client.worst_s < NORMAL_CLIENT_S) == (0, True), client
    assert memory.peak_growth < STRANGER_BYTES, memory


def test_everything_that_members_brought_is_told_again_and_again(victim: Victim) -> None:
    frames = many_names()
    for data in frames:
        assert ask(victim, data) is not None
    with victim.normal_client() as client, victim.memory() as memory:
        for _ in range(2):
            data = request_frame(m.ConsumerGroupDescribeRequest(group_ids=["g"] * 20_000), 1)
            assert ask(victim, data) is not None
    assert (client.errors, client.worst_s < NORMAL_CLIENT_S) == (0, True), client
    assert memory.peak_growth < STRANGER_BYTES, memory


def test_ids_that_nobody_uses_are_forgotten_and_have_an_end(victim: Victim) -> None:
    """KIP-394: an id is handed out at once, with no end of groups and of 32 KiB names."""
    name = "c" * 30_000
    with victim.normal_client() as client, victim.memory() as memory, victim.wire(name) as wire:
        codes = []
        for first in range(0, 1500, 10):
            frames = [
                request_frame(joining(f"g-{number}", [("range", b"")], session_ms=3000), 4, name)
                for number in range(first, first + 10)
            ]
            wire.write(b"".join(frames))
            codes += [int.from_bytes(wire.read_frame()[8:10], "big") for _ in frames]
    assert set(codes) == {15, 79}
    assert (client.errors, client.worst_s < NORMAL_CLIENT_S) == (0, True), client
    assert memory.peak_growth < STRANGER_BYTES, memory
    with victim.wire() as wire:
        wait_until(lambda: not wire.send(m.ListGroupsRequest(), 4).groups, "the ids to be forgotten")
        join_and_sync(wire, "g", b"as ever")


def test_thousands_of_groups_that_commit(victim: Victim) -> None:
    """What one costs does not grow with what was sent: 2.4 KB each here."""
    with victim.normal_client() as client, victim.memory() as memory, victim.wire() as wire:
        for first in range(0, 4000, 500):
            numbers = range(first, first + 500)
            wire.write(b"".join(request_frame(committing(f"g-{each}", {0: 1}), 8) for each in numbers))
            for _ in numbers:
                assert wire.read_frame()
        assert len(wire.send(m.ListGroupsRequest(), 4).groups) == 4000
    assert (client.errors, client.worst_s < NORMAL_CLIENT_S) == (0, True), client
    assert memory.growth < 4000 * 8000, memory


def test_thousands_that_join_and_are_gone(victim: Victim) -> None:
    """Cut off while they are parked: they are members until their sessions end."""
    count = min(2000, allow_descriptors(2500) - 500)
    data = request_frame(joining("g", [("range", b"x")], session_ms=LONG_SESSION_MS), 3)
    descriptors = victim.descriptors()
    with victim.normal_client() as client, victim.memory() as memory:
        peers: list[socket.socket] = []
        for _ in range(count):
            peers.append(connect(victim))
            peers[-1].sendall(data)
        for peer in peers:
            peer.close()
        wait_until(lambda: victim.descriptors() < descriptors + 20, "the connections to be closed")
        with victim.wire() as wire:
            answer = wire.send(m.DescribeGroupsRequest(groups=["g"]), 5).groups[0]
            assert len(answer.members) == count
    assert (client.errors, client.worst_s < NORMAL_CLIENT_S) == (0, True), client
    assert memory.growth < 32 * MIB, memory


def test_a_group_that_is_larger_than_a_record_stays_without_assignment(victim: Victim) -> None:
    """As in Kafka: the leader's SyncGroup fails, everybody joins again, and smaller ones get on."""
    with victim.wire() as wire:
        member_id, generation = "", 0
        for _ in range(3):
            large = joining("g", [("range", bytes(2 * MIB))], member_id, session_ms=LONG_SESSION_MS)
            answer = wire.send(large, 3)
            assert (answer.error_code, answer.generation_id > generation) == (0, True), answer
            member_id, generation = answer.member_id, answer.generation_id
            sync = m.SyncGroupRequest(group_id="g", generation_id=generation, member_id=member_id)
            assert wire.send(sync, 2).error_code == -1
        small = joining("g", [("range", b"small")], member_id, session_ms=LONG_SESSION_MS)
        answer = wire.send(small, 3)
        sync = m.SyncGroupRequest(group_id="g", generation_id=answer.generation_id, member_id=member_id)
        assert wire.send(sync, 2).error_code == 0
        assert wire.send(beating("new", "a", [name * 3 for name in NAMES]), 1).error_code == -1
        assert wire.send(beating("new", "a", [TOPIC]), 1).error_code == 0


REGEXES = {
    "(a*)*b": 0,
    "(.*.*.*.*.*.*.*.*.*.*)*x": 0,
    ".*" * 8000: 0,
    "a|" * 16_000: 0,
    "[" + "a-z" * 9000 + "]": 0,
    "((x{100}){100}){100}": 128,
    "\\pL{1000}": 128,
    "(?:" * 10_000: 128,
    "((" * 5000: 128,
    "(": 128,
    "(?<=a)b": 128,
}


def test_regular_expressions_that_take_for_ever_elsewhere(shared: Victim) -> None:
    with shared.normal_client() as client, shared.memory() as memory, shared.wire() as wire:
        for number, (regex, code) in enumerate(REGEXES.items()):
            answer = wire.send(beating(f"regex-{number}", "a", regex=regex), 1)
            assert answer.error_code == code, (regex[:30], answer)
    assert (client.errors, client.worst_s < NORMAL_CLIENT_S) == (0, True), client
    assert memory.peak_growth < 64 * MIB, memory


def test_a_member_that_owns_a_million_partitions(shared: Victim) -> None:
    """It owns none of them. Those who say more than a request may hold are cut off."""
    place = m.ConsumerGroupHeartbeatRequest.TopicPartitions
    with shared.normal_client() as client, shared.memory() as memory, shared.wire() as wire:
        epoch = wire.send(beating("owner", "a", [TOPIC]), 1).member_epoch
        for number in range(10):
            owned = [place(topic_id=bytes([number]) * 16, partitions=list(range(95_000)))]
            answer = wire.send(beating("owner", "a", epoch=epoch, owned=owned), 1)
            assert answer.error_code == 0, answer
            epoch = answer.member_epoch
        owned = [place(topic_id=bytes(16), partitions=list(range(1_000_000)))]
        assert ask(shared, request_frame(beating("owner", "a", epoch=epoch, owned=owned), 1)) is None
    assert (client.errors, client.worst_s < NORMAL_CLIENT_S) == (0, True), client
    assert memory.peak_growth < 64 * MIB, memory
