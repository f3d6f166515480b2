"""The numbers of partitions: ranges, holes at their edges, checksums."""

from __future__ import annotations

from spark_jobs.audit.partitions import WORD, Partition, checksum, place_key, within


def test_partitions_of_a_topic_have_the_range_that_was_read_and_its_holes() -> None:
    full = Partition("0", 10, 1, first=5, last=14)
    holed = Partition("1", 3, 2, first=2, last=7, holes=3, runs=2)
    found = within([holed, full], {0: 5, 1: 0, 2: 4, 3: 8}, {0: 15, 1: 9, 2: 6, 3: 8})
    assert [each.name for each in found] == ["0", "1", "2", "3"]
    assert [(each.holes, each.runs) for each in found] == [(0, 0), (6, 4), (2, 1), (0, 0)]
    assert [(each.start, each.end) for each in found] == [(5, 15), (0, 9), (4, 6), (8, 8)]
    assert found[2].records == found[3].records == 0


def test_partitions_are_sorted_as_numbers_and_files_by_name() -> None:
    assert sorted(["10", "b.log", "9", "a.log"], key=place_key) == ["9", "10", "a.log", "b.log"]


def test_the_checksum_of_all_is_the_sum_of_all_modulo_a_word() -> None:
    parts = [Partition("0", 1, WORD - 1), Partition("1", 1, 5)]
    assert checksum(parts) == 4
    assert parts[0].checksum_text == "f" * 16
    assert checksum([]) == 0
