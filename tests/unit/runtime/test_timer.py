"""The timing wheel against a heap, and its single wake-up on a loop."""

import asyncio
from heapq import heappop, heappush

from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.timer import LoopTimer, TimerWheel

STEP = st.one_of(
    st.tuples(st.just("add"), st.one_of(st.integers(0, 50), st.integers(0, 500_000))),
    st.tuples(st.just("cancel"), st.integers(0, 30)),
    st.tuples(st.just("advance"), st.one_of(st.integers(0, 30), st.integers(0, 200_000))),
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.integers(0, 100_000), st.lists(STEP, max_size=60))
def test_wheel_fires_what_a_heap_fires_in_the_order_of_deadlines(start_ms, steps):
    wheel, now_ms, fired, expected = TimerWheel(start_ms), start_ms, [], []
    heap, entries, cancelled = [], [], set()
    for name, value in steps:
        if name == "add":
            number = len(entries)
            deadline_ms = now_ms + max(1, value)
            entry = wheel.add(value, lambda d=deadline_ms, n=number: fired.append((d, n)))
            entries.append(entry)
            heappush(heap, (deadline_ms, number))
        elif name == "cancel" and entries:
            number = value % len(entries)
            pending = number not in cancelled and any(n == number for _, n in heap)
            assert entries[number].pending == pending
            assert entries[number].cancel() == pending
            cancelled.add(number)
        elif name == "advance":
            now_ms += value
            for entry in wheel.advance(now_ms):
                entry.fire()
            while heap and heap[0][0] <= now_ms:
                due = heappop(heap)
                if due[1] not in cancelled:
                    expected.append(due)
            assert [d for d, _ in fired] == [d for d, _ in expected]
            assert sorted(fired) == sorted(expected)
        live = [n for _, n in heap if n not in cancelled]
        assert wheel.size == len(live)
        next_ms = wheel.next_deadline_ms()
        if live:
            assert next_ms is not None
            assert now_ms < next_ms <= min(d for d, n in heap if n not in cancelled)


def test_wheel_without_entries_has_no_next_deadline():
    wheel = TimerWheel(5)
    entry = wheel.add(1_000_000, lambda: None)
    assert wheel.next_deadline_ms() is not None
    assert entry.cancel()
    assert wheel.next_deadline_ms() is None
    assert not entry.cancel()


def test_entry_cancelled_after_it_became_due_does_not_run():
    wheel, ran = TimerWheel(0), []
    second = None

    def first() -> None:
        ran.append(1)
        assert second is not None
        assert second.cancel()

    wheel.add(5, first)
    second = wheel.add(5, lambda: ran.append(2))
    for entry in wheel.advance(5):
        entry.fire()
    assert ran == [1]
    assert wheel.size == 0


def test_entries_far_apart_fall_through_the_upper_wheels_to_their_millisecond():
    wheel, fired = TimerWheel(7), []
    delays = [1, 19, 20, 21, 399, 400, 401, 7_999, 8_000, 160_000, 3_200_001]
    for delay_ms in delays:
        wheel.add(delay_ms, lambda d=delay_ms: fired.append(d))
    for delay_ms in delays:
        assert [e.deadline_ms for e in wheel.advance(7 + delay_ms - 1)] == []
        for entry in wheel.advance(7 + delay_ms):
            entry.fire()
        assert fired[-1] == delay_ms


def test_loop_timer_runs_callbacks_in_order_with_one_wake_up_armed():
    async def main() -> None:
        loop = asyncio.get_running_loop()
        timer, order, done = LoopTimer(loop), [], loop.create_future()
        begin = loop.time()
        timer.add(30, lambda: (order.append("late"), done.set_result(loop.time() - begin)))
        timer.add(5, lambda: order.append("early"))
        timer.add(10, lambda: order.append("never")).cancel()
        assert timer.size == 2
        took = await asyncio.wait_for(done, 60)
        assert order == ["early", "late"]
        assert took >= 0.029
        assert timer.size == 0
        timer.add(1, lambda: order.append("closed"))
        timer.close()

    asyncio.run(main())


def test_a_callback_that_raises_stops_neither_the_clock_nor_those_that_are_due_with_it():
    async def main() -> None:
        loop, told = asyncio.get_running_loop(), []
        loop.set_exception_handler(lambda _, context: told.append(type(context["exception"])))
        timer, both_due, later = LoopTimer(loop), asyncio.Event(), asyncio.Event()
        timer.add(1, lambda: [][0])
        timer.add(1, both_due.set)
        timer.add(5, later.set)
        async with asyncio.timeout(60):
            await both_due.wait()
            await later.wait()
        assert told == [IndexError]
        timer.close()

    asyncio.run(main())
