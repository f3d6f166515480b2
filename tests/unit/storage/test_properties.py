"""Java's .properties syntax."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.properties import parse_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb = 2\nc: 3\nd 4", {"a": "1", "b": "2", "c": "3", "d": "4"}),
        ("# note\n! note\n\n  a=1", {"a": "1"}),
        ("a=1\na=2", {"a": "2"}),
        ("list=x,\\\n   y,\\\n   z", {"list": "x,y,z"}),
        ("path=C\\:\\\\data\\=x", {"path": "C:\\data=x"}),
        ("tab=a\\tb\\nc\\u0041", {"tab": "a\tb\ncA"}),
        ("key\\ with\\=odd=v", {"key with=odd": "v"}),
        ("empty=\nbare", {"empty": "", "bare": ""}),
        ("a=b=c", {"a": "b=c"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=trailing \\\\\nb=1", {"a": "trailing \\", "b": "1"}),
        ("a=x\\\n# no comment here", {"a": "x# no comment here"}),
        ("a=end\\", {"a": "end"}),
        ("listeners=PLAINTEXT://:9092", {"listeners": "PLAINTEXT://:9092"}),
    ],
)
def test_lines_are_read_as_java_reads_them(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


def test_bytes_are_utf_8_or_latin_1() -> None:
    assert parse_properties("name=Müller".encode()) == {"name": "Müller"}
    assert parse_properties("name=Müller".encode("latin-1")) == {"name": "Müller"}


def test_a_broken_unicode_escape_is_an_error() -> None:
    with pytest.raises(ValueError, match="malformed"):
        parse_properties("a=\\u12")


def escaped(text: str) -> str:
    return "".join(f"\\u{ord(char):04x}" for char in text)


plain = st.text(st.characters(max_codepoint=0xFFFF, exclude_categories=["Cs"]), max_size=20)


@given(st.dictionaries(plain, plain, max_size=5))
def test_escaped_pairs_come_back(pairs: dict[str, str]) -> None:
    text = "\n".join(f"{escaped(key)}={escaped(value)}" for key, value in pairs.items() if key)
    assert parse_properties(text) == {key: value for key, value in pairs.items() if key}


def test_a_file_that_java_wrote():
    text = "#\n#Sat Nov 28 04:00:00 UTC 2026\n! more\n\ncluster.id=a\\:b\\=c\n  node.id : 7\n"
    text += "x\\ y = 1\\t2\\u0041\nlong=one\\\n   two\nbare\nb\\\\=c\n"
    assert parse_properties(text) == {
        "cluster.id": "a:b=c", "node.id": "7", "x y": "1\t2A", "long": "onetwo", "bare": "", "b\\": "c",
    }  # fmt: skip
