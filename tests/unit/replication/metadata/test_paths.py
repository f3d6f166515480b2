"""Kafka's paths in the tree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replication.metadata import paths


def test_kafkas_paths():
    assert paths.broker(3) == "/brokers/ids/3"
    assert paths.topic("a.b") == "/brokers/topics/a.b"
    assert paths.partition_state("t", 7) == "/brokers/topics/t/partitions/7/state"
    assert paths.config("topics", "t") == "/config/topics/t"
    assert "/config/users" in paths.ROOTS
    assert "/latest_producer_id_block" in paths.ROOTS


@pytest.mark.parametrize(
    ("name", "stored"),
    [
        ("plain", "plain"),
        ("a b", "a%20b"),
        ("a*b", "a%2Ab"),
        ("CN=x,OU=y", "CN%3Dx%2COU%3Dy"),
        ("a/b", "a%2Fb"),
        ("~", "%7E"),
        ("a+b", "a%2Bb"),
        ("ü", "%C3%BC"),
        ("a.b-c_d", "a.b-c_d"),
    ],
)
def test_names_of_users_and_clients_are_sanitized_as_in_java(name, stored):
    assert paths.sanitize(name) == stored
    assert paths.desanitize(stored) == name


@given(st.text())
def test_sanitized_names_come_back_and_fit_into_a_path(name):
    stored = paths.sanitize(name)
    assert "/" not in stored
    assert paths.desanitize(stored) == name
