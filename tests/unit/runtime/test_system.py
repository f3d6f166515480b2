"""The production bundle and the choice of the loop."""

import asyncio

import uvloop

from runtime import system
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
