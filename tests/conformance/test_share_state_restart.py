"""Share state of a broker that was killed, and what it keeps of its log until then.

One broker of each kind is filled, killed and started once for this module.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from coordinator.placement import partition_for
from tests.conformance.share_requests import STATE_TOPIC, Share
from tests.support.kafka_process import KafkaProcess
from tests.support.ottla_process import OttlaProcess
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

SETTINGS = {
    "share.coordinator.snapshot.update.records.per.snapshot": "3",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.prune.interval.ms": "200",
}


@pytest.fixture(scope="module", params=[OttlaProcess, pytest.param(KafkaProcess, marks=pytest.mark.kafka)])
def share(request: pytest.FixtureRequest) -> Iterator[Share]:
    """Killed after a second snapshot with one update behind it, and after the log was pruned."""
    with request.param(overrides=SETTINGS) as running:
        with WireClient(running.bootstrap_servers) as wire:
            share = Share(wire, wire.create_topic("shared"))
            share.wait()
            share.initialize(state_epoch=2, start=10)
            share.read(leader_epoch=4)
            for offset in range(10, 14):
                share.write(
                    (offset, offset, 2, 1), start=10, leader_epoch=4, state_epoch=2, complete=offset - 9
                )
            assert partition_for(share.key(), 1) == 0
            wait_until(lambda: wire.list_offset(STATE_TOPIC, -2).offset == 4, "a pruned log")
        running.kill()
        running.start()
        with WireClient(running.bootstrap_servers) as share.wire:
            wait_until(lambda: share.summary().error_code == 0, "a loaded coordinator")
            yield share


def test_state_is_as_it_was(share: Share) -> None:
    found = share.read(leader_epoch=4)
    assert (found.error_code, found.state_epoch, found.start_offset) == (0, 2, 10)
    assert share.batches(leader_epoch=4) == [(10, 13, 2, 1)]
    shown = share.summary()
    assert (shown.leader_epoch, shown.delivery_complete_count) == (4, 4)


def test_fences_hold(share: Share) -> None:
    assert share.read(leader_epoch=3).error_code == 74
    assert share.write(leader_epoch=4, state_epoch=1).error_code == 124


def test_the_log_is_pruned_again_to_the_oldest_snapshot_that_counts(share: Share) -> None:
    wait_until(lambda: share.wire.list_offset(STATE_TOPIC, -2).offset == 4, "a pruned log")
    assert share.wire.list_offset(STATE_TOPIC, -1).offset == 6
