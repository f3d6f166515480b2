"""Draws: ids that no tool mistakes for an option, seeds that repeat."""

import base64

from runtime.entropy import SeededRandom, SystemRandom


def test_uuid_is_version_4_and_its_text_never_starts_with_a_dash():
    source = SeededRandom(b"seed")
    for _ in range(2000):
        drawn = source.uuid()
        assert len(drawn) == 16
        assert drawn[6] >> 4 == 4
        assert drawn[8] >> 6 == 2
        assert base64.urlsafe_b64encode(drawn)[:1] != b"-"


def test_seeded_draws_repeat_and_forks_do_not_disturb_each_other():
    one, two = SeededRandom(b"a"), SeededRandom(b"a")
    assert one.token(8) == two.token(8)
    left = one.fork("log")
    one.integer(0, 9)
    assert left.token(16) == two.fork("log").token(16)
    assert SeededRandom(b"a").fork("x").token(16) != SeededRandom(b"a").fork("y").token(16)
    assert SeededRandom(b"b").token(8) != SeededRandom(b"a").token(8)


def test_integers_include_both_ends():
    source = SeededRandom(b"seed")
    assert {source.integer(3, 5) for _ in range(200)} == {3, 4, 5}


def test_shuffle_keeps_the_items():
    items = list(range(50))
    SeededRandom(b"s").shuffle(items)
    assert items != list(range(50))
    assert sorted(items) == list(range(50))


def test_system_random_does_not_repeat():
    source = SystemRandom()
    assert source.fork("x").token(16) != source.token(16)
    assert len(source.token(5)) == 5
    assert source.uuid() != source.uuid()
