import asyncio

import uvloop

from runtime import system
from runtime.stalls import StallWatch
from runtime.system import run


def test_run_gives_main_a_working_bundle_on_uvloop_and_ends_it():
    seen = []

    async def main(env):
        seen.append(env)
        assert isinstance(env.loop, uvloop.Loop)
        assert env.loop is asyncio.get_running_loop()
        assert env.clock.now_ms() > 1_700_000_000_000
        assert await env.run_blocking(divmod, 9, 2) == (4, 1)
        env.tasks.spawn("waits", asyncio.Event().wait())
        return 5

    assert run(main) == 5
    assert len(seen[0].tasks) == 0


def test_without_uvloop_the_stock_loop_serves(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(system.importlib, "import_module", missing)

    async def main(env):
        return type(env.loop).__module__.startswith("asyncio")

    assert run(main) is True


def test_stall_watch_sees_how_long_the_loop_was_held():
    async def main():
        loop = asyncio.get_running_loop()
        watch = StallWatch(loop)
        watch.start()
        until = loop.time() + 0.2
        await asyncio.sleep(0.05)
        while loop.time() < until:  # hold the loop
            pass
        await asyncio.sleep(0.05)
        assert 0.08 <= watch.take() <= 2
        assert watch.take() < 0.08
        watch.stop()

    asyncio.run(main())
