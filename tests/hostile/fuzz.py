"""Throws mutated frames at a running broker, and looks at it between them.

    python -m tests.hostile.fuzz --seconds 300 [--seed 7]

After each round a normal client must be served, memory must be flat, and the log must hold no trace of an
exception. At the end every stored batch must be readable with a right checksum, and the broker must stop in
good order and start again.
"""

from __future__ import annotations

import argparse
import random
import socket
import struct
import time
from contextlib import suppress

from protocol import messages as m
from protocol.records.batch import batches, read_header, records
from protocol.records.crc import crc32c
from tests.hostile.attacks import connect
from tests.hostile.mutations import TOPICS, Mutator
from tests.hostile.victim import NORMAL_CLIENT_S, STRANGER_BYTES, Victim
from tests.support.pulse import Pulse
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

ROUND_FRAMES = 200
ANSWER_S = 0.02
CONFIGS: dict[str, tuple[str, str]] = {
    "fuzz-compacted": ("cleanup.policy", "compact"),
    "fuzz-gzip": ("compression.type", "gzip"),
}


def prepare(victim: Victim) -> list[bytes]:
    """The topics that requests name; their ids. Requests may have deleted them; some, that nobody waits for
    any more, may yet delete or make one.
    """
    ids: list[bytes] = []
    with victim.wire() as wire:

        def all_are_there() -> bool:
            found = wire.metadata(*TOPICS, allow_auto_topic_creation=False).topics
            ids[:] = [bytes(topic.topic_id) for topic in found if not topic.error_code]
            missing = [topic.name for topic in found if topic.error_code]
            if missing:
                wire.send(m.CreateTopicsRequest(topics=[wanted(name) for name in missing]), 7)
            return not missing

        wait_until(all_are_there, "the topics to be there")
    return ids


def wanted(name: str) -> m.CreateTopicsRequest.CreatableTopic:
    request = m.CreateTopicsRequest
    configs = [CONFIGS[name]] if name in CONFIGS else []
    return request.CreatableTopic(
        name=name,
        num_partitions=2,
        replication_factor=1,
        configs=[request.CreatableTopicConfig(name=key, value=value) for key, value in configs],
    )


def throw(victim: Victim, data: bytes) -> None:
    """One frame on a connection of its own, and what comes back, if it comes soon."""
    with suppress(OSError), connect(victim) as peer:
        peer.sendall(data)
        peer.settimeout(ANSWER_S)
        peer.recv(1 << 16)


def throw_many(victim: Victim, frames: list[bytes]) -> None:
    """All on one connection, in pieces of any size."""
    data = b"".join(frames)
    with suppress(OSError), connect(victim) as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        for at in range(0, len(data), 1000):
            peer.sendall(data[at : at + 1000])
        peer.settimeout(ANSWER_S)
        peer.recv(1 << 16)


def look_at(victim: Victim, wire: WireClient, rss: int, lines: int, what: str) -> int:
    """The checks between rounds; the number of log lines so far."""
    with Pulse() as pulse:
        begun = pulse.now_s()
        offset = wire.produce_values("steady", what.encode())
        answer = wire.fetch("steady", offset)
        took = pulse.now_s() - begun
    assert [each.value for each in records(answer.records)] == [what.encode()], what
    assert took < NORMAL_CLIENT_S, (what, took)
    grown = victim.rss() - rss
    assert grown < STRANGER_BYTES, (what, grown)
    found = victim.lines(lines)
    bad = [line for line in found if "Traceback" in line or " ERROR " in line or " CRITICAL " in line]
    assert not bad, "\n".join([what, *found[found.index(bad[0]) :][:40]])
    assert len(found) < 2 * ROUND_FRAMES + 100, (what, found[-3:])
    return lines + len(found)


def read_everything(victim: Victim) -> int:
    """Read each partition to its end; how many batches there were. Every checksum must be right."""
    seen = 0
    with victim.wire() as wire:
        for topic in wire.send(m.MetadataRequest(topics=None), 12).topics:
            for partition in topic.partitions:
                seen += read_partition(wire, topic.name, partition.partition_index)
    return seen


def read_partition(wire: WireClient, topic: str, partition: int) -> int:
    offset = wire.list_offset(topic, -2, partition).offset
    end = wire.list_offset(topic, -1, partition).offset
    seen = 0
    while offset < end:
        answer = wire.fetch(topic, offset, partition)
        assert answer.error_code == 0, (topic, partition, offset, answer)
        found = list(batches(answer.records))
        assert found, (topic, partition, offset, end)
        for at, size in found:
            head = read_header(answer.records, at)
            assert head.crc == crc32c(answer.records[at + 21 : at + size]), (topic, partition, head)
            assert len(list(records(answer.records[at : at + size]))) == head.record_count
            offset = head.last_offset + 1
            seen += 1
    return seen


def fuzz(seed: int, seconds: float, rounds: int) -> str:
    """Fuzz a broker of its own for so long, and so many rounds at most; a line with what was done."""
    chance = random.Random(seed)
    thrown = done = 0
    with Victim() as victim, victim.wire() as wire:
        wire.create_topic("steady")
        versions = wire.versions()
        rss, lines = victim.rss(), len(victim.lines())
        end = time.monotonic() + seconds
        while time.monotonic() < end and done < rounds:
            mutator = Mutator(chance, prepare(victim))
            frames = [mutator.frame(versions) for _ in range(ROUND_FRAMES)]
            half = ROUND_FRAMES // 2
            for data in frames[:half]:
                throw(victim, data)
            for at in range(half, ROUND_FRAMES, 10):
                throw_many(victim, frames[at : at + 10])
            thrown += len(frames)
            done += 1
            lines = look_at(victim, wire, rss, lines, f"seed {seed}, round {done}")
        grown = (victim.rss() - rss) >> 20
        seen = read_everything(victim)
        assert seen > done, "none of the produced batches was stored"
        assert victim.broker.stop() == 0
        victim.broker.start()
        assert read_everything(victim) == seen
    return f"seed {seed}: {thrown} frames in {done} rounds, {seen} batches stored, +{grown} MiB"


def main() -> None:
    parser = argparse.ArgumentParser(description="Fuzz a running broker.")
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}", flush=True)
    print(fuzz(chosen.seed, chosen.seconds, 1 << 30))


if __name__ == "__main__":
    main()
