"""Listing and deleting groups, reading and changing their offsets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ottla.client import ClientError, KafkaClient
from ottla.groups.admin import Committed, GroupAdmin, Listing
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from tests.unit.ottla.groups.scripted_group import ScriptedGroup


@contextmanager
def admin_of(answers: dict, versions: dict | None = None) -> Iterator[tuple[ScriptedGroup, GroupAdmin]]:
    with ScriptedGroup(answers, versions) as group, KafkaClient(group.address) as client:
        yield group, GroupAdmin(client, 5)


def listed(*groups: tuple[str, str, str, str]) -> m.ListGroupsResponse:
    return m.ListGroupsResponse(
        groups=[
            m.ListGroupsResponse.ListedGroup(
                group_id=group_id, protocol_type=kind, group_state=state, group_type=group_type
            )
            for group_id, kind, state, group_type in groups
        ]
    )


def test_groups_are_listed_in_order_without_those_of_other_kinds() -> None:
    answer = listed(
        ("z", "consumer", "Stable", "consumer"),
        ("connect-x", "connect", "Stable", "classic"),
        ("a", "", "Empty", "classic"),
    )
    with admin_of({m.ListGroupsRequest: [answer]}) as (group, admin):
        assert admin.list_groups(("consumer", ""), ["Stable"], ["Classic"]) == [
            Listing("a", "", "Empty", "Classic"),
            Listing("z", "consumer", "Stable", "Consumer"),
        ]
        (asked,) = group.asked(m.ListGroupsRequest)
        assert (asked.states_filter, asked.types_filter) == (["Stable"], ["Classic"])


def test_a_broker_too_old_for_states_says_so() -> None:
    old = {ApiKey.LIST_GROUPS: (0, 3)}
    with admin_of({m.ListGroupsRequest: [listed(("a", "consumer", "", ""))]}, old) as (_, admin):
        assert admin.list_groups(("consumer",), types=["Classic"]) == [Listing("a", "consumer", "", "")]
        with pytest.raises(ClientError, match="we need v4 or newer"):
            admin.list_groups(("consumer",), ["Stable"])


def deleted(**codes: ErrorCode) -> m.DeleteGroupsResponse:
    return m.DeleteGroupsResponse(
        results=[
            m.DeleteGroupsResponse.DeletableGroupResult(group_id=group_id, error_code=code)
            for group_id, code in codes.items()
        ]
    )


def test_what_a_moving_coordinator_left_undone_is_done_again_and_nothing_twice() -> None:
    answers = [
        deleted(a=ErrorCode.NONE, b=ErrorCode.NOT_COORDINATOR),
        deleted(b=ErrorCode.NON_EMPTY_GROUP),
    ]
    with admin_of({m.DeleteGroupsRequest: answers}) as (group, admin):
        assert admin.delete_groups(["a", "b"]) == {"a": ErrorCode.NONE, "b": ErrorCode.NON_EMPTY_GROUP}
        assert [each.groups_names for each in group.asked(m.DeleteGroupsRequest)] == [["a", "b"], ["b"]]


def fetched(group_error: ErrorCode = ErrorCode.NONE) -> m.OffsetFetchResponse:
    response = m.OffsetFetchResponse
    partitions = [
        response.OffsetFetchResponsePartitions(
            partition_index=0, committed_offset=7, committed_leader_epoch=3
        ),
        response.OffsetFetchResponsePartitions(partition_index=1, committed_offset=-1),
        response.OffsetFetchResponsePartitions(
            partition_index=2, committed_offset=9, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
        ),
    ]
    topics = [response.OffsetFetchResponseTopics(name="t", partitions=partitions)]
    return response(
        groups=[response.OffsetFetchResponseGroup(group_id="g", topics=topics, error_code=group_error)]
    )


def test_committed_offsets_are_all_that_can_be_read() -> None:
    answers = [fetched(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS), fetched()]
    with admin_of({m.OffsetFetchRequest: answers}) as (group, admin):
        assert admin.committed("g") == {("t", 0): Committed(7, 3)}
        asked = group.asked(m.OffsetFetchRequest)[-1]
        assert [(each.group_id, each.topics) for each in asked.groups] == [("g", None)]


def test_an_older_broker_tells_the_same_of_one_group() -> None:
    partition = m.OffsetFetchResponse.OffsetFetchResponsePartition(partition_index=4, committed_offset=11)
    topic = m.OffsetFetchResponse.OffsetFetchResponseTopic(name="t", partitions=[partition])
    answer = m.OffsetFetchResponse(topics=[topic])
    with admin_of({m.OffsetFetchRequest: [answer]}, {ApiKey.OFFSET_FETCH: (1, 5)}) as (group, admin):
        assert admin.committed("g") == {("t", 4): Committed(11)}
        (asked,) = group.asked(m.OffsetFetchRequest)
        assert (asked.group_id, asked.topics) == ("g", None)


def test_offsets_are_committed_as_nobodys_and_each_has_its_outcome() -> None:
    def answer(request: m.OffsetCommitRequest) -> m.OffsetCommitResponse:
        response = m.OffsetCommitResponse
        return response(
            topics=[
                response.OffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        response.OffsetCommitResponsePartition(
                            partition_index=each.partition_index,
                            error_code=0 if each.partition_index else ErrorCode.UNKNOWN_MEMBER_ID,
                        )
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    with admin_of({m.OffsetCommitRequest: answer}) as (group, admin):
        assert admin.commit("g", {("t", 0): 1, ("t", 1): 2}) == {
            ("t", 0): ErrorCode.UNKNOWN_MEMBER_ID,
            ("t", 1): ErrorCode.NONE,
        }
        (asked,) = group.asked(m.OffsetCommitRequest)
        assert (asked.group_id, asked.generation_id_or_member_epoch, asked.member_id) == ("g", -1, "")


def test_deleting_offsets_fails_for_the_group_or_for_partitions() -> None:
    response = m.OffsetDeleteResponse
    part = response.OffsetDeleteResponsePartition(
        partition_index=0, error_code=ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    )
    answers = [
        response(error_code=ErrorCode.GROUP_ID_NOT_FOUND),
        response(topics=[response.OffsetDeleteResponseTopic(name="t", partitions=[part])]),
    ]
    with admin_of({m.OffsetDeleteRequest: answers}) as (_, admin):
        with pytest.raises(ClientError) as refusal:
            admin.delete_offsets("g", [("t", 0)])
        assert refusal.value.error == ErrorCode.GROUP_ID_NOT_FOUND
        assert admin.delete_offsets("g", [("t", 0)]) == {("t", 0): ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC}
