"""The child's side of the pipes: commands of the parent, and its end."""

from __future__ import annotations

import asyncio
import io
import json

from ottla.brokers.child import obey, tell_when_all_are_known
from replication.metadata.image import BrokerImage, ClusterImage, ImageHolder


class Broker:
    """Notes what it is asked."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    async def wind_down(self) -> None:
        self.notes.append("winds down")


class Life:
    def __init__(self) -> None:
        self.broker = Broker()

    def stop(self) -> None:
        self.broker.notes.append("stops")


def obeyed(*commands: dict[str, bool]) -> tuple[list[str], list[object]]:
    """What the broker did, and what the parent heard."""
    life, answers = Life(), io.BytesIO()
    lines = [json.dumps(command).encode() + b"\n" for command in commands]

    async def live() -> None:
        await asyncio.to_thread(obey, answers, lines, asyncio.get_running_loop(), life)

    asyncio.run(live())
    return life.broker.notes, [json.loads(line) for line in answers.getvalue().splitlines()]


def test_commands_are_carried_out_in_order_and_answered() -> None:
    did, heard = obeyed({"wind_down": True}, {"stop": True})
    assert did[:2] == ["winds down", "stops"]
    assert heard == [{"wound_down": True}]


def test_the_end_of_the_parent_stops_the_whole_cluster() -> None:
    assert obeyed() == (["winds down", "stops"], [])


def test_a_loop_that_has_ended_hears_nothing() -> None:
    life, loop = Life(), asyncio.new_event_loop()
    loop.close()
    obey(io.BytesIO(), [b'{"stop": true}\n'], loop, life)
    obey(io.BytesIO(), [], loop, life)
    assert life.broker.notes == []


def test_the_parent_hears_once_that_all_are_known() -> None:
    answers, holder = io.BytesIO(), ImageHolder()
    tell_when_all_are_known(answers, [1, 2], holder)
    for known in ([1], [1, 3], [1, 2], [2], [1, 2, 3]):
        holder.publish(ClusterImage(brokers={each: BrokerImage(each, 0, {}) for each in known}))
        assert answers.getvalue().count(b"\n") == (known != [1] and known != [1, 3])
    assert json.loads(answers.getvalue()) == {"knows_all": True}
