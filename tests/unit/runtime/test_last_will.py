"""A process that is gone has its will executed; one that has nothing to say any more has not."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from runtime.last_will import LastWill
from runtime.tasks import TaskScope
from tests.support.waiting import wait_until

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = """
import sys
last = ""
for line in sys.stdin:
    last = line.strip()
with open(sys.argv[0] + ".done", "w") as file:
    file.write(last or "nothing")
"""
KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from runtime.last_will import LastWill
from runtime.tasks import TaskScope

async def main():
    scope = TaskScope(asyncio.get_running_loop(), "test")
    will = LastWill(scope, Path(sys.argv[2]))
    will.write("first")
    will.write("second")
    await asyncio.wait([will._starting])
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def done(script):
    path = script.with_name("script.py.done")
    return path.read_text() if path.exists() else ""


def test_the_last_will_is_executed_after_a_kill(script):
    killed = subprocess.run([sys.executable, "-c", KILLED, str(ROOT), str(script)], timeout=60, check=False)
    assert killed.returncode == -9
    wait_until(lambda: done(script), "the will to be executed")
    assert done(script) == "second"


def test_after_a_revocation_there_is_nothing_to_do(script):
    async def main():
        scope = TaskScope(asyncio.get_running_loop(), "test")
        will = LastWill(scope, script)
        will.write("something")
        await will.revoke()
        await will.revoke()
        assert done(script) == "nothing"
        await scope.aclose()

    asyncio.run(main())


def test_without_a_will_there_is_no_process(script):
    async def main():
        scope = TaskScope(asyncio.get_running_loop(), "test")
        await LastWill(scope, script).revoke()
        assert not done(script)
        await scope.aclose()

    asyncio.run(main())


def test_where_no_process_can_be_had_the_broker_goes_on(script, monkeypatch, caplog):
    async def main():
        async def refuse(*_, **__):
            raise OSError("no more processes")

        monkeypatch.setattr(asyncio, "create_subprocess_exec", refuse)
        scope = TaskScope(asyncio.get_running_loop(), "test")
        will = LastWill(scope, script)
        will.write("something")
        will.write("more")
        await will.revoke()
        await scope.aclose()

    asyncio.run(main())
    assert "no more processes" in caplog.text
