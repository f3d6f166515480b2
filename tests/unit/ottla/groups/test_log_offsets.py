"""Offsets of partitions, from their leaders."""

from __future__ import annotations

import pytest

from ottla.client import ClientError, KafkaClient
from ottla.groups.log_offsets import LATEST, list_offsets, partition_leaders
from protocol import messages as m
from protocol.errors import ErrorCode
from tests.unit.ottla.groups.scripted_group import ScriptedGroup


def answer(offset: int, error: ErrorCode = ErrorCode.NONE) -> m.ListOffsetsResponse:
    part = m.ListOffsetsResponse.ListOffsetsPartitionResponse(
        partition_index=0, offset=offset, error_code=error
    )
    topic = m.ListOffsetsResponse.ListOffsetsTopicResponse(name="t", partitions=[part])
    return m.ListOffsetsResponse(topics=[topic])


def test_a_leader_that_moved_is_looked_for_and_asked_again() -> None:
    answers = [answer(-1, ErrorCode.NOT_LEADER_OR_FOLLOWER), answer(42)]
    with ScriptedGroup({m.ListOffsetsRequest: answers}) as group, KafkaClient(group.address) as client:
        assert list_offsets(client, [("t", 0)], LATEST, 5) == {("t", 0): 42}
        assert list_offsets(client, [], LATEST, 5) == {}


def test_it_gives_up_in_time_or_at_once() -> None:
    for error in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.TOPIC_AUTHORIZATION_FAILED):
        answers = {m.ListOffsetsRequest: [answer(-1, error)]}
        with ScriptedGroup(answers) as group, KafkaClient(group.address) as client:
            with pytest.raises(ClientError) as refusal:
                list_offsets(client, [("t", 0)], LATEST, 0)
            assert refusal.value.error == error


def test_partitions_are_told_with_their_leaders() -> None:
    with ScriptedGroup({}) as group, KafkaClient(group.address) as client:
        assert partition_leaders(client, ["t", "u", "t"]) == {
            ("t", 0): 1,
            ("t", 1): 1,
            ("u", 0): 1,
            ("u", 1): 1,
        }
        assert partition_leaders(client, []) == {}
