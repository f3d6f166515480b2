"""Archives come into the folder, named by paths or URLs; `tests/packaging` fetches the real ones."""

from __future__ import annotations

from pathlib import Path

from spark_jobs.connector import copy_to


def test_archives_are_copied_into_a_folder_that_is_made(tmp_path: Path) -> None:
    names = ["a.jar", "b.jar"]
    for name in names:
        (tmp_path / name).write_bytes(name.encode())
    found = copy_to(tmp_path / "made" / "here", [str(tmp_path / "a.jar"), f"file:{tmp_path}/b.jar"])
    assert found == [tmp_path / "made" / "here" / name for name in names]
    assert [path.read_bytes().decode() for path in found] == names
