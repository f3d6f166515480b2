"""One broker of several: the child's end of the two pipes that join it to the command that started it.

Standard input: the first line is the broker's configuration and the ids of all brokers, each further one a
command. Standard output is set aside before anything can print, which goes to the log. It takes JSON lines:

    {"ready": [...]}        the broker serves, at these addresses
    {"knows_all": true}     it has heard from the controller of all brokers, for the first time
    {"wound_down": true}    the answer to that command

    {"wind_down": true}     the whole cluster stops: elect nobody any more; answered
    {"stop": true}          stop in good order; the end of the process is the answer

The end of standard input means that the parent has gone, however that came: all brokers stop.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Coroutine, Iterable, Sequence
from concurrent.futures import CancelledError
from functools import partial
from io import FileIO
from typing import TYPE_CHECKING, Any, BinaryIO

from ottla.child import answer

if TYPE_CHECKING:
    from broker.lifecycle import Life
    from replication.metadata.image import ClusterImage, ImageHolder
    from runtime.system import Env


def main(arguments: Sequence[str]) -> int:
    """Runs the broker that the first line of standard input describes; returns its exit code. The arguments
    are for people who look at the list of processes.
    """
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    from broker.lifecycle import serve
    from broker.process import configure_logging
    from ottla.brokers.plan import BrokerPlan
    from runtime.system import run

    lines = iter(FileIO(0, closefd=False))
    first = json.loads(next(lines, b"null"))
    if first is None:
        return 1
    plan = BrokerPlan(first["node_id"], first["settings"])
    configure_logging(f"broker {plan.node_id}")

    def begun(env: Env, life: Life) -> None:
        tell_when_all_are_known(answers, first["node_ids"], life.broker.holder)
        start_to_obey(answers, lines, env, life)

    async def live(env: Env) -> int:
        return await serve(plan.load(), env, ready, partial(begun, env))

    def ready(addresses: Sequence[tuple[str, str, int]]) -> None:
        answer(answers, {"ready": addresses})

    return run(live)


def tell_when_all_are_known(answers: BinaryIO, node_ids: Iterable[int], holder: ImageHolder) -> None:
    """One line to the parent, once."""
    unmet = set(node_ids)

    def look(_: ClusterImage, new: ClusterImage) -> None:
        if unmet and unmet <= new.brokers.keys():
            unmet.clear()
            answer(answers, {"knows_all": True})

    holder.subscribe(look)


def start_to_obey(answers: BinaryIO, lines: Iterable[bytes], env: Env, life: Life) -> None:
    """Carry out the parent's commands on a thread, which ends with the process."""
    obeying = threading.Thread(
        target=obey, args=(answers, lines, env.loop, life), name="commands", daemon=True
    )
    obeying.start()


def obey(answers: BinaryIO, lines: Iterable[bytes], loop: asyncio.AbstractEventLoop, life: Life) -> None:
    """Carry out the parent's commands until its pipe ends, and then those that it can't give any more."""
    try:
        for line in lines:
            command: dict[str, Any] = json.loads(line)
            if "wind_down" in command:
                _on_loop(loop, life.broker.wind_down())
                answer(answers, {"wound_down": True})
            else:
                loop.call_soon_threadsafe(life.stop)
        _on_loop(loop, life.broker.wind_down())
        loop.call_soon_threadsafe(life.stop)
    except (RuntimeError, CancelledError):
        return  # the loop has ended, and the process is about to


def _on_loop(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, None]) -> None:
    if loop.is_closed():
        work.close()
        raise RuntimeError("the loop is closed")
    asyncio.run_coroutine_threadsafe(work, loop).result()
