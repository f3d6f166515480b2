"""A client that does nothing wrong, and measures how it is served while others attack.

Run as a process of its own, so that the attacker's interpreter does not count as the broker's delay. It
produces one record with acks=all, reads it back, asks for metadata on a new connection, and lets the broker
hold an empty fetch for 10 ms, which paces it. Time in which the machine did not let it or the broker run is
not counted. It ends when its standard input does, and prints its figures.
"""

from __future__ import annotations

import json
import os
import select
import sys
import threading
import time
from pathlib import Path

from protocol.records.batch import Record
from protocol.records.builder import build_batch
from tests.support.pulse import Pulse
from tests.support.wire_client import WireClient

TOPIC = "normal-client"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PACE_MS = 10
LOOK_S = 0.1


class StoodStill:
    """Counts the time in which the broker's loop, its first thread, was ready to run and did not: it had no
    processor, or waited for the disk. One that waits for something else sleeps.
    """

    def __init__(self, pid: int) -> None:
        self._path = Path(f"/proc/{pid}/task/{pid}/stat")
        self.seconds = 0.0
        threading.Thread(target=self._run, daemon=True).start()

    def _look(self) -> tuple[float, bool, float]:
        """The time, whether it is ready to run, and the processor time it has had."""
        fields = self._path.read_text().rpartition(") ")[2].split()
        return time.perf_counter(), fields[0] in "RD", (int(fields[11]) + int(fields[12])) / TICKS_PER_S

    def _run(self) -> None:
        before, never = self._look(), threading.Event()
        while not never.wait(LOOK_S):
            try:
                now = self._look()
            except OSError:  # it has ended
                return
            if before[1] and now[1]:
                idle_s = (now[0] - before[0]) - (now[2] - before[2])
                self.seconds += idle_s if idle_s > LOOK_S / 2 else 0.0
            before = now


def main(address: str, pid: str) -> None:
    figures: list[float] = []
    errors = 0
    stood_still = StoodStill(int(pid))
    with Pulse() as pulse, WireClient(address, "normal") as wire:

        def now_s() -> float:
            return pulse.now_s() - stood_still.seconds

        if wire.metadata(TOPIC).topics[0].error_code:
            raise RuntimeError("the topic could not be created")
        print("ready", flush=True)
        while not figures or not select.select([sys.stdin], [], [], 0)[0]:
            begun = now_s()
            batch = build_batch([Record(0, 1_700_000_000_000, b"key", b"value", ())])
            offset = wire.produce(TOPIC, batch).base_offset
            produced = now_s()
            answer = wire.fetch(TOPIC, offset)
            fetched = now_s()
            errors += answer.error_code != 0 or not answer.records
            with WireClient(address, "normal") as other:
                other.versions()
                greeted = now_s()
                other.metadata(TOPIC)
            asked = now_s()
            wire.fetch(TOPIC, offset + 1, max_wait_ms=PACE_MS)
            late = now_s() - asked - PACE_MS / 1000
            figures += [produced - begun, fetched - produced]
            figures += [greeted - fetched, asked - greeted, max(late, 0.0)]
    figures.sort()
    print(
        json.dumps(
            {
                "requests": len(figures),
                "worst_s": figures[-1],
                "p99_s": figures[len(figures) * 99 // 100 - 1],
                "errors": errors,
            }
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
