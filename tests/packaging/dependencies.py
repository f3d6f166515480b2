"""Packages of this environment in a fresh one, as if pip had installed them there: no network, no copies.

Only what the requirements ask for, and what that asks for, can be imported there; pip finds each of them
installed at its version, and refuses to go on where one is missing.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement


def needed(requirements: Iterable[str]) -> dict[str, Distribution]:
    """Every distribution that the requirements lead to, by name."""
    found: dict[str, Distribution] = {}
    asked = [each for each in map(Requirement, requirements) if each.marker is None or each.marker.evaluate()]
    done: set[tuple[str, str]] = set()
    while asked:
        requirement = asked.pop()
        for extra in ("", *sorted(requirement.extras)):
            if (requirement.name, extra) in done:
                continue
            done.add((requirement.name, extra))
            dist = found.setdefault(requirement.name, distribution(requirement.name))
            asked += of_extra(dist, extra)
    return found


def of_extra(dist: Distribution, extra: str) -> Iterator[Requirement]:
    """What a distribution itself requires here, of one extra or of none."""
    for text in dist.requires or ():
        requirement = Requirement(text)
        if requirement.marker is None:
            if not extra:
                yield requirement
        elif requirement.marker.evaluate({"extra": extra}):
            yield requirement


def of_project(folder: Path, extras: Iterable[str] = ()) -> list[str]:
    """What a project in a folder requires, with some of its extras."""
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [
        *project["dependencies"],
        *(r for extra in extras for r in project["optional-dependencies"][extra]),
    ]


def link(requirements: Iterable[str], folder: Path) -> None:
    """Puts links to all that the requirements need into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for dist in needed(requirements).values():
        root = Path(str(dist.locate_file("")))
        for top in {file.parts[0] for file in dist.files or () if file.parts[0] not in (os.pardir, "bin")}:
            if not (folder / top).exists() and (root / top).exists():
                (folder / top).symlink_to(root / top)
