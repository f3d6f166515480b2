"""The stub of the messages is what the definitions say."""

from __future__ import annotations

import ast
from pathlib import Path

from protocol import messages as m
from protocol.schema.defs import MESSAGES
from protocol.schema.stubs import stub_source

STUB = Path(m.__file__).with_suffix(".pyi")


def test_the_stub_is_up_to_date() -> None:
    assert STUB.read_text() == stub_source(), (
        "run: python -m protocol.schema.stubs > protocol/messages/__init__.pyi"
    )


def test_the_stub_has_every_message_and_struct_with_its_fields() -> None:
    classes = {node.name: node for node in ast.parse(stub_source()).body if isinstance(node, ast.ClassDef)}
    assert set(classes) == set(MESSAGES)
    partition = next(
        node
        for node in classes["FetchRequest"].body
        if isinstance(node, ast.ClassDef) and node.name == "FetchPartition"
    )
    fields = [node.target.id for node in partition.body if isinstance(node, ast.AnnAssign)]
    assert fields == list(m.FetchRequest.FetchPartition.__slots__)


def test_types_tell_what_may_be_null() -> None:
    text = stub_source()
    assert "    records: Records | None\n" in text
    assert "    topics: list[MetadataRequest.MetadataRequestTopic] | None\n" in text
    assert "    topic_id: bytes\n" in text
