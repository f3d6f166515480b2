"""A client that does nothing wrong, and measures how it is served while others attack.

Run as a process of its own, so that the attacker's interpreter does not count as the broker's delay. It
produces one record with acks=all, reads it back, asks for metadata on a new connection, and lets the broker
hold an empty fetch for 10 ms, which paces it. Time in which the machine did not let it run is not counted. It
ends when its standard input does, and prints its figures.
"""

from __future__ import annotations

import json
import select
import sys

from protocol.records.batch import Record
from protocol.records.builder import build_batch
from tests.support.pulse import Pulse
from tests.support.wire_client import WireClient

TOPIC = "normal-client"
PACE_MS = 10


def main(address: str) -> None:
    figures: list[float] = []
    errors = 0
    with Pulse() as pulse, WireClient(address, "normal") as wire:
        if wire.metadata(TOPIC).topics[0].error_code:
            raise RuntimeError("the topic could not be created")
        print("ready", flush=True)
        while not figures or not select.select([sys.stdin], [], [], 0)[0]:
            begun = pulse.now_s()
            batch = build_batch([Record(0, 1_700_000_000_000, b"key", b"value", ())])
            offset = wire.produce(TOPIC, batch).base_offset
            produced = pulse.now_s()
            answer = wire.fetch(TOPIC, offset)
            fetched = pulse.now_s()
            errors += answer.error_code != 0 or not answer.records
            with WireClient(address, "normal") as other:
                other.versions()
                greeted = pulse.now_s()
                other.metadata(TOPIC)
            asked = pulse.now_s()
            wire.fetch(TOPIC, offset + 1, max_wait_ms=PACE_MS)
            late = pulse.now_s() - asked - PACE_MS / 1000
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
    main(sys.argv[1])
