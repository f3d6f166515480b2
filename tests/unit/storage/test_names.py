import pytest

from storage import names


def test_segment_files_carry_twenty_digits():
    assert names.segment_file(42, names.LOG) == "00000000000000000042.log"
    assert names.offset_of("00000000000000000042.timeindex") == 42
    assert names.offset_of("7.snapshot") == 7


@pytest.mark.parametrize("name", ["x.log", ".log", "-1.log", "1e3.index", "²3.log"])
def test_a_segment_file_must_start_with_a_number(name):
    with pytest.raises(ValueError, match="does not start with an offset"):
        names.offset_of(name)


def test_a_partition_directory_is_split_at_the_last_dash():
    assert names.parse_partition_dir("a-b.c_d-12") == ("a-b.c_d", 12, "")


def test_a_suffixed_name_parses_up_to_the_last_dot():
    unique = "0123456789abcdef0123456789abcdef"
    parsed = names.parse_partition_dir(f"foo.bar-testtopic-42.{unique}-delete")
    assert parsed == ("foo.bar-testtopic", 42, "delete")
    assert names.parse_partition_dir(f"t-0.{unique}-future") == ("t", 0, "future")
    assert names.parse_partition_dir(f"t-0.{unique}-stray") == ("t", 0, "stray")


@pytest.mark.parametrize(
    "name",
    ["lost+found", "topic", "-1", "topic-", "topic-x", "topic-1x", "topic--delete", "t-0-delete", "t-٣"],
)
def test_what_no_partition_is_called_is_an_error(name):
    with pytest.raises(ValueError, match="directory"):
        names.parse_partition_dir(name)


def test_a_set_aside_name_has_at_most_255_characters():
    name = names.suffixed_dir("t" * 249, 5, bytes(16), "delete")
    assert len(name) == 255
    assert name.startswith("t" * 213 + "-5.")
    assert name.endswith("-delete")
    assert names.parse_partition_dir(name) == ("t" * 213, 5, "delete")
    assert names.suffixed_dir("t", 5, bytes(16), "stray") == f"t-5.{'0' * 32}-stray"
