"""Answers to Produce, v0-13: built by the codec, and as templates for requests that repeat.

v1 throttle time, v2 log append time (-1 unless the topic is set to LogAppendTime), v5 log start offset, v8
record errors and a message, v9 flexible, v10 leader hints, v13 topic ids instead of names.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from broker.net.answers import frame_answer
from broker.net.templates import MARKS, mark_bytes, split_at
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode

Topic = m.ProduceResponse.TopicProduceResponse
Partition = m.ProduceResponse.PartitionProduceResponse
NO_TIME = -1
NO_ERROR = b"\0\0"  # stands between a partition's index and its base offset


def refused(index: int, error: ErrorCode, message: str | None = None) -> Partition:
    """The answer for a partition that took nothing. Of a failed disk Kafka tells no more than the code."""
    return Partition(
        index=index,
        error_code=error,
        base_offset=-1,
        log_append_time_ms=NO_TIME,
        log_start_offset=-1,
        error_message=message if error != ErrorCode.KAFKA_STORAGE_ERROR else None,
    )


def single_answer(
    version: int, correlation_id: int, name: str, topic_id: bytes, partition: Partition
) -> bytes:
    """A frame that answers for one partition."""
    response = m.ProduceResponse(
        responses=[Topic(name=name, topic_id=topic_id, partition_responses=[partition])]
    )
    return frame_answer(ApiKey.PRODUCE, version, correlation_id, response)


class AnswerTemplate(NamedTuple):
    """The successful answer for one partition: all but correlation id, base offset and log start is fixed.

    Before v5 `pack(size, correlation_id, head, base_offset, tail)` makes the frame with one call of a
    compiled Struct, from v5 on `pack(size, correlation_id, head, base_offset, middle, log_start_offset,
    tail)`. `head` is that of partition 0; `start` + index + `NO_ERROR` is that of another one.
    """

    pack: Callable[..., bytes]
    size: int
    head: bytes
    middle: bytes
    tail: bytes

    @property
    def start(self) -> bytes:
        """What is the same in the answers for all partitions of the topic."""
        return self.head[: -4 - len(NO_ERROR)]


def answer_template(version: int, name: str, topic_id: bytes) -> AnswerTemplate | None:
    """A template for this topic; None if the marks cannot be told apart from the name."""
    offset_mark, start_mark = MARKS[0], MARKS[1]
    partition = Partition(
        index=0,
        error_code=0,
        base_offset=offset_mark,
        log_append_time_ms=NO_TIME,
        log_start_offset=start_mark,
    )
    frame = single_answer(version, 0, name, topic_id, partition)
    has_start = version >= 5
    marks = (mark_bytes(offset_mark), mark_bytes(start_mark)) if has_start else (mark_bytes(offset_mark),)
    pieces = split_at(frame[8:], marks)
    if pieces is None:
        return None
    head, middle, tail = pieces if has_start else (pieces[0], b"", pieces[1])
    between = f"q{len(middle)}s" if has_start else ""
    pack = struct.Struct(f">ii{len(head)}s{between}q{len(tail)}s").pack
    return AnswerTemplate(pack, len(frame) - 4, head, middle, tail)
