"""Segments that recovery has to read, read by worker processes side by side.

The thread that loads the logs asks for them and takes the answers in order. Small files travel together,
since a call costs more than reading one; where there is little to read at all the thread does it itself, for
a process takes a tenth of a second to start.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future

from runtime.workers import WorkerCrashed, Workers
from storage.segment_scan import Scanned, ScanRequest, Scans, scan_in_worker

log = logging.getLogger("ottla.recovery")

GROUP_BYTES = 32 << 20
GROUP_FILES = 256
WORTH_BYTES = 96 << 20  # what one process reads about as fast as others start
AHEAD = 3  # calls per worker that are under way or waiting: answers must not pile up


def parallel_scans(workers: Workers, count: int, loop: asyncio.AbstractEventLoop, here: Scans) -> Scans:
    """Scans by up to `count` of the workers, or `here` where one does or little is to be read.

    To be called on another thread than the loop's.
    """

    def run(requests: Sequence[ScanRequest]) -> Iterator[Scanned]:
        if count < 2 or sum(request.size for request in requests) < WORTH_BYTES:
            yield from here(requests)
            return
        waiting: deque[tuple[Sequence[ScanRequest], Future[list[Scanned]]]] = deque()
        for group in grouped(requests):
            waiting.append((group, workers.call_from_thread(loop, scan_in_worker, group)))
            if len(waiting) >= AHEAD * count:
                yield from _answers(*waiting.popleft())
        while waiting:
            yield from _answers(*waiting.popleft())

    return run


def _answers(group: Sequence[ScanRequest], answer: Future[list[Scanned]]) -> list[Scanned]:
    try:
        return answer.result()
    except WorkerCrashed as error:
        log.warning("A process that read segments is gone, they are read again: %s", error)
        return scan_in_worker(group)


def grouped(requests: Sequence[ScanRequest]) -> Iterator[list[ScanRequest]]:
    """Consecutive requests that are worth a call."""
    group: list[ScanRequest] = []
    size = 0
    for request in requests:
        if group and (size + request.size > GROUP_BYTES or len(group) >= GROUP_FILES):
            yield group
            group, size = [], 0
        group.append(request)
        size += request.size
    if group:
        yield group
