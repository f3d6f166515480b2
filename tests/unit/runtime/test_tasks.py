"""Task scopes: order of ending, failures, refusal when closed."""

import asyncio
import logging

import pytest

from runtime.tasks import TaskScope


async def never() -> None: ...


def run(coroutine):
    return asyncio.run(coroutine)


def test_scope_cancels_newest_first_and_waits_for_each():
    async def main() -> None:
        scope, ended = TaskScope(asyncio.get_running_loop(), "s"), []

        async def wait(name: str) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                ended.append(name)

        for name in "abc":
            scope.spawn(name, wait(name))
        await asyncio.sleep(0)
        assert len(scope) == 3
        await scope.aclose()
        assert ended == ["c", "b", "a"]
        assert len(scope) == 0

    run(main())


def test_failed_task_is_logged_with_its_name_and_the_others_go_on(caplog):
    async def main() -> None:
        scope = TaskScope(asyncio.get_running_loop(), "cleaner")

        async def fail() -> None:
            raise ValueError("broken")

        async def work() -> int:
            await asyncio.sleep(0)
            return 7

        failed, good = scope.spawn("round", fail()), scope.spawn("other", work())
        assert await good == 7
        assert failed.done()
        assert len(scope) == 0

    with caplog.at_level(logging.ERROR):
        run(main())
    assert "cleaner/round" in caplog.text
    assert "broken" in caplog.text


def test_closed_scope_refuses_new_tasks():
    async def main() -> None:
        scope = TaskScope(asyncio.get_running_loop(), "s")
        await scope.aclose()
        with pytest.raises(RuntimeError, match="closed"):
            scope.spawn("x", never())

    run(main())


def test_task_that_closes_its_own_scope_ends_by_itself():
    async def main() -> None:
        scope = TaskScope(asyncio.get_running_loop(), "s")
        other = scope.spawn("other", asyncio.Event().wait())
        closer = scope.spawn("closer", scope.aclose())
        await asyncio.wait_for(closer, 60)
        assert other.cancelled()

    run(main())
