"""Requests from those who exist and others, so many of them, and what a broker is like then and restarted.

Who exists is introduced to the mutator now and then, so that much of what it sends gets as far as it can.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress

from protocol import messages as m
from protocol.headers import decode_response_header
from tests.hostile.knowing_mutator import KnowingMutator
from tests.hostile.victim import NORMAL_CLIENT_S, STRANGER_BYTES, Victim
from tests.support.wire_client import WireClient

INTRODUCE_EVERY = 50
ANSWER_S = 0.02
PARKED_S = 0.3
LINE = re.compile(r"\[\d{4}-\d\d-\d\d |Try it: ")


def ask(victim: Victim, mutator: KnowingMutator) -> None:
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


def survives(
    victim: Victim,
    mutator: KnowingMutator,
    requests: int,
    introduce: Callable[[int], None],
    check_restarted: Callable[[int], None],
) -> str:
    """Send so many requests and restart the broker; a line with what was done.

    `introduce(number)` has somebody new exist, `check_restarted(line)` looks at the broker after its restart,
    whose log begins with that line.
    """
    before = victim.rss()
    with victim.normal_client() as client:
        for number in range(requests):
            if number % INTRODUCE_EVERY == 0:
                introduce(number)
            ask(victim, mutator)
    grown = victim.rss() - before
    assert (client.errors, client.worst_s < NORMAL_CLIENT_S) == (0, True), client
    assert grown < STRANGER_BYTES
    check_lines(victim.lines())
    known = len(victim.lines())
    assert victim.broker.stop() == 0
    victim.broker.start()
    check_restarted(known)
    lines = victim.lines(known)
    check_lines(lines)
    assert not [line for line in lines if "no coordinator" in line], lines
    return f"{requests} requests, worst {client.worst_s:.3f} s, +{grown >> 20} MiB"
