"""Who may commit: the group's protocol decides, and a classic group is told of a sign of life."""

from __future__ import annotations

import pytest

from coordinator.group.committer import check_committer
from coordinator.group.manager import Committer
from coordinator.group.offsets import Commit
from coordinator.result import CoordinatorError
from protocol.errors import ErrorCode as E
from tests.unit.coordinator.group.test_manager import Requests

ASKED = [Commit("t", 0, 5)]


def refused(groups: Requests, by: Committer, version: int = 8, *, transactional: bool = False) -> E:
    with pytest.raises(CoordinatorError) as error:
        check_committer(groups.shard, "g", by, version, ASKED, transactional=transactional)
    return error.value.error


def test_a_group_that_is_not_there_takes_those_without_a_generation() -> None:
    groups = Requests()
    assert check_committer(groups.shard, "g", Committer(), 8, ASKED) is None
    assert refused(groups, Committer("m", None, 1)) is E.ILLEGAL_GENERATION
    assert refused(groups, Committer("m", None, 1), 9) is E.GROUP_ID_NOT_FOUND
    assert refused(groups, Committer("m", None, 1), 9, transactional=True) is E.ILLEGAL_GENERATION


def test_a_group_of_offsets_alone_knows_no_members() -> None:
    groups = Requests()
    groups.offset_commit()
    assert check_committer(groups.shard, "g", Committer(), 8, ASKED) is None
    assert refused(groups, Committer("m", None, 1)) is E.UNKNOWN_MEMBER_ID


def test_a_classic_group_goes_by_generation() -> None:
    groups = Requests()
    member = groups.member()
    found = check_committer(groups.shard, "g", Committer(member, None, 1), 8, ASKED)
    assert found is groups.shard.groups["g"]
    assert refused(groups, Committer(member, None, 2)) is E.ILLEGAL_GENERATION
    assert refused(groups, Committer("x", None, 1)) is E.UNKNOWN_MEMBER_ID
    assert refused(groups, Committer()) is E.UNKNOWN_MEMBER_ID
