"""AlterShareGroupOffsets through a broker."""

from __future__ import annotations

from pathlib import Path

from protocol.errors import ErrorCode as E
from tests.unit.broker.handlers.share_group_requests import (
    alter,
    describe,
    join,
    rows,
    share_broker,
    turn_off,
)


def test_offsets_are_stored_and_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with share_broker(tmp_path) as broker:
        answer = alter(broker, p0=7, p2=1)
        assert (answer.error_code, answer.error_message) == (E.NONE, None)
        [topic] = answer.responses
        assert topic.topic_id == broker.ctx.image.topics["t"].topic_id
        text = E.UNKNOWN_TOPIC_OR_PARTITION.message
        assert [(row.partition_index, row.error_code, row.error_message) for row in topic.partitions] == [
            (0, E.NONE, None),
            (2, E.UNKNOWN_TOPIC_OR_PARTITION, text),
        ]
        assert rows(describe(broker)) == {("t", 0): (7, -7)}
        [absent] = alter(broker, "absent", p0=0).responses
        assert (absent.topic_id, absent.partitions[0].error_message) == (bytes(16), text)


def test_refusals_of_the_whole_request(tmp_path: Path) -> None:
    with share_broker(tmp_path) as broker:
        join(broker)
        answer = alter(broker, p0=0)
        assert (answer.error_code, answer.error_message) == (
            E.NON_EMPTY_GROUP,
            E.NON_EMPTY_GROUP.message,
        )
        turn_off(broker)
        assert alter(broker, p0=0).error_code == E.UNSUPPORTED_VERSION
