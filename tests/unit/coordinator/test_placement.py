"""Java's hash of a key, and the partition it gives (vectors computed by Java)."""

import pytest

from coordinator import placement
from coordinator.placement import partition_for
from protocol.java_hash import java_hash


@pytest.mark.parametrize(
    ("key", "code", "partition"),
    [
        ("", 0, 0),
        ("test", 3556498, 48),
        ("my-group", -1906497762, 12),
        ("group-1", 293427299, 49),
        ("my-transactional-id", -959806496, 46),
        ("polygenelubricants", -(2**31), 0),
        ("grüppe", -1233264812, 12),
        ("😀x", 54959989, 39),
    ],
)
def test_a_key_lands_where_java_puts_it(key: str, code: int, partition: int) -> None:
    assert java_hash(key) == code
    assert partition_for(key, 50) == partition


def test_the_absolute_value_is_no_mask() -> None:
    key = "my-group"
    assert partition_for(key, 7) == 1906497762 % 7


def test_long_keys_land_where_the_rule_puts_them_and_are_not_kept() -> None:
    kept = placement._remembered.cache_info().currsize
    key = "k" * 32_767
    assert partition_for(key, 50) == abs(java_hash(key)) % 50
    assert placement._remembered.cache_info().currsize == kept
