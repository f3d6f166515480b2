"""The report of an audit, for people and for programs."""

from __future__ import annotations

import json

from spark_jobs.audit.partitions import Partition
from spark_jobs.audit.report import Check, Example, Report, SideReport, shown, table


def report(*checks: Check, right: int = 7) -> Report:
    left = SideReport("topic a", [Partition("0", 2, 3, 0, 1, start=0, end=2), Partition("1", 0, 4)])
    other = SideReport("topic b", [Partition("0", 2, right, 0, 3, holes=2, runs=1)], "2 transaction markers")
    return Report(left, other, "content", list(checks))


def test_a_report_passes_when_nothing_that_fails_was_found() -> None:
    assert report(Check("lost", "gone", 0)).ok
    assert report(Check("repeated", "twice", 5, fails=False)).ok
    assert not report(Check("lost", "gone", 1)).ok
    assert report().equal
    assert not report(right=8).equal


def test_the_table_names_every_partition_and_finding() -> None:
    found = Check("lost", "gone", 1, examples=[Example("k", "0@1", None), Example(None, "1@2", None)])
    text = str(report(found, Check("repeated", "twice", 1234, fails=False), Check("split", "keys", 0)))
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "0 2 0 1 0 0000000000000003" in lines
    assert "1 0 - - 0 0000000000000004" in lines
    assert "all 2 0 0000000000000007" in lines
    assert "holes: 2 transaction markers" in lines
    assert "lost 1 FAILED gone" in lines
    assert "e.g. key k: 0@1 -> -" in lines
    assert "e.g. no key: 1@2 -> -" in lines
    assert "repeated 1,234 allowed twice" in lines
    assert "split 0 ok keys" in lines
    assert lines[-1] == "FAILED"
    assert "checksums the same; records recognised by content" in lines


def test_the_json_says_the_same() -> None:
    found = report(Check("lost", "gone", 1, examples=[Example("k", "0@1", None)], partitions={"0": 1}))
    told = json.loads(json.dumps(found.as_json()))
    assert told["ok"] is False
    assert told["checksums_equal"] is True
    assert told["checks"] == {
        "lost": {
            "count": 1,
            "ok": False,
            "partitions": {"0": 1},
            "examples": [{"key": "k", "left": "0@1", "right": None}],
        }
    }
    assert told["right"]["holes_are"] == "2 transaction markers"
    assert told["left"]["partitions"][0] == {
        "partition": "0",
        "records": 2,
        "first": 0,
        "last": 1,
        "start": 0,
        "end": 2,
        "holes": 0,
        "runs": 0,
        "checksum": "0000000000000003",
    }


def test_keys_are_shown_as_text_or_in_hexadecimal_digits() -> None:
    assert shown(None) is None
    assert shown(b"UA1545") == "UA1545"
    assert shown(bytearray(b"\x00\xff")) == "0x00ff"
    assert shown(b"a\nb") == "0x610a62"
    assert shown(b"x" * 50) == "x" * 40 + "..."


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert table([("name", "n"), ("a", "1,000")]) == ["name      n", "a     1,000"]
