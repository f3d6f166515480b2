"""Requests to brokers leave in order, one at a time, until they are answered."""

from __future__ import annotations

import asyncio

from replication.cluster.channel import ChannelLost
from replication.controller.batches import ControlRequest
from replication.controller.control_channels import RETRY_PAUSE_S, ControlChannels
from runtime.tasks import TaskScope
from tests.support.virtual_loop import run


class Line:
    """A channel whose answers the test gives."""

    def __init__(self) -> None:
        self.asked: list[tuple[object, int]] = []
        self.answers: asyncio.Queue[object] = asyncio.Queue()
        self.closed = False

    async def ask(self, request, version=None):
        self.asked.append((request, version))
        answer = await self.answers.get()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def abort(self) -> None:
        return

    async def close(self) -> None:
        self.closed = True


class Lines:
    """Channels by broker; a new one for each call."""

    def __init__(self) -> None:
        self.made: list[tuple[int, str, Line]] = []

    def to(self, broker_id: int, purpose: str) -> Line:
        self.made.append((broker_id, purpose, Line()))
        return self.made[-1][2]


def request(broker: int, name: str) -> ControlRequest:
    return ControlRequest(broker, 1, name, 7)


def story(test):
    def run_it():
        async def main():
            lines, told = Lines(), []
            tasks = TaskScope(asyncio.get_running_loop(), "test")
            channels = ControlChannels(lines, tasks, lambda asked, answer: told.append((asked, answer)))
            await test(channels, lines, told)
            await tasks.aclose()

        run(main())

    return run_it


async def settle() -> None:
    await asyncio.sleep(0.01)


@story
async def test_the_second_request_waits_for_the_answer_to_the_first(channels, lines, told):
    channels.send([request(1, "a"), request(2, "x"), request(1, "b")])
    await settle()
    (one, purpose, first), (two, _, second) = lines.made
    assert (one, two, purpose) == (1, 2, "control")
    assert (first.asked, second.asked) == ([("a", 7)], [("x", 7)])
    first.answers.put_nowait("yes")
    await settle()
    assert first.asked == [("a", 7), ("b", 7)]
    assert told == [(request(1, "a"), "yes")]


@story
async def test_a_lost_request_is_sent_again_after_a_pause_for_ever(channels, lines, told):
    channels.send([request(1, "a")])
    await settle()
    line = lines.made[0][2]
    for _ in range(50):
        line.answers.put_nowait(ChannelLost("gone"))
        await asyncio.sleep(RETRY_PAUSE_S * 1.01)
    assert line.asked == [("a", 7)] * 51
    line.answers.put_nowait("yes")
    await settle()
    assert told == [(request(1, "a"), "yes")]


@story
async def test_what_waits_for_a_dropped_broker_is_not_sent_and_its_answer_not_told(channels, lines, told):
    channels.send([request(1, "a"), request(1, "b")])
    await settle()
    first = lines.made[0][2]
    channels.drop(1)
    channels.drop(9)
    first.answers.put_nowait("late")
    await settle()
    assert (first.closed, first.asked, told) == (True, [("a", 7)], [])
    channels.send([request(1, "c")])
    await settle()
    assert lines.made[1][2].asked == [("c", 7)]


@story
async def test_after_the_end_nothing_is_sent(channels, lines, told):
    channels.send([request(1, "a"), request(2, "b")])
    await settle()
    channels.close()
    channels.send([request(3, "c")])
    await settle()
    assert [broker for broker, _, _ in lines.made] == [1, 2]
    assert all(line.closed for _, _, line in lines.made)
