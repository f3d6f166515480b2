"""The parent's side of the pipes, with a child that does what its script says."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from ottla.brokers import process
from ottla.brokers.plan import BrokerPlan
from ottla.brokers.process import BrokerProcess

PLAN = BrokerPlan(2, {"node.id": "2"})
OPENING = "import json, sys; plan = json.loads(sys.stdin.readline())\n"
READY = OPENING + "print(json.dumps({'ready': [['P', plan['settings']['node.id'], 9]]}), flush=True)\n"
OBEY = "for line in sys.stdin: print(line, end='', flush=True) if 'stop' not in line else sys.exit(5)\n"


def with_child(monkeypatch, script: str, story: Callable[[BrokerProcess], Awaitable[Any]]) -> Any:
    monkeypatch.setattr(process, "child_command", lambda *_: [sys.executable, "-c", script])

    async def play() -> Any:
        return await story(await BrokerProcess.start(PLAN))

    return asyncio.run(play())


def test_it_is_told_its_plan_and_then_what_to_do(monkeypatch) -> None:
    async def story(child: BrokerProcess) -> object:
        addresses = await child.ready()
        await child.wind_down()
        child.stop()
        return addresses, await child.ended()

    assert with_child(monkeypatch, READY + OBEY, story) == ([("P", "2", 9)], 5)


def test_one_that_ends_before_it_is_ready_says_so(monkeypatch) -> None:
    async def story(child: BrokerProcess) -> object:
        return await child.ready(), await child.ended()

    assert with_child(monkeypatch, OPENING + "sys.exit(1)", story) == (None, 1)


def test_half_an_answer_of_one_that_is_killed_is_none(monkeypatch) -> None:
    half = OPENING + "import os, signal; os.write(1, b'{\"ready'); os.kill(os.getpid(), signal.SIGKILL)"

    async def story(child: BrokerProcess) -> object:
        return await child.ready(), await child.ended()

    assert with_child(monkeypatch, half, story) == (None, -signal.SIGKILL)


def test_one_that_has_ended_can_be_told_anything(monkeypatch) -> None:
    async def story(child: BrokerProcess) -> int:
        await child.ready()
        child.kill()
        code = await child.ended()
        await child.wind_down()
        child.stop()
        child.kill()
        return code

    assert with_child(monkeypatch, READY + OBEY, story) == -signal.SIGKILL
