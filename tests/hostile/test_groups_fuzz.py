"""Requests about groups of all kinds from members that exist and others, so many of them.

Nothing that a client sends may end in an exception, in a second line of the log, in an answer that does not
parse, or in a group that can't be loaded again.
"""

from __future__ import annotations

import random
import re
from contextlib import suppress

from protocol import messages as m
from protocol.headers import decode_response_header
from tests.hostile.fuzz import prepare
from tests.hostile.group_mutations import GroupMutator
from tests.hostile.groups import beating, joining, subscription
from tests.hostile.mutations import TOPICS
from tests.hostile.victim import NORMAL_CLIENT_S, STRANGER_BYTES, Victim
from tests.support.wire_client import WireClient

SEED = 4
REQUESTS = 2000
JOIN_EVERY = 50
SETTINGS = {"group.min.session.timeout.ms": "10", "group.initial.rebalance.delay.ms": "10"}
ANSWER_S = 0.02
PARKED_S = 0.3
LINE = re.compile(r"\[\d{4}-\d\d-\d\d |Try it: ")


def join(victim: Victim, mutator: GroupMutator, number: int) -> None:
    """A new group of each kind, and its first member, in whose name the mutator then speaks."""
    group = f"joined-{number}"
    sharing = m.ShareGroupHeartbeatRequest(
        group_id=f"s-{group}", member_id=f"s-{number}", subscribed_topic_names=list(TOPICS)
    )
    joins = (
        (joining(f"c-{group}", [("range", subscription(TOPICS))]), 3),
        (beating(f"m-{group}", f"m-{number}", TOPICS), 1),
        (sharing, 1),
    )
    with victim.wire() as wire:
        for request, version in joins:
            answer = wire.send(request, version)
            assert answer.error_code == 0, answer
            mutator.learn(request.API_KEY, version, bytes(request.encode(version)), answer)


def ask(victim: Victim, mutator: GroupMutator) -> None:
    """One request, on a connection of its own, and what its answer teaches."""
    key, version, body = mutator.request()
    patience = PARKED_S if mutator.chance.random() < 0.1 else ANSWER_S
    with suppress(TimeoutError, ConnectionError), WireClient(victim.address, "fuzz", patience) as wire:
        wire.write_request(key, version, body)
        answer = wire.read_frame()
        _, at = decode_response_header(key, version, answer)
        response, _ = m.response_class(key).decode(version, answer, at)
        mutator.learn(key, version, body, response)


def check_lines(lines: list[str]) -> None:
    """One line for each message, no exception, no error."""
    for number, line in enumerate(lines):
        wrong = not LINE.match(line) or " ERROR " in line or " CRITICAL " in line
        assert not wrong, "\n".join(text[:500] for text in lines[max(number - 1, 0) : number + 40])


def fuzz_groups(seed: int, requests: int) -> str:
    """See the module; a line with what was done."""
    with Victim(SETTINGS) as victim:
        with victim.wire() as wire:
            versions = wire.versions()
            wire.send(m.FindCoordinatorRequest(key="g1"), 3)
            wire.send(
                m.FindCoordinatorRequest(coordinator_keys=["g:AAAAAAAAAAAAAAAAAAAAAQ:0"], key_type=2), 6
            )
        mutator = GroupMutator(random.Random(seed), prepare(victim), versions)
        before = victim.rss()
        with victim.normal_client() as client:
            for number in range(requests):
                if number % JOIN_EVERY == 0:
                    join(victim, mutator, number)
                ask(victim, mutator)
        grown = victim.rss() - before
        assert (client.errors, client.worst_s < NORMAL_CLIENT_S) == (0, True), client
        assert grown < STRANGER_BYTES
        check_lines(victim.lines())
        known = len(victim.lines())
        assert victim.broker.stop() == 0
        victim.broker.start()
        with victim.wire() as wire:
            assert wire.send(m.ListGroupsRequest(), 4).error_code == 0
        lines = victim.lines(known)
        check_lines(lines)
        assert not [line for line in lines if "no coordinator" in line], lines
    return f"seed {seed}: {requests} requests, worst {client.worst_s:.3f} s, +{grown >> 20} MiB"


def test_a_running_broker_survives_requests_about_groups() -> None:
    print(fuzz_groups(SEED, REQUESTS))
