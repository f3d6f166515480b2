"""DescribeLogDirs (35), versions 0-5: what lies in each log directory.

Null topics are all; an empty list describes the directories alone. v4+: size of the volume (-1: unknown).
v5+: whether a directory is cordoned. An offline directory has error 56 and no topics. Copies on their way to
another directory are told as well: how far they lag behind, in offsets.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final

from broker.context import BrokerContext
from broker.handlers.request import Request
from protocol import messages as m
from protocol.errors import ErrorCode
from runtime.pieces import AT_ONCE, Steps, split

if TYPE_CHECKING:
    from storage.log_dirs import LogDir
    from storage.partition_log import PartitionLog

MIN_VERSION: Final = 0
MAX_VERSION: Final = 5

_UNKNOWN_BYTES: Final = -1
_NO_LAG: Final = -1
_Result = m.DescribeLogDirsResponse.DescribeLogDirsResult
_Topic = m.DescribeLogDirsResponse.DescribeLogDirsTopic
_Wanted = set[tuple[str, int]]


def handle(
    ctx: BrokerContext, request: Request[m.DescribeLogDirsRequest]
) -> m.DescribeLogDirsResponse | Coroutine[Any, Any, m.DescribeLogDirsResponse]:
    """One result for each directory, in the order of log.dirs; a coroutine where much is asked for."""
    asked = request.body.topics or ()
    count = len(asked) + sum(len(topic.partitions) for topic in asked)
    count += sum(len(directory.logs) + len(directory.futures) for directory in ctx.logs.dirs)
    return ctx.pieces.many(_describe(ctx, request.body), count)


def _describe(ctx: BrokerContext, body: m.DescribeLogDirsRequest) -> Steps[m.DescribeLogDirsResponse]:
    wanted: _Wanted | None = None
    if body.topics is not None:
        wanted = set()
        left = AT_ONCE
        for topic in body.topics:
            for some in split(topic.partitions):
                wanted.update((topic.topic, index) for index in some)
                left -= len(some)
                if left <= 0:
                    yield
                    left = AT_ONCE
    response = m.DescribeLogDirsResponse()
    for directory in ctx.logs.dirs:
        response.results.append((yield from _directory(ctx, directory, wanted)))
    return response


def _directory(ctx: BrokerContext, directory: LogDir, wanted: _Wanted | None) -> Steps[_Result]:
    result = _Result(log_dir=directory.path, total_bytes=_UNKNOWN_BYTES, usable_bytes=_UNKNOWN_BYTES)
    if not directory.offline:
        try:
            result.total_bytes, result.usable_bytes = ctx.env.files.disk_usage(directory.path)
        except OSError:
            result.total_bytes = result.usable_bytes = _UNKNOWN_BYTES
        result.is_cordoned = directory.cordoned
        topics: dict[str, _Topic] = {}
        yield from _logs(ctx, directory, wanted, topics)
        for topic in topics.values():
            topic.partitions.sort(key=lambda each: (each.partition_index, each.is_future_key))
        result.topics = [topics[name] for name in sorted(topics)]
    if directory.offline:  # perhaps since a moment ago
        return _Result(
            log_dir=directory.path,
            error_code=ErrorCode.KAFKA_STORAGE_ERROR,
            total_bytes=_UNKNOWN_BYTES,
            usable_bytes=_UNKNOWN_BYTES,
        )
    return result


def _logs(
    ctx: BrokerContext, directory: LogDir, wanted: _Wanted | None, topics: dict[str, _Topic]
) -> Steps[None]:
    """Tell of the logs of a directory by topic, of each as it is when it is looked at."""
    for is_future, logs in ((False, directory.logs), (True, directory.futures)):
        for number, (cell, log) in enumerate(list(logs.items()), 1):
            if not number % AT_ONCE:
                yield
            if (wanted is not None and cell not in wanted) or logs.get(cell) is not log:
                continue  # the second: it has gone meanwhile
            name, index = cell
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = _Topic(name=name)
            topic.partitions.append(
                m.DescribeLogDirsResponse.DescribeLogDirsPartition(
                    partition_index=index,
                    partition_size=log.size_bytes,
                    offset_lag=_lag(ctx, log, is_future),
                    is_future_key=is_future,
                )
            )


def _lag(ctx: BrokerContext, log: PartitionLog, is_future: bool) -> int:
    """By how many offsets a log is behind: a copy behind the partition's log, that behind its watermark."""
    if not is_future:
        return max(log.high_watermark - log.end_offset, 0)
    found = ctx.replicas.get(log.topic, log.partition)
    if found is None or found.offline:
        return _NO_LAG
    return found.log.end_offset - log.end_offset
