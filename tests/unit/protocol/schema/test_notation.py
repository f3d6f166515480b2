"""The notation: each mark of it, and what is refused."""

from __future__ import annotations

import pytest

from protocol.schema.model import NEW_STRUCT, NO_VERSIONS, Field, Versions
from protocol.schema.notation import NotationError, blocks, parse_message, parse_versions


def field(line: str, versions: str = "0-9") -> Field:
    (found,) = parse_message([f"data Toy versions {versions}", f"  {line}"]).root.fields
    return found


def test_ranges() -> None:
    assert parse_versions("3") == Versions(3, 3)
    assert parse_versions("3-5") == Versions(3, 5)
    assert parse_versions("3+") == Versions(3, 32767)


def test_a_head_tells_kind_name_key_versions_and_flexible_versions() -> None:
    message = parse_message(["request ToyRequest 77 versions 1-4 flexible 3+"])
    assert (message.kind, message.name, message.key) == ("request", "ToyRequest", 77)
    assert message.versions == Versions(1, 4)
    assert message.flexible == Versions(3, 4)
    assert parse_message(["data Toy versions 0"]).flexible == NO_VERSIONS
    assert parse_message(["data Toy versions 0"]).key == -1


def test_a_plain_field_has_the_versions_of_its_struct_and_the_default_of_its_type() -> None:
    plain = field("Name: string")
    assert (plain.name, plain.element, plain.is_array) == ("Name", "string", False)
    assert plain.versions == Versions(0, 9)
    assert plain.nullable == NO_VERSIONS
    assert (plain.tag, plain.default, plain.ignorable) == (None, "", False)


def test_all_marks_together() -> None:
    marked = field("Ids: [int32]?4+ 3-6 tag 2 = null ~")
    assert (marked.element, marked.is_array) == ("int32", True)
    assert marked.versions == Versions(3, 6)
    assert marked.nullable == Versions(4, 6)
    assert (marked.tag, marked.default, marked.ignorable) == (2, None, True)


@pytest.mark.parametrize(
    ("line", "default"),
    [
        ("A: int32 = -1", -1),
        ("A: bool = true", True),
        ("A: bool", False),
        ("A: string = some text", "some text"),
        ("A: string? = null", None),
        ("A: float64 = 1.5", 1.5),
        ("A: uuid", bytes(16)),
        ("A: records?", None),
        ("A: [string]", []),
    ],
)
def test_defaults_are_values(line: str, default: object) -> None:
    assert field(line).default == default


def test_deeper_lines_are_the_fields_of_a_struct_and_stay_within_its_versions() -> None:
    message = parse_message(
        [
            "data Toy versions 0-5",
            "  Topics: [Topic] 2-4",
            "    Name: string 0+",
            "  Cursor: Cursor? = null",
            "    At: int32",
            "  Owner: Cursor",
        ]
    )
    topics, cursor, owner = message.root.fields
    assert topics.struct is not None
    assert topics.struct.fields[0].versions == Versions(2, 4)
    assert cursor.default is None
    assert owner.default is NEW_STRUCT
    assert owner.struct is cursor.struct
    assert list(message.structs) == ["Topic", "Cursor"]


def test_a_shared_struct_may_be_defined_after_its_use() -> None:
    message = parse_message(
        ["data Toy versions 0", "  Old: [Shared]", "  New: [Shared]", "  struct Shared", "    Name: string"]
    )
    assert [one.struct for one in message.root.fields] == [message.structs["Shared"]] * 2


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        (["request"], "not a message head"),
        (["data Toy versions 0", "  Name string"], "not a field"),
        (["data Toy versions 0", "  A: Missing"], "unknown type Missing"),
        (["data Toy versions 0", "      A: int8"], "unexpected indentation"),
        (["data Toy versions 0", "  A: int8", "    B: int8"], "unexpected indentation"),
        (["data Toy versions 0", "  struct S", "    A: int8", "  struct S", "    A: int8"], "defined twice"),
    ],
)
def test_what_is_no_definition_is_refused(lines: list[str], complaint: str) -> None:
    with pytest.raises(NotationError, match=complaint):
        parse_message(lines)


def test_a_text_falls_into_blocks_by_message() -> None:
    text = "data A versions 0\n  X: int8\n\ndata B versions 0\n"
    assert list(blocks(text)) == [("A", ["data A versions 0", "  X: int8"]), ("B", ["data B versions 0"])]
