"""Each refusal of ZooKeeper has a name in the port."""

from __future__ import annotations

import pytest
from kazoo import exceptions as theirs

from replication.metadata import store as ours
from replication.metadata.zookeeper_errors import came_from_server, translate, translate_operation


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (theirs.NoNodeError(), ours.NoNode),
        (theirs.NodeExistsError(), ours.NodeExists),
        (theirs.BadVersionError(), ours.BadVersion),
        (theirs.NotEmptyError(), ours.NotEmpty),
        (theirs.SessionExpiredError(), ours.SessionExpired),
        (theirs.ConnectionClosedError(), ours.SessionExpired),
        (theirs.ConnectionLoss(), ours.ConnectionLost),
        (theirs.SessionMovedError(), ours.ConnectionLost),
        (theirs.NoAuthError(), ours.StoreFailed),
    ],
)
def test_refusals_by_name(error, kind):
    found = translate(error, "/a")
    assert type(found) is kind
    assert found.path == "/a"


def test_a_reason_without_a_name_of_ours_is_told():
    assert "NoAuthError" in str(translate(theirs.NoAuthError(), "/a"))


def test_a_creation_may_fail_for_its_parent():
    create = ours.Create("/p/c", b"")
    missing = translate_operation(theirs.NoNodeError(), create)
    assert (type(missing), missing.path) == (ours.NoNode, "/p")
    ephemeral = translate_operation(theirs.NoChildrenForEphemeralsError(), create)
    assert (type(ephemeral), ephemeral.path) == (ours.ParentEphemeral, "/p")
    exists = translate_operation(theirs.NodeExistsError(), create)
    assert (type(exists), exists.path) == (ours.NodeExists, "/p/c")
    assert translate_operation(theirs.NoNodeError(), ours.Put("/p/c", b"")).path == "/p/c"


def test_a_refusal_is_an_answer_and_a_loss_is_none():
    assert came_from_server(None)
    assert came_from_server(theirs.NoNodeError())
    assert not came_from_server(theirs.ConnectionLoss())
    assert not came_from_server(theirs.SessionExpiredError())
