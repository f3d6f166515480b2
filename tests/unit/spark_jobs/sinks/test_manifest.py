"""The manifest's text; generations are made by Spark, in tests/spark/jobs/test_cdc_sync.py."""

from __future__ import annotations

import pytest

from spark_jobs.sinks.manifest import Manifest, ManifestRefused, parse_manifest

WHOLE = Manifest(
    7,
    (("id", "int"), ("odd `name`", "string")),
    4,
    {"0": ["data/7/a.parquet"], "1": []},
    {"items": {"0": 12}},
    {"data/6/a.parquet": 5},
    9,
)


def test_it_reads_back_as_it_was() -> None:
    assert parse_manifest(WHOLE.text(), "here") == WHOLE
    assert parse_manifest(None, "here") == Manifest()


def test_readers_get_a_schema_and_files() -> None:
    assert WHOLE.schema == "_key STRING, _partition INT, _offset BIGINT, `id` int, `odd ``name``` string"
    assert WHOLE.all_files() == ["data/7/a.parquet"]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 2}', '{"format": 1, "other": 1}'])
def test_another_file_is_told(text: str) -> None:
    with pytest.raises(ManifestRefused, match=r"here is not a manifest \(.*begin in an empty folder"):
        parse_manifest(text, "here")
