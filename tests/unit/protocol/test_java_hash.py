"""Java's hash of a text (vectors computed by Java)."""

from __future__ import annotations

import pytest

from protocol.java_hash import java_hash


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", 0),
        ("test", 3556498),
        ("my-group", -1906497762),
        ("polygenelubricants", -(2**31)),
        ("grüppe", -1233264812),
        ("😀x", 54959989),
    ],
)
def test_the_hash_is_javas(text: str, code: int) -> None:
    assert java_hash(text) == code


def test_a_lone_surrogate_is_one_unit() -> None:
    assert java_hash("\ud83d") == 0xD83D
