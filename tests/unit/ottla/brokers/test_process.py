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
READY = OPENING + "print(json.dumps({'ready': plan}), flush=True)\n"
OBEY = "for line in sys.stdin: print(line, end='', flush=True) if 'stop' not in line else sys.exit(5)\n"


def with_child(monkeypatch, script: str, story: Callable[[BrokerProcess], Awaitable[Any]]) -> Any:
    monkeypatch.setattr(process, "child_command", lambda *_: [sys.executable, "-c", script])

    async def play() -> Any:
        return await story(await BrokerProcess.start(PLAN, [1, 2]))

    return asyncio.run(play())


async def all_of(child: BrokerProcess) -> list[dict[str, Any]]:
    return [said async for said in child.said()]


def test_it_is_told_its_plan_and_then_what_to_do(monkeypatch) -> None:
    async def story(child: BrokerProcess) -> object:
        child.wind_down()
        child.stop()
        return await all_of(child), await child.ended()

    plan = {"node_id": 2, "settings": {"node.id": "2"}, "node_ids": [1, 2]}
    assert with_child(monkeypatch, READY + OBEY, story) == ([{"ready": plan}, {"wind_down": True}], 5)


def test_one_that_ends_before_it_is_ready_says_nothing(monkeypatch) -> None:
    async def story(child: BrokerProcess) -> object:
        return await all_of(child), await child.ended()

    assert with_child(monkeypatch, OPENING + "sys.exit(1)", story) == ([], 1)


def test_half_an_answer_of_one_that_is_killed_is_none(monkeypatch) -> None:
    half = OPENING + "import os, signal; os.write(1, b'{\"ready'); os.kill(os.getpid(), signal.SIGKILL)"

    async def story(child: BrokerProcess) -> object:
        return await all_of(child), await child.ended()

    assert with_child(monkeypatch, half, story) == ([], -signal.SIGKILL)


def test_one_that_has_ended_can_be_told_anything(monkeypatch) -> None:
    async def story(child: BrokerProcess) -> int:
        await anext(child.said())
        child.kill()
        code = await child.ended()
        child.wind_down()
        child.stop()
        child.kill()
        return code

    assert with_child(monkeypatch, READY + OBEY, story) == -signal.SIGKILL
