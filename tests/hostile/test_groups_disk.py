"""What groups keep on disk: crashes, a full disk, damaged segments, and records that somebody else has put
there. An offset commit that was acknowledged is never taken back (promises.md, 4).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from coordinator.placement import partition_for
from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from tests.hostile.groups import PARTITIONS, TOPIC, beating, commit, committed, join_and_sync, with_groups
from tests.hostile.test_damage import cut, overwrite
from tests.hostile.test_full_disk import BALLAST_BYTES, may_mount, small_disk
from tests.hostile.victim import Victim
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

OFFSETS = "__consumer_offsets"
OFFSETS_PARTITIONS = 4
SETTINGS = {
    "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
    "offsets.topic.segment.bytes": "1048576",
    "group.initial.rebalance.delay.ms": "0",
}
COMMITTERS = 4
COMMITS_A_CYCLE = 300
CYCLES = 2

__all__ = ["small_disk"]


@dataclass
class Committer:
    """Commits one offset after the other until its broker is gone, all partitions at once."""

    address: str
    group_id: str
    acknowledged: int = 0
    sent: int = 0
    errors: list[int] = field(default_factory=list)

    def run(self) -> None:
        try:
            with WireClient(self.address, "committer") as wire:
                while not self.errors:
                    self.sent += 1
                    offsets = dict.fromkeys(range(3), self.sent)
                    self.errors = [code for code in commit(wire, self.group_id, offsets, "m" * 300) if code]
                    if not self.errors:
                        self.acknowledged = self.sent
        except OSError:
            return


def test_kill_9_in_the_middle_of_commits() -> None:
    with Victim(SETTINGS) as victim:
        with_groups(victim)
        committers = [Committer(victim.address, f"g-{number}") for number in range(COMMITTERS)]
        with victim.wire() as wire:
            member = wire.send(beating("consumers", "a", [TOPIC]), 1)
            join_and_sync(wire, "classic", b"metadata", b"assignment")
        for _ in range(CYCLES):
            begun = sum(each.acknowledged for each in committers)
            threads = [threading.Thread(target=each.run) for each in committers]
            for thread in threads:
                thread.start()
            wait_until(
                lambda begun=begun: sum(each.acknowledged for each in committers) - begun > COMMITS_A_CYCLE,
                "the commits",
            )
            victim.broker.kill()
            for thread in threads:
                thread.join()
            victim.broker.start()
            with victim.wire() as wire:
                for each in committers:
                    assert each.errors == []
                    found = set(committed(wire, each.group_id).values())
                    assert len(found) == 1, (each, found)  # all partitions of a commit, or none
                    assert each.acknowledged <= found.pop() <= each.sent
                [group] = wire.send(m.ConsumerGroupDescribeRequest(group_ids=["consumers"]), 1).groups
                assert [each.member_epoch for each in group.members] == [member.member_epoch]
                [group] = wire.send(m.DescribeGroupsRequest(groups=["classic"]), 5).groups
                assert [each.member_assignment for each in group.members] == [b"assignment"]


def commit_until_it_fails(wire: WireClient, acknowledged: int) -> int:
    """The last commit that was acknowledged; those that are not are told so, and the broker lives on."""
    failed = 0
    while failed < 5:
        offsets = dict.fromkeys(range(PARTITIONS), acknowledged + 1)
        codes = set(commit(wire, "g", offsets, "m" * 4000))
        assert codes in ({0}, {ErrorCode.NOT_COORDINATOR})
        if codes == {0}:
            acknowledged += 1
        else:
            failed += 1
    return acknowledged


if may_mount():

    def test_a_full_disk_refuses_commits_and_takes_them_again_when_there_is_room(small_disk: Path) -> None:
        ballast = small_disk / "ballast"
        ballast.write_bytes(bytes(BALLAST_BYTES))
        with Victim(SETTINGS, small_disk.parent / "broker") as victim:
            victim.broker.overrides["log.dirs"] = str(small_disk / "data")
            victim.broker.stop()
            victim.broker.start()
            with_groups(victim)
            with victim.wire() as wire:
                full = commit_until_it_fails(wire, 0)
                assert full > 10
                assert set(committed(wire, "g").values()) == {full}
                joined = wire.send(beating("consumers", "a", [TOPIC]), 1)
                ballast.unlink()
                last = commit_until_it_fails(wire, full)
                assert last > full + 5
                assert set(committed(wire, "g").values()) == {last}
            assert joined.error_code in (0, ErrorCode.NOT_COORDINATOR)
            assert not [line for line in victim.lines() if "Traceback" in line or "offline" in line]
            victim.broker.kill()
            victim.broker.start()
            with victim.wire() as wire:
                assert set(committed(wire, "g").values()) == {last}


DAMAGE = {
    "a flipped byte": lambda log: overwrite(log, log.stat().st_size // 2, b"\xff"),
    "zeros": lambda log: overwrite(log, log.stat().st_size // 2, bytes(300)),
    "a flipped byte in the last batch": lambda log: overwrite(log, -20, b"\xff"),
    "cut off": lambda log: cut(log, 50),
}


@pytest.mark.parametrize("clean", [False, True])
def test_damaged_segments_end_no_start(clean: bool) -> None:
    """After a crash a log ends before what is damaged. After a stop in good order nobody looks, until the
    coordinator reads: what is damaged then has no coordinator, with one line; everybody else goes on.
    """
    groups = {partition_for(f"g-{number}", OFFSETS_PARTITIONS): f"g-{number}" for number in range(100)}
    with Victim(SETTINGS) as victim:
        with_groups(victim)
        with victim.wire() as wire:
            for number in range(1, 40):
                for group_id in groups.values():
                    assert commit(wire, group_id, {0: number}) == [0]
        if clean:
            assert victim.broker.stop() == 0
        else:
            victim.broker.kill()
        for partition, damage in enumerate(DAMAGE.values()):
            damage(max((victim.broker.log_dir / f"{OFFSETS}-{partition}").glob("*.log")))
        before = len(victim.lines())
        victim.broker.start()
        lines = victim.lines(before)
        assert not [line for line in lines if "Traceback" in line]
        lost = [line for line in lines if "no coordinator" in line]
        request = m.OffsetFetchRequest
        with victim.wire() as wire:
            refused = 0
            for group_id in groups.values():
                asked = request.OffsetFetchRequestGroup(group_id=group_id, topics=None)
                [group] = wire.send(request(groups=[asked]), 8).groups
                assert group.error_code in (0, ErrorCode.NOT_COORDINATOR)
                refused += group.error_code != 0
            assert refused == len(lost)
            assert (refused > 0) == clean
            assert wire.produce_values(TOPIC, b"goes on") == 0
        assert victim.broker.stop() == 0


KEYS = (
    b"",
    b"\0",
    b"\0\1junk",
    b"\0\2\0",
    b"\0\x7f",
    b"\0\3\0\1g",
    b"\0\5\0\1g\0\1m",
    b"\0\x0f\0\1g",
    b"\0\x10\0\1g\0\1(",
)
VALUES = (None, b"", b"\0\0junk", b"\0\3\xff", b"\x7f\0")


def test_records_that_no_coordinator_wrote_take_nothing_from_groups() -> None:
    """Clients may not write to the topic, as in Kafka; those with its admin's name may, and there Kafka can't
    load the partition any more.
    """
    stranger = m.GroupMetadataValue.MemberMetadata(
        member_id="a", group_instance_id="i", client_id="", client_host="", subscription=b"", assignment=b""
    )
    twice = m.GroupMetadataValue(protocol_type="consumer", protocol="range", members=[stranger] * 2)
    foreign = [(key, value) for key in KEYS for value in VALUES]
    foreign.append((b"\0\2\0\1s", b"\0\3" + twice.encode(3)))
    foreign.append((b"\0\1\0\1h\0\1t\0\0\0\0", bytes(30 << 20)))
    with Victim(SETTINGS) as victim:
        with_groups(victim)
        with victim.wire() as wire:
            assert commit(wire, "g", {0: 7}) == [0]
            batch = build_batch([Record(0, 1_700_000_000_000, b"k", b"v", ())])
            assert wire.produce(OFFSETS, batch).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
        with victim.wire("__admin_client") as wire:
            for partition in range(OFFSETS_PARTITIONS):
                for key, value in foreign:
                    batch = build_batch([Record(0, 1_700_000_000_000, key, value, ())], codec=4)
                    assert wire.produce(OFFSETS, batch, partition).error_code == 0
                many = [Record(each, 1_700_000_000_000, b"\0\x7f", bytes(1 << 20), ()) for each in range(40)]
                assert wire.produce(OFFSETS, build_batch(many, codec=4), partition).error_code == 0
        with victim.wire() as wire:
            assert commit(wire, "g", {1: 8}) == [0]
        assert victim.broker.stop() == 0
        before = len(victim.lines())
        victim.broker.start()
        lines = victim.lines(before)
        assert sum("that no coordinator wrote" in line for line in lines) == OFFSETS_PARTITIONS, lines
        assert not [line for line in lines if "Traceback" in line or " ERROR " in line]
        with victim.wire() as wire:
            assert committed(wire, "g") == {0: 7, 1: 8}
            assert commit(wire, "g", {0: 9}) == [0]
