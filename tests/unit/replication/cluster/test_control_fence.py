"""Which control requests are accepted."""

from __future__ import annotations

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.cluster.control_fence import ControlFence


def request(controller_epoch=5, broker_epoch=100):
    return m.StopReplicaRequest(controller_epoch=controller_epoch, broker_epoch=broker_epoch)


@pytest.mark.parametrize(
    ("broker_epoch", "error"),
    [
        (99, ErrorCode.STALE_BROKER_EPOCH),
        (100, ErrorCode.NONE),
        (101, ErrorCode.NONE),  # the controller knows of a registration that we don't know yet
        (-1, ErrorCode.NONE),
    ],
)
def test_the_registration(broker_epoch, error):
    assert ControlFence(lambda: 100).check(request(broker_epoch=broker_epoch)) == error


def test_the_highest_controller_epoch_counts():
    fence = ControlFence(lambda: 100)
    assert fence.check(request(5)) == ErrorCode.NONE
    assert fence.check(request(4)) == ErrorCode.STALE_CONTROLLER_EPOCH
    assert fence.check(request(5)) == ErrorCode.NONE
    assert fence.check(request(7)) == ErrorCode.NONE
    assert fence.check(request(6)) == ErrorCode.STALE_CONTROLLER_EPOCH
    assert fence.controller_epoch == 7


def test_a_stale_registration_is_seen_first_and_sets_no_epoch():
    fence = ControlFence(lambda: 100)
    assert fence.check(request(9, 50)) == ErrorCode.STALE_BROKER_EPOCH
    assert fence.controller_epoch == 0
