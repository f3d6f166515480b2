"""Going on when the leader does not have the offset."""

from __future__ import annotations

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.cluster.channel import ChannelLost
from replication.cluster.followed import Outcome
from replication.cluster.offset_lookup import OffsetLookup
from replication.list_offsets import EARLIEST, LATEST
from tests.unit.replication.cluster.stage import run
from tests.unit.replication.cluster.test_followed import following


class Leader:
    """Answers LATEST and EARLIEST; None means no answer, an ErrorCode a refusal."""

    def __init__(self, latest, earliest=0, on_ask=None):
        self.answers, self.asked, self.on_ask = {LATEST: latest, EARLIEST: earliest}, [], on_ask

    async def ask(self, request, version=None):
        [topic] = request.topics
        [partition] = topic.partitions
        self.asked.append(partition.timestamp)
        assert (request.replica_id, request.isolation_level, version) == (2, 0, 9)
        if self.on_ask:
            self.on_ask()
        value = self.answers[partition.timestamp]
        if value is None:
            raise ChannelLost("gone")
        refused = isinstance(value, ErrorCode)
        answer = m.ListOffsetsResponse.ListOffsetsPartitionResponse(
            partition_index=partition.partition_index,
            error_code=value if refused else 0,
            offset=-1 if refused else value,
        )
        return m.ListOffsetsResponse(
            topics=[m.ListOffsetsResponse.ListOffsetsTopicResponse(name=topic.name, partitions=[answer])]
        )


def settle(followed, leader, current=lambda _: True):
    lookup = OffsetLookup(leader, 2, 9)
    return run(lookup.settle(followed, current, lambda: 0))


def test_a_leader_that_ends_before_us_cuts_us():
    followed, leader = following(5), Leader(3)
    assert settle(followed, leader) is Outcome.GO_ON
    assert (followed.offset, followed.partition.log.end_offset, followed.lag) == (3, 3, 0)
    assert leader.asked == [LATEST]


def test_a_leader_that_begins_after_us_makes_us_begin_there():
    followed = following(5)
    assert settle(followed, Leader(20, 12)) is Outcome.GO_ON
    log = followed.partition.log
    assert (followed.offset, log.start_offset, log.end_offset, log.high_watermark) == (12, 12, 12, 12)
    assert followed.lag == 8


def test_else_we_ask_again_from_our_end():
    followed = following(5)
    assert settle(followed, Leader(20, 2)) is Outcome.GO_ON
    assert (followed.offset, followed.partition.log.start_offset, followed.lag) == (5, 0, 15)


@pytest.mark.parametrize(
    ("latest", "earliest", "outcome"),
    [
        (None, 0, Outcome.BACK_OFF),
        (20, None, Outcome.BACK_OFF),
        (ErrorCode.UNKNOWN_LEADER_EPOCH, 0, Outcome.BACK_OFF),
        (20, ErrorCode.NOT_LEADER_OR_FOLLOWER, Outcome.BACK_OFF),
        (ErrorCode.FENCED_LEADER_EPOCH, 0, Outcome.FAILED),
        (ErrorCode.KAFKA_STORAGE_ERROR, 0, Outcome.BACK_OFF),  # of the leader's disk
    ],
)
def test_refusals(latest, earliest, outcome):
    followed = following(5)
    assert settle(followed, Leader(latest, earliest)) is outcome
    assert followed.partition.log.end_offset == 5


def test_a_role_that_changed_meanwhile_leaves_the_log_alone():
    followed = following(5)
    assert settle(followed, Leader(3), current=lambda _: False) is Outcome.BACK_OFF
    assert followed.partition.log.end_offset == 5


def test_a_disk_that_fails_ends_it():
    followed = following(5)
    leader = Leader(3, on_ask=lambda: followed.partition.log.directory.fail(OSError(5, "gone")))
    assert settle(followed, leader) is Outcome.FAILED
