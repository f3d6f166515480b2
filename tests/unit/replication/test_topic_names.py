"""Legal, colliding and internal topic names."""

from __future__ import annotations

import pytest

from replication import topic_names


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "...", "x" * 249, "__consumer_offsets", "-"])
def test_legal_names(name):
    assert topic_names.refusal_of(name) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "the empty string is not allowed"),
        (".", "'.' is not allowed"),
        ("..", "'..' is not allowed"),
        ("x" * 250, "is longer than the max allowed length 249"),
        ("a/b", "contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),
        (" a", "contains one or more characters"),
        ("a\0", "contains one or more characters"),
        ("a\n", "contains one or more characters"),
        ("ä", "contains one or more characters"),
    ],
)
def test_illegal_names_are_refused_with_the_reason(name, reason):
    refusal = topic_names.refusal_of(name)
    assert refusal is not None
    assert refusal.startswith("Topic name is invalid: ")
    assert reason in refusal


def test_names_collide_when_dots_and_underscores_are_alike():
    taken = topic_names.Collisions(["a.b", "plain"])
    assert taken.with_name("a_b") == "a.b"
    assert taken.with_name("plain") is None
    assert taken.with_name("p_lain") is None
    taken.add("x_y.z")
    assert taken.with_name("x.y_z") == "x_y.z"


def test_internal_topics():
    assert topic_names.is_internal("__consumer_offsets")
    assert topic_names.is_internal("__transaction_state")
    assert not topic_names.is_internal("_offsets")
