"""The clients of the groups part; each function without a leading underscore runs in a process of its own.

Every member has a connection of its own, as real ones have. Groups are formed by the real exchange of
JoinGroup and SyncGroup before anything is measured.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from bench.driver import Ring, call, connect, drive, receive_answer
from bench.group_member import Member, check_commit, check_heartbeat, rebalancing

SETTLE_SECONDS = 60.0
IDLE_SECONDS = 0.02  # without an answer: stable members ask whether they have to join again
_CHECKS: dict[str, Callable[[bytes], None]] = {"heartbeat": check_heartbeat, "commit": check_commit}


def full_speed(
    host: str, port: int, topic: str, kind: str, connections: int, depth: int, seconds: float, prefix: str
) -> dict[str, float]:
    """Heartbeats or commits as fast as they are answered, each connection for a group of one."""
    frames = []
    for i in range(connections):
        member = Member(f"{prefix}-{i}", topic, 1)
        with connect(host, port) as sock:
            _settle([member], [sock], [member.join()])
        frames.append(_frame(member, kind))
    rings = [Ring([frame], depth) for frame in frames]
    totals = drive((host, port), rings, depth, seconds, _CHECKS[kind])
    return {"answers": totals.answers, "seconds": totals.seconds}


def rebalance(
    host: str, port: int, topic: str, partitions: int, size: int, rounds: int, prefix: str
) -> dict[str, float]:
    """The leader joins again, the others hear of it and do so too: seconds from the last of these joins until
    the last member has its assignment; the median of `rounds`.
    """
    with ExitStack() as stack:
        sockets = [stack.enter_context(connect(host, port)) for _ in range(size)]
        members = [Member(prefix, topic, partitions) for _ in range(size)]
        _form(members, sockets)
        took = sorted(_rebalance(members, sockets) for _ in range(rounds))
        for member, sock in zip(members, sockets, strict=True):
            call(sock, member.leave())
    return {"seconds": took[rounds // 2]}


def steady(
    host: str,
    port: int,
    topic: str,
    kind: str,
    groups: int,
    size: int,
    rate: int,
    seconds: float,
    warm_up_seconds: float,
    prefix: str,
) -> dict[str, float]:
    """All members in turn at a steady rate; an answer's time counts from when its request was due.

    In milliseconds, and `began`, `ended` as the clock of `time.time` for whoever watches the broker.
    """
    with ExitStack() as stack:
        sockets = [stack.enter_context(connect(host, port)) for _ in range(groups * size)]
        frames = []
        for i in range(groups):
            members = [Member(f"{prefix}-{i}", topic, size) for _ in range(size)]
            _form(members, sockets[i * size : (i + 1) * size])
            frames += [_frame(member, kind) for member in members]
        _beat(sockets, frames, rate, warm_up_seconds, _CHECKS[kind])
        print("measuring", flush=True)
        late = sorted(_beat(sockets, frames, rate, seconds, _CHECKS[kind]))
    return {
        name: late[min(len(late) - 1, int(len(late) * q))] * 1e3 for name, q in (("p50", 0.5), ("p99", 0.99))
    }


def _frame(member: Member, kind: str) -> bytes:
    return member.heartbeat() if kind == "heartbeat" else member.commit()


def _beat(
    sockets: Sequence[socket.socket],
    frames: Sequence[bytes],
    rate: int,
    seconds: float,
    check: Callable[[bytes], None],
) -> list[float]:
    """Send the frames round and round, `rate` a second. The answers' times in seconds."""
    poll = select.epoll()
    for sock in sockets:
        poll.register(sock, select.EPOLLIN)
    by_fd = {sock.fileno(): (at, sock) for at, sock in enumerate(sockets)}
    due_of: list[list[float]] = [[] for _ in sockets]
    count, sent = int(rate * seconds), 0
    late: list[float] = []
    begin = time.perf_counter()
    while len(late) < count:
        now = time.perf_counter()
        while sent < count and now >= (due := begin + sent / rate):
            at = sent % len(sockets)
            due_of[at].append(due)
            sockets[at].sendall(frames[at])
            sent += 1
        wait = min(1.0, max(0.0, begin + sent / rate - now)) if sent < count else 1.0
        for fd, _ in poll.poll(wait):
            at, sock = by_fd[fd]
            check(receive_answer(sock))
            late.append(time.perf_counter() - due_of[at].pop(0))
        if now > begin + seconds + SETTLE_SECONDS:
            raise RuntimeError(f"{len(late)} of {count} requests were answered")
    poll.close()
    return late


def _form(members: Sequence[Member], sockets: Sequence[socket.socket]) -> None:
    """Form one group: the first member, then the others at once, who make it join again."""
    _settle(members[:1], sockets[:1], [members[0].join()])
    if len(members) > 1:
        _settle(members, sockets, [members[0].heartbeat(), *(each.join() for each in members[1:])])


def _rebalance(members: Sequence[Member], sockets: Sequence[socket.socket]) -> float:
    lead = next(at for at, member in enumerate(members) if member.leads)
    others = [at for at in range(len(members)) if at != lead]
    sockets[lead].sendall(members[lead].join())
    while not all(rebalancing(call(sockets[at], members[at].heartbeat())) for at in others):
        pass
    order = [lead, *others]
    frames = [None, *(members[at].join() for at in others)]
    return _settle([members[at] for at in order], [sockets[at] for at in order], frames)


def _settle(
    members: Sequence[Member], sockets: Sequence[socket.socket], first: Sequence[bytes | None]
) -> float:
    """Send each member's first frame and go on until all have an assignment of the same generation.

    No first frame: one is under way. Returns the seconds from the last first frame to the last assignment.
    """
    poll = select.epoll()
    by_fd = {sock.fileno(): at for at, sock in enumerate(sockets)}
    stable: dict[int, None] = {}
    asking = {at: None for at, member in enumerate(members) if first[at] == member.heartbeat()}
    for sock, frame in zip(sockets, first, strict=True):
        poll.register(sock, select.EPOLLIN)
        if frame is not None:
            sock.sendall(frame)
    begin = ended = time.perf_counter()
    while len(stable) < len(members) or len({member.generation for member in members}) > 1:
        events = poll.poll(IDLE_SECONDS)
        for at in stable if not events else ():
            asking[at] = None
            sockets[at].sendall(members[at].heartbeat())
        if not events:
            stable.clear()
        for fd, _ in events:
            at = by_fd[fd]
            frame = _next_frame(members[at], receive_answer(sockets[at]), at in asking)
            asking.pop(at, None)
            if frame is None:
                stable[at] = None
                ended = time.perf_counter()
            else:
                sockets[at].sendall(frame)
        if time.perf_counter() - begin > SETTLE_SECONDS:
            raise RuntimeError(f"{len(members) - len(stable)} of {len(members)} members did not settle")
    poll.close()
    return ended - begin


def _next_frame(member: Member, answer: bytes, asked: bool) -> bytes | None:
    if asked:
        return member.join() if rebalancing(answer) else None
    return member.answered(answer)
