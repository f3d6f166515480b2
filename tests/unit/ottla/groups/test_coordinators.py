"""Finding coordinators, and asking again while they move or load."""

from __future__ import annotations

import pytest

from ottla.client import ClientError, KafkaClient
from ottla.groups.coordinators import Coordinators
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.errors import ErrorCode
from tests.unit.ottla.groups.scripted_group import ScriptedGroup


def test_several_groups_are_found_with_one_request_and_remembered() -> None:
    with ScriptedGroup({}) as group, KafkaClient(group.address) as client:
        coordinators = Coordinators(client, 5)
        assert coordinators.nodes(["a", "b", "a"]) == {"a": 1, "b": 1}
        assert coordinators.by_node(["b", "a"]) == {1: ["b", "a"]}
        (asked,) = group.asked(m.FindCoordinatorRequest)
        assert (asked.key_type, asked.coordinator_keys) == (0, ["a", "b"])


def test_an_older_broker_is_asked_group_by_group() -> None:
    with (
        ScriptedGroup({}, {ApiKey.FIND_COORDINATOR: (0, 3)}) as group,
        KafkaClient(group.address) as client,
    ):
        assert Coordinators(client, 5).nodes(["a", "b"]) == {"a": 1, "b": 1}
        assert [each.key for each in group.asked(m.FindCoordinatorRequest)] == ["a", "b"]


def test_a_coordinator_that_is_not_there_yet_is_asked_for_again() -> None:
    missing = m.FindCoordinatorResponse(
        coordinators=[
            m.FindCoordinatorResponse.Coordinator(key="g", error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        ]
    )
    with ScriptedGroup({}) as group, KafkaClient(group.address) as client:
        answers = [missing, missing]
        group.answers[m.FindCoordinatorRequest] = lambda request: (
            answers.pop() if answers else group.found(request)
        )
        assert Coordinators(client, 5).node("g") == 1
        assert len(group.asked(m.FindCoordinatorRequest)) == 3


def test_patience_ends_with_the_last_error_and_other_errors_end_it_at_once() -> None:
    denied = m.FindCoordinatorResponse(
        coordinators=[
            m.FindCoordinatorResponse.Coordinator(key="g", error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        ]
    )
    loading = m.FindCoordinatorResponse(
        coordinators=[
            m.FindCoordinatorResponse.Coordinator(key="g", error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        ]
    )
    with ScriptedGroup({}) as group, KafkaClient(group.address) as client:
        for answer, count in ((denied, 1), (loading, 2)):
            group.answers[m.FindCoordinatorRequest] = [answer]
            before = len(group.asked(m.FindCoordinatorRequest))
            with pytest.raises(ClientError) as refusal:
                Coordinators(client, 0.05).node("g")
            assert refusal.value.error == answer.coordinators[0].error_code
            assert len(group.asked(m.FindCoordinatorRequest)) - before == count


def test_a_coordinator_that_says_it_is_none_is_looked_for_again() -> None:
    with ScriptedGroup({}) as group, KafkaClient(group.address) as client:
        coordinators = Coordinators(client, 5)
        coordinators.node("g")
        with pytest.raises(ClientError):
            coordinators.check("g", ErrorCode.NOT_COORDINATOR)
        coordinators.node("g")
        assert len(group.asked(m.FindCoordinatorRequest)) == 2
