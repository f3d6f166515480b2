"""The four ways to choose a leader."""

from __future__ import annotations

from replication.controller import elections
from replication.controller.assignment import Assignment
from replication.controller.cluster_state import Leadership

KNOWN = Leadership(1, 5, (1, 2, 3), 7, 1)
ASSIGNED = Assignment((1, 2, 3))


def online(*brokers):
    return lambda broker: broker in brokers


def test_offline_takes_the_first_replica_that_is_online_and_in_sync():
    elected = elections.for_offline(ASSIGNED, KNOWN, online(2, 3), unclean=False)
    assert elected == elections.Elected(Leadership(2, 6, (2, 3), 7, 1), (2, 3))


def test_offline_goes_by_the_order_of_the_assignment_and_not_of_the_isr():
    known = Leadership(1, 5, (1, 3, 2), 7, 1)
    elected = elections.for_offline(Assignment((2, 3, 1)), known, online(2, 3), unclean=False)
    assert elected.leadership.leader == 2
    assert elected.leadership.isr == (3, 2)


def test_offline_without_anybody_in_sync_elects_nobody_unless_unclean():
    known = Leadership(-1, 5, (1,), 7, 1)
    assert elections.for_offline(ASSIGNED, known, online(2, 3), unclean=False) is None
    elected = elections.for_offline(ASSIGNED, known, online(2, 3), unclean=True)
    assert elected.leadership == Leadership(2, 6, (2,), 7, 1, recovering=True)
    assert elected.recipients == (2, 3)


def test_unclean_prefers_who_is_in_sync_and_needs_somebody_online():
    elected = elections.for_offline(ASSIGNED, Leadership(-1, 5, (3,), 7, 1), online(2, 3), unclean=True)
    assert elected.leadership == Leadership(3, 6, (3,), 7, 1)
    assert elections.for_offline(ASSIGNED, KNOWN, online(), unclean=True) is None


def test_a_partition_that_is_recovering_stays_so_until_its_leader_says_otherwise():
    known = Leadership(-1, 5, (2,), 7, 1, recovering=True)
    assert elections.for_offline(ASSIGNED, known, online(2), unclean=False).leadership.recovering


def test_reassignment_leads_from_the_target_and_leaves_the_isr():
    moving = Assignment((4, 5, 1, 2), (4, 5), (1, 2))
    known = Leadership(1, 5, (1, 2, 4, 5), 7, 1)
    elected = elections.for_reassignment(moving, known, online(1, 2, 5))
    assert elected == elections.Elected(Leadership(5, 6, (1, 2, 4, 5), 7, 1), (4, 5))
    assert elections.for_reassignment(moving, known, online(1, 2)) is None


def test_preferred_is_the_first_replica_or_nobody():
    known = Leadership(2, 5, (1, 2), 7, 1)
    elected = elections.for_preferred(ASSIGNED, known, online(1, 2))
    assert elected == elections.Elected(Leadership(1, 6, (1, 2), 7, 1), (1, 2, 3))
    assert elections.for_preferred(ASSIGNED, known, online(2, 3)) is None
    assert elections.for_preferred(ASSIGNED, Leadership(2, 5, (2, 3), 7, 1), online(1, 2, 3)) is None


def test_controlled_shutdown_tells_the_broker_that_goes_and_drops_it_from_the_isr():
    elected = elections.for_controlled_shutdown(ASSIGNED, KNOWN, online(1, 2, 3), online(2, 3))
    assert elected == elections.Elected(Leadership(2, 6, (2, 3), 7, 1), (1, 2, 3))
    alone = Leadership(1, 5, (1,), 7, 1)
    assert elections.for_controlled_shutdown(ASSIGNED, alone, online(1, 2, 3), online(2, 3)) is None
