"""Moves between directories: begun until they are, told, and found for the way back."""

from __future__ import annotations

import pytest

from ottla.cli import reassignment_log_dirs as log_dirs
from ottla.cli.reassignment_file import Refused
from protocol.errors import ErrorCode

FIRST, SECOND = (("t", 0), 1), (("t", 1), 2)


class Cluster:
    """Answers moves from a list, and tells where replicas are."""

    def __init__(self, *answers, where=None) -> None:
        self.answers = list(answers)
        self.asked = []
        self.where = where or {}

    def move(self, wanted):
        self.asked.append(dict(wanted))
        return self.answers.pop(0)

    def directories(self, wanted):
        return {replica: self.where[replica] for replica in wanted if replica in self.where}


def test_a_replica_that_is_not_there_yet_is_asked_for_again(capsys, monkeypatch):
    monkeypatch.setattr(log_dirs, "RETRY_PAUSE_S", 0.0)
    cluster = Cluster(
        {SECOND: ErrorCode.REPLICA_NOT_AVAILABLE, FIRST: ErrorCode.NONE}, {SECOND: ErrorCode.NONE}
    )
    log_dirs.begin(cluster, {FIRST: "/a", SECOND: "/b"}, 10_000)
    assert cluster.asked == [{FIRST: "/a", SECOND: "/b"}, {SECOND: "/b"}]
    assert capsys.readouterr().out.splitlines() == [
        "Successfully started moving log directory to /a for replica t-0 with broker 1 ",
        "Successfully started moving log directory to /b for replica t-1 with broker 2 ",
    ]


def test_what_does_not_come_in_time_or_is_refused_is_told():
    late = Cluster({FIRST: ErrorCode.REPLICA_NOT_AVAILABLE})
    with pytest.raises(Refused, match="Timed out before log directory move could be started for: t-0-1"):
        log_dirs.begin(late, {FIRST: "/a"}, 0)
    refused = Cluster({FIRST: ErrorCode.LOG_DIR_NOT_FOUND})
    with pytest.raises(Refused, match="Error: Failed to alter dir for t-0-1"):
        log_dirs.begin(refused, {FIRST: "/a"}, 0)


@pytest.mark.parametrize(
    ("where", "line", "moving"),
    [
        (
            None,
            "Partition t-0 is not found in any live log dir on broker 1. There is likely an offline log "
            "directory on the broker.",
            False,
        ),
        (("/a", None), "Reassignment of replica t-0-1 completed successfully.", False),
        (("/b", "/a"), "Reassignment of replica t-0-1 is still in progress.", True),
        (("/b", "/c"), "Partition t-0 on broker 1 is being moved to log dir /c instead of /a.", True),
        (("/b", None), "Partition t-0 on broker 1 is not being moved from log dir /b to /a.", False),
    ],
)
def test_where_a_replica_is(where, line, moving):
    cluster = Cluster(where={} if where is None else {FIRST: where})
    assert log_dirs.states(cluster, {FIRST: "/a"}) == ([line], moving)


def test_the_way_back_is_where_moving_replicas_are():
    cluster = Cluster(where={FIRST: ("/b", "/a"), SECOND: ("/b", None)})
    assert log_dirs.active(cluster, {FIRST: "/a", SECOND: "/a"}) == {FIRST: "/b"}
