"""Requests about groups of all kinds from members that exist and others, so many of them.

Nothing that a client sends may end in an exception, in a second line of the log, in an answer that does not
parse, or in a group that can't be loaded again.
"""

from __future__ import annotations

import random

from protocol import messages as m
from tests.hostile.fuzz import prepare
from tests.hostile.group_mutations import GroupMutator
from tests.hostile.groups import beating, joining, subscription
from tests.hostile.knowing_fuzz import survives
from tests.hostile.mutations import TOPICS
from tests.hostile.victim import Victim

SEED = 4
REQUESTS = 2000
SETTINGS = {"group.min.session.timeout.ms": "10", "group.initial.rebalance.delay.ms": "10"}


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

        def check_restarted(_: int) -> None:
            with victim.wire() as wire:
                assert wire.send(m.ListGroupsRequest(), 4).error_code == 0

        done = survives(
            victim, mutator, requests, lambda number: join(victim, mutator, number), check_restarted
        )
    return f"seed {seed}: {done}"


def test_a_running_broker_survives_requests_about_groups() -> None:
    print(fuzz_groups(SEED, REQUESTS))
