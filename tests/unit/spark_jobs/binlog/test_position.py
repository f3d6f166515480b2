"""Places in a binlog and the file that keeps one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_jobs.binlog.position import Position, PositionDamaged, Saved, held, load, parse_position, save


def test_places_are_ordered_by_number_of_the_file_not_by_its_text() -> None:
    places = [Position(9, 500, 0), Position(10, 4, 0), Position(10, 4, 1), Position(10, 30, 0)]
    assert places == sorted(places)


def test_a_header_says_server_and_place() -> None:
    place = Position(12, 4567, 3)
    text = place.text("a/b=", "mariadb-bin.000012")
    assert text == "a/b=/mariadb-bin.000012:4567:3"
    assert parse_position(text) == ("a/b=", place)


@pytest.mark.parametrize("text", ["", "x", "server/bin.1:2", "server/bin:2:3", "bin.000001:4:0"])
def test_another_text_is_no_place(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_position(text)


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "position.json"
    assert load(path) is None
    saved = Saved("bin.000002", 345, 99, "server", {"items": 4})
    save(path, saved)
    assert load(path) == saved
    assert [each.name for each in tmp_path.iterdir()] == ["position.json"]


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"format": 2}', '{"format": 1, "file": "bin", "offset": 4}', '{"format": 1, "x": 1}'],
)
def test_another_file_is_told_with_what_to_do(tmp_path: Path, text: str) -> None:
    path = tmp_path / "position.json"
    path.write_text(text)
    with pytest.raises(PositionDamaged, match=r"is not a position file .* delete it and say where to begin"):
        load(path)


def test_a_save_that_is_cut_short_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "position.json"
    save(path, Saved("bin.000001", 4))

    def dump(value: object, file: object, **_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(json, "dump", dump)
    with pytest.raises(OSError, match="no space left"):
        save(path, Saved("bin.000001", 999))
    assert load(path) == Saved("bin.000001", 4)


def test_two_readers_can_not_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "position.json"
    with held(path), pytest.raises(PositionDamaged, match="another reader holds"), held(path):
        pass
    with held(path):
        pass
