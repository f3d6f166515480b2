"""Which files a batch has, from Spark's checkpoint; what Spark is told of each format."""

from __future__ import annotations

import json
from pathlib import Path

from spark_jobs.files.table import MALFORMED, Table, files_of_batch
from spark_jobs.sinks.storage import LocalStorage


def entry(path: str, batch: int) -> str:
    return json.dumps({"path": path, "timestamp": 1, "batchId": batch})


def test_the_files_of_a_batch_also_where_the_lists_were_compacted(tmp_path: Path) -> None:
    for name in ("offsets", "sources/0"):
        (tmp_path / name).mkdir(parents=True)
    for number, upto in enumerate((8, 10, 10)):
        (tmp_path / "offsets" / str(number)).write_text(f'v1\n{{"conf": {{}}}}\n{{"logOffset":{upto}}}')
    lists = tmp_path / "sources" / "0"
    (lists / "9.compact").write_text("\n".join(["v1", entry("file:///old", 3), entry("file:///a%20b", 9)]))
    (lists / "10").write_text("\n".join(["v1", entry("file:///c", 10), entry("file:///d", 10)]))
    storage = LocalStorage(tmp_path)
    assert files_of_batch(storage, 1) == ["file:///a b", "file:///c", "file:///d"]
    assert files_of_batch(storage, 2) == []


def test_bad_rows_are_kept_and_what_the_user_sets_wins() -> None:
    told = Table("in", "csv", options={"header": "false"}).reader_options()
    assert told["mode"] == "PERMISSIVE"
    assert told["columnNameOfCorruptRecord"] == MALFORMED
    assert told["header"] == "false"
    assert Table("in", "parquet").reader_options() == {}
