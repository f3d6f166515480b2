"""Finishing many logs that are being opened, and telling how far that is.

The files that have to be read are named first, for all logs together, so that they can be read side by
side; each log is finished as soon as its own are there. A disk that fails takes its log directory out of
service and leaves the others alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from itertools import islice

from runtime.clock import Clock
from storage.log_dirs import LogDir
from storage.partition_log import PartitionLog
from storage.recovery import Loading
from storage.segment_scan import ScannedSegment, Scans

logger = logging.getLogger(__name__)
TELL_EVERY_SECONDS = 2.0


def finish_loading(
    loadings: Sequence[tuple[LogDir, Loading]], scans: Scans, clock: Clock
) -> Iterator[PartitionLog]:
    """Read what has to be read and finish the logs in their order, but for those of failed directories."""
    requests = [request for _, loading in loadings for request in loading.requests]
    progress = _Progress(clock, len(loadings), len(requests), sum(request.size for request in requests))
    answers = scans(requests)
    for directory, loading in loadings:
        scanned: list[ScannedSegment] = []
        for answer in islice(answers, len(loading.requests)):
            if isinstance(answer, OSError):
                directory.fail(answer)
            else:
                scanned.append(answer)
                progress.read(answer.size)
        if directory.offline:
            continue
        try:
            loading.finish(scanned)
        except OSError as error:
            directory.fail(error)
            continue
        progress.finished(loading)
        yield loading.log
    progress.end()


class _Progress:
    """Lines about a recovery that takes long; after a clean stop there are none."""

    def __init__(self, clock: Clock, logs: int, segments: int, total_bytes: int) -> None:
        self._clock = clock
        self._logs, self._segments, self._total = logs, segments, total_bytes
        self._logs_done = self._done = 0
        self._begun = self._told = clock.monotonic()
        if segments:
            logger.info("Recovery reads %d segments, %s", segments, megabytes(total_bytes))

    def read(self, count: int) -> None:
        self._done += count
        if self._clock.monotonic() - self._told >= TELL_EVERY_SECONDS:
            self._told = self._clock.monotonic()
            logger.info(
                "Recovery has read %s of %s, %d of %d logs are loaded",
                megabytes(self._done), megabytes(self._total), self._logs_done, self._logs,
            )  # fmt: skip

    def finished(self, loading: Loading) -> None:
        self._logs_done += 1
        if loading.requests:
            log = loading.log
            logger.debug("%s was read: offsets %d to %d", log.name, log.start_offset, log.end_offset)

    def end(self) -> None:
        if self._segments:
            logger.info(
                "Recovery has read %d segments, %s, in %.1f s; %d logs are loaded",
                self._segments, megabytes(self._done), self._clock.monotonic() - self._begun, self._logs_done,
            )  # fmt: skip


def megabytes(count: int) -> str:
    return f"{count / 1_000_000:.1f} MB"
