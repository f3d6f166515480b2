"""AlterReplicaLogDirs (34), versions 0-2 (v2 flexible): in which log directory of this broker a replica lies.

Answered when the move has begun; DescribeLogDirs tells how far it is. A partition that is named twice goes to
the last directory named. Errors: `broker.log_dir_mover`.
"""

from __future__ import annotations

from typing import Final

from broker.context import BrokerContext
from broker.handlers.request import Request
from protocol import messages as m

MIN_VERSION: Final = 0
MAX_VERSION: Final = 2

_Result = m.AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
_Partition = m.AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult


def handle(
    ctx: BrokerContext, request: Request[m.AlterReplicaLogDirsRequest]
) -> m.AlterReplicaLogDirsResponse:
    """One answer for each partition, grouped by topic."""
    wanted = {
        (topic.name, index): directory.path
        for directory in request.body.dirs
        for topic in directory.topics
        for index in topic.partitions
    }
    topics: dict[str, m.AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult] = {}
    for (name, index), path in wanted.items():
        topic = topics.setdefault(name, _Result(topic_name=name))
        topic.partitions.append(
            _Partition(partition_index=index, error_code=ctx.mover.alter(name, index, path))
        )
    return m.AlterReplicaLogDirsResponse(results=list(topics.values()))
