"""What a transaction's answer means. The lists are as kazoo 2.11 gave them with ZooKeeper 3.9."""

from __future__ import annotations

from collections import namedtuple

import pytest
from kazoo.exceptions import (
    BadVersionError,
    NodeExistsError,
    NoNodeError,
    RolledBackError,
    RuntimeInconsistency,
)

from replication.metadata.store import (
    BadVersion,
    Check,
    Create,
    Delete,
    NodeExists,
    NoNode,
    Put,
    StoreFailed,
)
from replication.metadata.zookeeper_multi import versions_after

Stat = namedtuple("Stat", "version")

FENCED = [Check("/epoch", 3), Put("/state", b"", 7)]


def test_versions_of_a_transaction_that_went_well():
    operations = [Check("/e", 4), Create("/a", b""), Put("/a", b"x", 0), Delete("/b")]
    assert versions_after(operations, [True, "/a", Stat(1), True]) == [4, 0, 1, -1]


def test_a_fence_that_failed_is_the_first_operation():
    with pytest.raises(BadVersion) as refused:
        versions_after(FENCED, [BadVersionError(), RuntimeInconsistency()])
    assert (refused.value.operation_index, refused.value.path) == (0, "/epoch")


def test_a_write_that_lost_is_the_one_after_what_was_rolled_back():
    with pytest.raises(BadVersion) as refused:
        versions_after(FENCED, [RolledBackError(), BadVersionError()])
    assert (refused.value.operation_index, refused.value.path) == (1, "/state")


def test_each_operation_has_its_own_refusal():
    operations = [Create("/p/c", b""), Delete("/d")]
    with pytest.raises(NodeExists):
        versions_after(operations, [NodeExistsError(), RuntimeInconsistency()])
    with pytest.raises(NoNode) as parent:
        versions_after(operations, [NoNodeError(), RuntimeInconsistency()])
    assert parent.value.path == "/p"
    with pytest.raises(NoNode) as node:
        versions_after(operations, [RolledBackError(), NoNodeError()])
    assert node.value.path == "/d"


@pytest.mark.parametrize("answer", [[True], [RolledBackError(), RolledBackError()]])
def test_an_answer_without_a_reason_is_a_failure_all_the_same(answer):
    with pytest.raises(StoreFailed, match="no reason"):
        versions_after(FENCED, answer)
