"""A folder on a local path; Hadoop's file systems need Spark and are in tests/spark/jobs/test_cdc_sync.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.sinks.storage import LocalStorage, storage_of


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "new" / "folder")


def test_a_file_is_replaced_as_a_whole(storage: LocalStorage) -> None:
    assert storage.read("a.json") is None
    storage.replace("a.json", "one é")
    storage.replace("a.json", "two")
    assert storage.read("a.json") == "two"
    assert [each.name for each in storage.root.iterdir()] == ["a.json"]


def test_a_replacement_that_fails_leaves_the_old_file(
    storage: LocalStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage.replace("a.json", "one")

    def fail(number: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="no space left"):
        storage.replace("a.json", "two")
    assert storage.read("a.json") == "one"


def test_what_is_there_and_what_is_removed(storage: LocalStorage) -> None:
    assert (storage.folders("data"), storage.files("data")) == ([], [])
    for name in ("data/g1/b=0/x.parquet", "data/g1/b=0/_SUCCESS", "data/g2/y.parquet"):
        path = storage.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    assert storage.folders("data") == ["g1", "g2"]
    assert storage.files("data/g1") == ["data/g1/b=0/_SUCCESS", "data/g1/b=0/x.parquet"]
    storage.sync(storage.files("data"))
    storage.remove("data/g1")
    storage.remove("data/g2/y.parquet")
    storage.remove("data/g2/y.parquet")
    assert storage.files("data") == []


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
def test_a_local_path_may_be_a_uri(tmp_path: Path, form: str) -> None:
    found = storage_of(None, form.format(tmp_path / "a b"))
    assert isinstance(found, LocalStorage)
    assert found.root == tmp_path / "a b"
    assert found.uri("x=1/é") == f"file://{tmp_path}/a b/x=1/é"
