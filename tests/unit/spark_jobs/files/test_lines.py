"""Each line of growing files once, in order, through appending, renaming, emptying and restarts."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.files.lines import (
    HEAD_BYTES,
    LinesGone,
    Places,
    advance,
    find,
    look,
    places_from,
    places_json,
    ranges,
    read_lines,
)


class Reader:
    """What Spark does with the source: plans a batch, reads it, keeps the places as JSON."""

    def __init__(self, *patterns: object, **options: object) -> None:
        self.patterns = [str(pattern) for pattern in patterns]
        self.options = options
        self.places: Places = {}
        self.lines: list[bytes] = []

    def plan(self, **more: object) -> Places:
        found = look(self.patterns, self.places)
        end = advance(found, self.places, **{**self.options, **more})
        return places_from(json.loads(json.dumps(places_json(end))))

    def read(self, end: Places) -> list[bytes]:
        lines = []
        for wanted in ranges(self.places, end):
            lines += [line for _, line in read_lines(find(wanted), wanted.start, wanted.end)]
        self.places = end
        self.lines += lines
        return lines

    def batch(self, **more: object) -> list[bytes]:
        return self.read(self.plan(**more))


def append(path: Path, text: bytes) -> None:
    with path.open("ab") as file:
        file.write(text)


def test_lines_appended_to_a_file_come_once_and_whole(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    reader = Reader(tmp_path)
    assert reader.batch() == []
    append(log, b"one\ntwo\r\nthr")
    assert reader.batch() == [b"one", b"two"]
    assert reader.batch() == []
    append(log, b"ee\n\nfour\n")
    assert reader.batch() == [b"three", b"", b"four"]


def test_a_renamed_file_is_read_to_its_end_before_the_next_one(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    reader = Reader(tmp_path / "*.log")
    append(log, b"one\n")
    assert reader.batch() == [b"one"]
    append(log, b"two\n")
    os.utime(log, (1, 1))
    log.rename(tmp_path / "app.log.1")  # no longer of the pattern
    append(log, b"three\n")
    assert reader.batch() == [b"two", b"three"]
    (tmp_path / "app.log.1").rename(tmp_path / "app.log.2")
    (tmp_path / "app.log.2").unlink()
    append(log, b"four\n")
    assert reader.batch() == [b"four"]
    assert len(reader.places) == 1


def test_a_file_that_was_emptied_begins_anew(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    reader = Reader(tmp_path)
    append(log, b"one\ntwo\n")
    reader.batch()
    log.write_bytes(b"3\n")
    assert reader.batch() == [b"3"]
    log.write_bytes(b"longer than all that was there\nanother\n")
    assert reader.batch() == [b"longer than all that was there", b"another"]
    log.write_bytes(b"")
    assert reader.batch() == []
    append(log, b"again\n")
    assert reader.batch() == [b"again"]


def test_another_file_under_the_same_name_is_new(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    reader = Reader(log)
    append(log, b"one\n")
    reader.batch()
    (tmp_path / "new").write_bytes(b"one\ntwo\n")
    (tmp_path / "new").replace(log)
    assert reader.batch() == [b"one", b"two"]


def test_compressed_hidden_and_linked_files_are_no_further_lines(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    append(log, b"one\n")
    (tmp_path / "current").symlink_to(log)
    (tmp_path / "app.log.2.gz").write_bytes(b"\x1f\x8b\n")
    (tmp_path / ".app.log.swp").write_bytes(b"no\n")
    (tmp_path / "folder").mkdir()
    assert Reader(tmp_path).batch() == [b"one"]


def test_a_batch_has_so_many_bytes_and_at_least_a_line(tmp_path: Path) -> None:
    append(tmp_path / "a.log", b"11\n22\n33\n")
    append(tmp_path / "b.log", b"a long line\n44\n")
    for number, name in enumerate(("a.log", "b.log")):
        os.utime(tmp_path / name, (number, number))
    reader = Reader(tmp_path, limit=7)
    batches = [reader.batch() for _ in range(5)]
    assert batches == [[b"11", b"22"], [b"33"], [b"a long line"], [b"44"], []]


def test_a_long_line_without_end_waits(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    reader = Reader(tmp_path, limit=10)
    append(log, b"x" * 200_000)
    assert reader.batch() == []
    append(log, b"\ny\n")
    assert reader.batch() == [b"x" * 200_000]
    assert reader.batch() == [b"y"]


def test_a_last_line_without_end_counts_when_the_file_rests(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    append(log, b"one\ntwo")
    os.utime(log, (100, 100))
    reader = Reader(tmp_path)
    assert reader.batch(finished_before_s=99.0) == [b"one"]
    assert reader.batch(finished_before_s=101.0) == [b"two"]
    assert reader.batch(finished_before_s=101.0) == []


def test_only_what_was_there_when_it_began(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    append(log, b"one\n")
    reader = Reader(tmp_path)
    upto = {each.identity: each.size for each in look(reader.patterns, {})}
    append(log, b"two\n")
    append(tmp_path / "other.log", b"three\n")
    assert reader.batch(upto=upto) == [b"one"]
    assert reader.batch(upto=upto) == []
    assert sorted(reader.batch()) == [b"three", b"two"]


def test_a_planned_batch_is_found_after_a_rename_and_missed_after_a_loss(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    append(log, b"one\ntwo\n")
    reader = Reader(tmp_path)
    planned = reader.plan()
    log.rename(tmp_path / "app.log.1")
    append(log, b"three\n")
    (wanted,) = ranges({}, planned)
    assert find(wanted) == str(tmp_path / "app.log.1")
    assert reader.read(planned) == [b"one", b"two"]
    (tmp_path / "app.log.1").write_bytes(b"ONE\nTWO\nmore\n")
    with pytest.raises(LinesGone, match=r"app\.log: bytes 0 to 8 are gone"):
        find(wanted)
    (tmp_path / "app.log.1").unlink()
    with pytest.raises(LinesGone):
        find(wanted)


def test_the_head_that_is_remembered_grows_with_the_file(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    reader = Reader(tmp_path)
    for _ in range(8):
        append(log, b"x" * 70 + b"\n")
        assert reader.batch() == [b"x" * 70]
    ((place),) = reader.places.values()
    assert (place.head, place.at, place.life) == (HEAD_BYTES, 8 * 71, 0)


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "append", "tail", "rotate", "restart", "batch", "replay"]),
        st.integers(0, 400),
    ),
    max_size=25,
)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(actions=ACTIONS, limit=st.one_of(st.none(), st.integers(1, 300)))
def test_no_line_is_lost_or_doubled(
    tmp_path_factory: pytest.TempPathFactory, actions: list[tuple[str, int]], limit: int | None
) -> None:
    """A log that is rotated by renaming, read in batches that are planned, killed, planned again and read."""
    folder = tmp_path_factory.mktemp("log")
    log = folder / "app.log"
    reader = Reader(folder, limit=limit)
    written: list[bytes] = []
    unfinished = b""
    number = 0
    for action, size in actions:
        if action == "append":
            line = b"%d:" % number + b"x" * size
            append(log, line + b"\n")
            written.append(unfinished + line)
            unfinished = b""
            number += 1
        elif action == "tail":
            append(log, b"%d;" % number)
            unfinished += b"%d;" % number
        elif action == "rotate" and log.exists() and not unfinished:
            log.rename(folder / f"app.log.{number}-{len(list(folder.iterdir()))}")
            log.write_bytes(b"")
        elif action == "replay":
            planned = reader.plan()
            before = dict(reader.places)
            once = reader.read(planned)
            reader.places, reader.lines = before, reader.lines[: len(reader.lines) - len(once)]
            assert reader.read(planned) == once
        else:
            reader.batch()
    for _ in range(1000):
        if not reader.batch():
            break
    assert sorted(reader.lines) == sorted(written)
