"""The writer of source lines."""

from __future__ import annotations

import pytest

from protocol.schema.model import NO_VERSIONS, Versions
from protocol.schema.notation import parse_message
from protocol.schema.source import SourceWriter


def test_blocks_indent_and_names_are_fresh() -> None:
    writer = SourceWriter(0, NO_VERSIONS)
    with writer.block("if a:"), writer.block("if b:"):
        writer.emit("c()")
    writer.emit("d()")
    assert writer.lines == ["if a:", "    if b:", "        c()", "d()"]
    assert writer.fresh("x") != writer.fresh("x")


def test_a_struct_has_one_name_per_layout() -> None:
    writer = SourceWriter(0, NO_VERSIONS)
    assert writer.struct_name("h?") == writer.struct_name("h?") == "S_hZ"
    assert writer.structs["S_hZ"].pack(1, True) == b"\0\x01\x01"


def test_a_run_must_not_cross_the_border_of_a_block() -> None:
    writer = SourceWriter(0, NO_VERSIONS)
    writer.run.append(("b", "x"))
    with pytest.raises(AssertionError), writer.block("if a:"):
        pass


def test_fields_are_sorted_by_where_a_version_has_them() -> None:
    root = parse_message(
        [
            "data T versions 0-2 flexible 1+",
            "  A: int8",
            "  C: int8 1+ tag 1",
            "  B: int8 1+ tag 0",
            "  D: int8 2+",
        ]
    ).root
    writer = SourceWriter(1, Versions(1, 2))
    assert writer.flexible
    assert [field.name for field in writer.inline(root)] == ["A"]
    assert [field.name for field in writer.tagged(root)] == ["B", "C"]
    assert [field.name for field in writer.absent(root)] == ["D"]
