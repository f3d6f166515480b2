"""A commit from its template leaves the log and the state as the general one does."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.group.manager import Committer
from coordinator.group.offsets import NOW, Commit, Offsets
from coordinator.group.repeated_commit import RepeatedCommit, is_plain
from protocol.errors import ErrorCode as E
from tests.unit.coordinator.group.test_manager import NOBODY, Requests

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
COMMITS = st.lists(
    st.builds(
        Commit,
        topic=NAMES,
        partition=st.integers(0, 2**31 - 1),
        offset=st.integers(-(2**63), 2**63 - 1),
        leader_epoch=st.integers(-1, 2**31 - 1),
        metadata=st.none() | NAMES,
        commit_ms=st.just(NOW),
    ),
    min_size=1,
    max_size=12,
    unique_by=lambda each: each[:2],
)


def again(groups: Requests, commits: list[Commit], committer: Committer = NOBODY, group: str = "g") -> list:
    """Commit with a template that was made of other offsets."""
    prepared = RepeatedCommit(0, group, committer, 8, [each._replace(offset=1) for each in commits])
    prepared.offsets = [each.offset for each in commits]
    answers: list = []
    groups.manager.commit_again(prepared, lambda *got: answers.append(got))
    return answers


def cells(offsets: Offsets, group: str = "g") -> dict:
    return dict(offsets.committed.committed_row(group))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(group=NAMES.filter(bool), commits=COMMITS)
def test_it_is_what_the_general_one_is(group: str, commits: list[Commit]) -> None:
    general, short = Requests(), Requests()
    for number in range(2):  # behind another batch too
        told: list = []
        general.manager.commit_offsets(group, Committer(), 8, commits, lambda *got, t=told: t.append(got))
        general.topic.commit()
        answers = again(short, commits, group=group)
        assert answers == []
        short.topic.commit()
        assert (answers, told) == ([(E.NONE, None)], [(E.NONE, [E.NONE] * len(commits))])
        assert short.topic.logs[0] == general.topic.logs[0]
        assert cells(short.shard.offsets, group) == cells(general.shard.offsets, group)
        assert len(cells(short.shard.offsets, group)) == len(commits)
        for each in (general, short):
            each.time.advance(number + 3)


def test_a_failed_write_takes_all_of_it_back() -> None:
    groups = Requests()
    both = [Commit("t", 0, 5), Commit("u", 3, 6)]
    groups.offset_commit(*both)
    before = cells(groups.shard.offsets)
    answers = again(groups, [each._replace(offset=90) for each in both])
    assert cells(groups.shard.offsets) == before, "readers see what is committed"
    groups.topic.fail(E.KAFKA_STORAGE_ERROR)
    assert answers == [(E.NOT_COORDINATOR, None)]
    assert groups.shard.offsets.committed.row("g") == before
    groups.topic.refuse = E.MESSAGE_TOO_LARGE
    assert again(groups, both) == [(E.UNKNOWN_SERVER_ERROR, None)]
    assert groups.shard.offsets.committed.row("g") == before


def test_the_group_decides_each_time() -> None:
    groups = Requests()
    member = groups.member()
    asked = [Commit("t", 0, 5)]
    assert again(groups, asked, Committer(member, None, 1)) == []
    groups.topic.commit()
    assert again(groups, asked, Committer(member, None, 2)) == [(E.ILLEGAL_GENERATION, None)]
    assert again(groups, asked, Committer("other", None, 1)) == [(E.UNKNOWN_MEMBER_ID, None)]
    assert again(groups, asked) == [(E.UNKNOWN_MEMBER_ID, None)]
    assert again(groups, asked, group="") == []  # for tools of old
    groups.runtime.unload(0)
    assert again(groups, asked) == [(E.NOT_COORDINATOR, None)]
    groups.runtime.close()
    assert again(groups, asked) == [(E.COORDINATOR_NOT_AVAILABLE, None)]


def test_a_commit_keeps_the_session() -> None:
    groups = Requests()
    member = groups.member()
    groups.time.advance(9_000)
    again(groups, [Commit("t", 0, 5)], Committer(member, None, 1))
    groups.time.advance(9_999)
    assert member in groups.shard.groups["g"].members
    groups.time.advance(1)
    assert "g" not in groups.shard.groups or member not in groups.shard.groups["g"].members


@pytest.mark.parametrize(
    ("commit", "retention_ms", "plain"),
    [
        (Commit("t", 0, 5), -1, True),
        (Commit("t", 0, 5, 3, "here"), -1, True),
        (Commit("t", 0, 5), 0, False),
        (Commit("t", 0, 5, commit_ms=7), -1, False),
    ],
)
def test_what_has_times_of_its_own_is_not_plain(commit: Commit, retention_ms: int, plain: bool) -> None:
    assert is_plain(commit, retention_ms) is plain
