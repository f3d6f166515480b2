"""Replica lists under reassignment, with the examples of Kafka's documentation."""

from __future__ import annotations

from replication.controller.assignment import Assignment, assignments_in, encode_assignments
from replication.metadata.payloads import decode_topic


def test_a_move_to_other_brokers_lists_the_target_first():
    moving = Assignment((1, 2, 3)).towards((4, 5, 6))
    assert moving == Assignment((4, 5, 6, 1, 2, 3), (4, 5, 6), (1, 2, 3))
    assert moving.origin == (1, 2, 3)
    assert moving.target == (4, 5, 6)
    assert moving.reassigning
    assert not Assignment((1, 2, 3)).reassigning


def test_a_replaced_target_starts_from_the_origin():
    moving = Assignment((1, 2, 3)).towards((4, 5, 6)).towards((1, 2, 7))
    assert moving == Assignment((1, 2, 7, 3), (7,), (3,))


def test_a_cancelled_move_may_have_lost_the_order():
    moving = Assignment((1, 2, 3)).towards((3, 4, 2))
    assert moving == Assignment((3, 4, 2, 1), (4,), (1,))
    assert moving.towards(moving.origin) == Assignment((3, 2, 1))


def test_the_replication_factor_is_changed_by_the_length_of_the_list():
    assert Assignment((1,)).towards((1, 2, 3)) == Assignment((1, 2, 3), (2, 3), ())
    assert Assignment((1, 2, 3)).towards((2,)) == Assignment((2, 1, 3), (), (1, 3))


def test_a_new_order_alone_is_no_reassignment():
    assert Assignment((1, 2, 3)).towards((3, 2, 1)) == Assignment((3, 2, 1))


def test_a_replica_that_is_removed_leaves_all_lists():
    moving = Assignment((4, 1, 2), (4,), (1,))
    assert moving.without(1) == Assignment((4, 2), (4,), ())
    assert moving.without(4) == Assignment((1, 2), (), (1,))


def test_the_topics_node_names_only_partitions_that_move():
    assignments = {0: Assignment((1, 2)), 1: Assignment((3, 1, 2), (3,), (1,))}
    stored = decode_topic("/t", encode_assignments(b"x" * 16, assignments))
    assert stored.topic_id == b"x" * 16
    assert (stored.adding, stored.removing) == ({1: (3,)}, {1: (1,)})
    assert assignments_in(stored) == assignments
