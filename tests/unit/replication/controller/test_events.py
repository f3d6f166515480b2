"""The queue of the controller."""

from __future__ import annotations

import asyncio

from replication.controller.events import Event, EventQueue, NotController


async def nothing() -> None:
    return None


def test_events_leave_in_order_and_storms_once():
    async def story():
        queue = EventQueue()
        for name, key in (("a", None), ("b", "k"), ("c", "k"), ("d", None)):
            queue.put(Event(name, nothing, key=key))
        assert [(await queue.next()).name for _ in range(3)] == ["a", "b", "d"]
        queue.put(Event("e", nothing, key="k"))
        assert (await queue.next()).name == "e"
        assert len(queue) == 0

    asyncio.run(story())


def test_the_next_event_is_waited_for():
    async def story():
        queue = EventQueue()
        waiting = asyncio.ensure_future(queue.next())
        await asyncio.sleep(0)
        assert not waiting.done()
        queue.put(Event("a", nothing))
        assert (await waiting).name == "a"

    asyncio.run(story())


def test_what_needs_a_controller_is_refused_and_the_rest_stays():
    async def story():
        queue, refused = EventQueue(), []
        queue.put(Event("ask", nothing, fail=refused.append))
        queue.put(Event("life", nothing, needs_controller=False, key="life"))
        queue.put(Event("watch", nothing, key="k"))
        queue.refuse_waiting()
        assert [type(error) for error in refused] == [NotController]
        assert len(queue) == 1
        queue.put(Event("watch", nothing, key="k"))
        queue.put(Event("life", nothing, needs_controller=False, key="life"))
        assert [(await queue.next()).name for _ in range(2)] == ["life", "watch"]

    asyncio.run(story())
