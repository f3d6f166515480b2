"""Brokers that start, end and are stopped, with processes that do as a script says."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import pytest

from ottla.brokers import supervisor
from ottla.brokers.plan import BrokerPlan
from ottla.brokers.supervisor import Supervisor
from runtime.system import run

KILLED = -signal.SIGKILL


class Process:
    """Serves at once unless the script says that it does not; ends when it is told to."""

    pid = 7

    def __init__(self, stage: Stage, plan: BrokerPlan, script: str) -> None:
        self.stage, self.plan, self.script = stage, plan, script
        loop = asyncio.get_running_loop()
        self.code: asyncio.Future[int] = loop.create_future()
        self.winds_down: asyncio.Future[None] = loop.create_future()
        if script == "refuses":
            self.end(1)

    def end(self, code: int) -> None:
        if not self.code.done():
            self.code.set_result(code)

    async def said(self) -> AsyncIterator[dict[str, Any]]:
        if self.script not in ("refuses", "starts"):
            yield {"ready": [["PLAINTEXT", "127.0.0.1", 9000 + self.plan.node_id]]}
            if self.script != "is lonely":
                yield {"knows_all": True}
            await asyncio.wait([self.code, self.winds_down], return_when=asyncio.FIRST_COMPLETED)
            if not self.code.done() and self.script != "hangs":
                yield {"wound_down": True}
        await self.ended()

    def wind_down(self) -> None:
        self.stage.note(f"{self.plan.node_id} winds down")
        self.winds_down.set_result(None)

    def stop(self) -> None:
        self.stage.note(f"{self.plan.node_id} stops")
        self.end(3 if self.script == "stops badly" else 0)

    def kill(self) -> None:
        self.stage.note(f"{self.plan.node_id} is killed")
        self.end(KILLED)

    async def ended(self) -> int:
        return await asyncio.shield(self.code)


class Stage:
    """Runs a supervisor over brokers 1 to N; `scripts` are those of each one's processes, "serves" if none is
    left. `notes` is what happened. `on_start` is called with the number of the start.
    """

    def __init__(self, monkeypatch, scripts: dict[int, list[str]]) -> None:
        self.scripts = scripts
        self.notes: list[str] = []
        self.started: list[Process] = []
        self.greeted: list[object] = []
        self.on_start: Callable[[int], None] = lambda number: None
        monkeypatch.setattr(supervisor, "BrokerProcess", self)

    def note(self, what: str) -> None:
        self.notes.append(what)

    async def start(self, plan: BrokerPlan, node_ids: Sequence[int]) -> Process:
        assert node_ids == list(self.scripts)
        left = self.scripts[plan.node_id]
        process = Process(self, plan, left.pop(0) if left else "serves")
        self.started.append(process)
        self.on_start(len(self.started))
        return process

    def play(self, greet: Callable[[], None]) -> int:
        def greeted(addresses: object) -> None:
            self.greeted.append(addresses)
            greet()

        settings = {"listeners": "PLAINTEXT://127.0.0.1:0"}
        plans = [BrokerPlan(node_id, settings) for node_id in self.scripts]
        return run(lambda env: Supervisor(env, plans, greeted).run())


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def test_all_wind_down_before_any_stops(monkeypatch) -> None:
    stage = Stage(monkeypatch, {1: [], 2: [], 3: []})
    assert stage.play(terminate) == 0
    assert [[each[0][2] for each in found] for found in stage.greeted] == [[9001, 9002, 9003]]
    assert sorted(stage.notes[:3]) == ["1 winds down", "2 winds down", "3 winds down"]
    assert stage.notes[3:] == ["1 stops", "2 stops", "3 stops"]


def test_one_that_was_killed_is_started_again_where_it_was(monkeypatch) -> None:
    stage = Stage(monkeypatch, {1: [], 2: []})
    stage.on_start = lambda number: terminate() if number == 3 else None
    assert stage.play(lambda: stage.started[1].end(KILLED)) == 0
    again = stage.started[2]
    assert again.plan.node_id == 2
    assert again.plan.settings["listeners"] == "PLAINTEXT://127.0.0.1:9002"
    assert len(stage.greeted) == 1


def test_one_that_cannot_start_ends_all(monkeypatch) -> None:
    stage = Stage(monkeypatch, {1: [], 2: ["refuses"], 3: ["starts"]})
    assert stage.play(terminate) == 1
    assert "2 stops" not in stage.notes
    assert [note for note in stage.notes if "stops" in note] == ["1 stops", "3 stops"]


def test_no_process_at_all_is_no_start_either(monkeypatch) -> None:
    stage = Stage(monkeypatch, {1: []})

    def refuse(number: int) -> None:
        raise OSError("no more processes")

    stage.on_start = refuse
    assert stage.play(terminate) == 1


def test_a_signal_before_all_have_been_ready_tells_its_number(monkeypatch) -> None:
    stage = Stage(monkeypatch, {1: [], 2: ["starts"]})
    stage.on_start = lambda number: terminate() if number == 2 else None
    assert stage.play(terminate) == 128 + signal.SIGTERM
    assert stage.greeted == []
    assert "2 winds down" not in stage.notes


def test_nobody_is_greeted_before_each_knows_of_all(monkeypatch) -> None:
    stage = Stage(monkeypatch, {1: ["is lonely"], 2: []})
    stage.on_start = lambda number: terminate() if number == 2 else None
    assert stage.play(terminate) == 128 + signal.SIGTERM
    assert stage.greeted == []
    assert sorted(stage.notes[:2]) == ["1 winds down", "2 winds down"]


def test_one_that_is_stopped_while_it_starts_again_does_no_harm(monkeypatch) -> None:
    stage = Stage(monkeypatch, {1: ["serves", "starts"], 2: []})
    stage.on_start = lambda number: terminate() if number == 3 else None
    assert stage.play(lambda: stage.started[0].end(KILLED)) == 0
    assert "1 stops" in stage.notes


def test_one_that_does_not_stop_well_is_told_by_the_exit_code(monkeypatch) -> None:
    assert Stage(monkeypatch, {1: [], 2: ["stops badly"]}).play(terminate) == 1


def test_one_that_hangs_does_not_keep_the_others(monkeypatch) -> None:
    monkeypatch.setattr(supervisor, "WIND_DOWN_S", 0.01)
    stage = Stage(monkeypatch, {1: ["hangs"], 2: []})
    assert stage.play(terminate) == 0
    assert stage.notes[-2:] == ["1 stops", "2 stops"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_kills_all(monkeypatch, number: int) -> None:
    codes: list[int] = []
    monkeypatch.setattr("os._exit", codes.append)
    stage = Stage(monkeypatch, {1: ["hangs"], 2: ["hangs"]})

    def note(what: str) -> None:
        stage.notes.append(what)
        if what == "2 winds down":
            os.kill(os.getpid(), number)

    stage.note = note  # type: ignore[method-assign]
    stage.play(terminate)
    assert codes == [128 + number]
    assert [what for what in stage.notes if "killed" in what] == ["1 is killed", "2 is killed"]
