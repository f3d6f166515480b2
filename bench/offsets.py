"""What the partitions hold: the check that what was acknowledged is stored."""

from __future__ import annotations

import time
from collections.abc import Sequence

from ottla.client import KafkaClient
from protocol import messages as m

LEADERS_SECONDS = 60.0  # a new topic's partitions may be without leaders at first


def end_offsets(
    host: str, port: int, topic: str, partitions: int, limit_seconds: float = LEADERS_SECONDS
) -> list[int]:
    """The end offset of each partition, in order."""
    return ends_of(host, port, topic, range(partitions), limit_seconds)


def ends_of(
    host: str, port: int, topic: str, partitions: Sequence[int], limit_seconds: float = LEADERS_SECONDS
) -> list[int]:
    """Those of some partitions, which the broker leads or is about to lead."""
    asked = [m.ListOffsetsRequest.ListOffsetsPartition(partition_index=p, timestamp=-1) for p in partitions]
    request = m.ListOffsetsRequest(
        replica_id=-1,
        topics=[m.ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=asked)],
    )
    with KafkaClient(f"{host}:{port}", "bench") as client:
        deadline = time.monotonic() + limit_seconds
        while True:
            answer = client.call(request)
            errors = [p.error_code for p in answer.topics[0].partitions if p.error_code]
            if not errors:
                found = {p.partition_index: p.offset for p in answer.topics[0].partitions}
                return [found[p] for p in partitions]
            if time.monotonic() > deadline:
                raise RuntimeError(f"ListOffsets answered error {errors[0]}")
            time.sleep(0.05)
