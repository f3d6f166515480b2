"""Memory that the members of all groups share: who is let in, and that all of it comes back."""

from __future__ import annotations

import gc

from coordinator.group.classic import events as ev
from coordinator.group.room import (
    RESOLVED_TOPIC_BYTES,
    SMALL_BYTES,
    Claim,
    Room,
    assigned_size,
    names_size,
    protocols_size,
)
from protocol.errors import ErrorCode
from tests.unit.coordinator.group.classic.play import Play as ClassicPlay
from tests.unit.coordinator.group.consumer.play import GROUP, Play, together
from tests.unit.coordinator.group.share.play import GROUP as SHARE_GROUP
from tests.unit.coordinator.group.share.play import Play as SharePlay
from tests.unit.coordinator.group.share.play import settled

LIMIT = 200_000


def test_what_is_large_gets_half_and_what_is_small_everything() -> None:
    room = Room(LIMIT)
    assert room.has(LIMIT // 2)
    assert not room.has(LIMIT // 2 + 1)
    held = Claim(room, LIMIT // 2)
    assert not room.has(SMALL_BYTES + 1)
    assert room.has(SMALL_BYTES)
    rest = Claim(room, LIMIT // 2)
    assert not room.has(1)
    assert room.has(0)
    assert room.has(-5)  # who takes less than before is never refused
    del held
    assert room.taken == rest.size


def test_sizes_are_about_what_the_objects_take() -> None:
    assert protocols_size([("p", b"")] * 1000) > 100 * 1000
    assert protocols_size([("p", bytes(1_000_000))]) > 1_000_000
    assert names_size(["t"] * 1000) > 49 * 1000
    assert names_size(["\U0001f600" * 1000]) > 4000


def test_classic_members_give_their_room_back_however_they_go() -> None:
    room = Room(LIMIT)
    play = ClassicPlay(ev.GroupSettings(initial_rebalance_delay_ms=0, room=room))
    big = "protocols=range:" + "x" * 40_000
    play.run(f"""
        join a v=3 {big}     | a joined 1 range, leader a of a
        sync a assign=a:part | a synced 'part'
        join b               | b join MEMBER_ID_REQUIRED
    """)
    assert room.taken > 40_000
    full = room.taken
    play.run(f"join c v=3 protocols=range:{'x' * 90_000} | c join COORDINATOR_NOT_AVAILABLE")
    assert room.taken == full
    play.run("wait 10000 |")  # the session of a, and the time for b to use its id
    gc.collect()
    assert play.existing().members == {}
    assert room.taken == 0


def test_an_assignment_takes_room_too() -> None:
    room = Room(LIMIT)
    play = ClassicPlay(ev.GroupSettings(initial_rebalance_delay_ms=0, room=room))
    play.run("join a v=3 | a joined 1 range, leader a of a")
    before = room.taken
    play.run(f"sync a assign=a:{'x' * 110_000} | a sync COORDINATOR_NOT_AVAILABLE")
    play.run(f"sync a assign=a:{'x' * 50_000} | a synced '{'x' * 50_000}'")
    assert room.taken == before + 50_000


def test_a_group_that_is_loaded_counts_and_one_that_is_unloaded_does_not() -> None:
    room = Room(LIMIT)
    play = ClassicPlay(ev.GroupSettings(initial_rebalance_delay_ms=0, room=room))
    play.run("""
        join a v=3           | a joined 1 range, leader a of a
        sync a assign=a:part | a synced 'part'
    """)
    taken = room.taken
    play.run("reload |")
    gc.collect()
    assert room.taken == taken
    play.run("unload |")
    play.group = None
    gc.collect()
    assert room.taken == 0


def test_members_of_newer_groups_take_room_and_give_it_back() -> None:
    play = Play({"t": 1})
    room = play.room
    room.limit_bytes = LIMIT
    a = play.client("a", "t", *[f"topic-{number}" for number in range(1000)])
    assert a.join().error_code == 0
    assert room.taken > 50_000
    b = play.client("b", *[f"topic-{number}" for number in range(1000)])
    answer = b.join()
    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "memory" in answer.error_message
    assert play.client("c", "t").join().error_code == 0
    a.leave()
    gc.collect()
    assert room.taken < 10_000
    assert b.join().error_code == 0


def test_members_that_were_not_written_take_no_room() -> None:
    play = Play({"t": 1})
    play.auto_commit = False
    play.client("a", *[f"topic-{number}" for number in range(1000)]).join()
    assert play.room.taken > 50_000
    play.topic.fail(ErrorCode.KAFKA_STORAGE_ERROR)
    gc.collect()
    assert play.room.taken == 0


def test_what_is_assigned_has_a_room_of_its_own_and_gives_it_back() -> None:
    play = Play({"t": 10, "u": 5})
    room = play.shard.assigned_room
    a, b = play.client("a", "t"), play.client("b", "t", "u", regex="u.*")
    a.join()
    assert room.taken == assigned_size({b"t": range(10)})
    b.join()
    play.settle()
    together(a, b)
    targets = play.tables.targets.row(GROUP)
    matched = RESOLVED_TOPIC_BYTES  # of the expression: one topic
    assert room.taken == sum(map(assigned_size, targets.values())) + matched
    play.restart()
    again = play.shard.assigned_room
    assert again.taken == sum(map(assigned_size, targets.values())) + matched
    a.leave()
    b.leave()
    assert again.taken == 0


def test_a_group_that_finds_no_room_goes_on_with_what_it_has_until_there_is_some() -> None:
    play = Play({"t": 4, "u": 4})
    room = play.shard.assigned_room
    a = play.client("a", "t")
    a.join()
    room.limit_bytes = room.taken
    a.topics = ("t", "u")
    assert a.join().error_code == ErrorCode.NONE
    assert a.partitions() == [0, 1, 2, 3]
    b = play.client("b", regex="u.*")
    assert b.join().error_code == ErrorCode.NONE
    play.settle()
    assert play.tables.regexes.row(GROUP) == {}
    assert play.described().group_state == "Assigning"
    room.limit_bytes *= 10
    b.beat()
    play.settle()
    together(a, b)
    assert sorted(a.partitions("u") + b.partitions("u")) == [0, 1, 2, 3]


def test_what_is_assigned_to_share_groups_takes_room_too() -> None:
    play = SharePlay({"t": 4})
    room = play.shard.assigned_room
    a, b = play.client("a"), play.client("b")
    settled(play, a, b)
    full = sum(map(assigned_size, play.groups.tables.targets.row(SHARE_GROUP).values()))
    assert room.taken == full
    room.limit_bytes = full
    play.topics.put("t", 8)
    a.beat()
    play.answer()
    a.beat()
    assert sorted(a.partitions() + b.partitions()) == [0, 1, 2, 3]
    room.limit_bytes *= 10
    for client in (a, b):
        client.beat()
    assert sorted(a.partitions() + b.partitions()) == list(range(8))
