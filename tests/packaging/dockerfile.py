"""A Dockerfile, read and run on this machine: no engine, the same commands.

Places of the image (`/opt/ottla`, ...) are directories of a test. RUN lines run in an environment that holds
nothing but what the image would: its own variables, an empty home, a shell with the few programs that Debian
always has. What changes the system is not run (accounts, Debian's packages: this machine's Java stands for
theirs), and pip finds what it needs in place of a network. An instruction that is not known here fails, so
none is passed over unseen.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from docker.utils import exclude_paths
from dockerfile_parse import DockerfileParser

from tests.packaging.dependencies import link, of_project
from tests.support.jars import cache_root
from tests.support.java import java

PYTHON = os.path.realpath(sys.executable)
PROGRAMS = (
    *(
        "bash",
        "basename",
        "cat",
        "chmod",
        "cp",
        "dirname",
        "env",
        "id",
        "ln",
        "ls",
        "mkdir",
        "mv",
        "readlink",
    ),
    *("rm", "sh", "stat", "uname"),
)
PLACES = ("/opt/ottla", "/src", "/var/lib/ottla")
IN_TEXT = re.compile(rf"(?<![\w.-])({'|'.join(PLACES)})(?![\w.-])")
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
OF_BASE_IMAGE = {"PATH": SYSTEM_PATH, "HOME": "/root"}
TIMEOUT_S = 300


class Instruction(NamedTuple):
    name: str
    value: str


@dataclass(slots=True)
class Image:
    """What a stage has become."""

    folder: Path
    base: str = ""
    environment: dict[str, str] = field(default_factory=lambda: dict(OF_BASE_IMAGE))
    places: dict[str, Path] = field(default_factory=dict)
    workdir: str = "/"
    user: str = "root"
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    healthcheck: list[str] = field(default_factory=list)
    volumes: list[str] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)
    stop_signal: str = "SIGTERM"
    system: list[str] = field(default_factory=list)  # RUN lines that change the system: not run here
    programs: list[Path] = field(default_factory=list)  # folders of what the system has

    def place(self, path: str) -> Path:
        """The directory that stands for a place of the image; `/` is a place of its own."""
        if path not in self.places:
            name = path.strip("/").replace("/", "-") or "root"
            self.places[path] = self.folder / name
            self.places[path].mkdir(parents=True)
        return self.places[path]

    def here(self, text: str) -> str:
        """A text of the image with this machine's directories in it."""
        tools = os.pathsep.join(map(str, self.programs))
        return IN_TEXT.sub(lambda match: str(self.place(match[1])), text.replace(SYSTEM_PATH, tools))

    def variables(self) -> dict[str, str]:
        """The image's environment with this machine's directories in it."""
        home = {} if self.environment["HOME"] in PLACES else {"HOME": str(self.place("/root"))}
        return {name: self.here(value) for name, value in self.environment.items()} | home


class Dockerfile:
    """`build` runs a target's stages anew, each in directories of its own."""

    def __init__(self, context: Path, folder: Path) -> None:
        self.context, self.folder = context, folder
        with (context / "Dockerfile").open("rb") as file:
            found = DockerfileParser(fileobj=file).structure
        self.stages: dict[str, list[Instruction]] = {}
        for each in found:
            if each["instruction"] == "FROM":
                base, _, name = each["value"].partition(" AS ")
                self.stages[name] = [Instruction("FROM", base)]
            elif each["instruction"] != "COMMENT":
                self.stages[name].append(Instruction(each["instruction"], each["value"]))
        programs = {name: shutil.which(name) for name in PROGRAMS}
        self.of_base = self.linked("tools", programs | dict.fromkeys(("python", "python3"), PYTHON))
        self.of_java = self.linked("java", {"java": str(java())})

    def linked(self, name: str, programs: Mapping[str, str | None]) -> Path:
        """A folder with links to programs, to be on a PATH."""
        folder = self.folder / name
        folder.mkdir()
        for program, path in programs.items():
            assert path is not None, program
            (folder / program).symlink_to(path)
        return folder

    def build(self, target: str) -> Image:
        image = Image(self.folder / target, programs=[self.of_base])
        image.folder.mkdir()
        for name, value in self.instructions(target):
            getattr(self, f"do_{name.lower()}")(image, value)
        return image

    def instructions(self, target: str) -> Iterator[Instruction]:
        """All of a target, from its base image on."""
        (_, base), *own = self.stages[target]
        if base in self.stages:
            yield from self.instructions(base)
        else:
            yield Instruction("FROM", base)
        yield from own

    def do_from(self, image: Image, value: str) -> None:
        image.base = value

    def do_env(self, image: Image, value: str) -> None:
        image.environment |= dict(pair.split("=", 1) for pair in shlex.split(value))

    def do_workdir(self, image: Image, value: str) -> None:
        image.workdir = value

    def do_user(self, image: Image, value: str) -> None:
        image.user = value

    def do_volume(self, image: Image, value: str) -> None:
        image.volumes.append(value)

    def do_expose(self, image: Image, value: str) -> None:
        image.ports.append(int(value))

    def do_stopsignal(self, image: Image, value: str) -> None:
        image.stop_signal = value

    def do_entrypoint(self, image: Image, value: str) -> None:
        image.entrypoint = json.loads(value)

    def do_cmd(self, image: Image, value: str) -> None:
        image.command = json.loads(value)

    def do_healthcheck(self, image: Image, value: str) -> None:
        image.healthcheck = json.loads(value.partition("CMD ")[2])

    def do_copy(self, image: Image, value: str) -> None:
        """The context as .dockerignore leaves it, or a place of another stage, which keeps its directory."""
        *flags, source, target = value.split()
        if flags:
            (stage,) = (flag.removeprefix("--from=") for flag in flags)
            assert source == target, f"{value}: an environment can't be moved"
            image.places[target] = self.build(stage).place(source)
            return
        assert (source, target) == (".", ".")
        lines = (self.context / ".dockerignore").read_text(encoding="utf-8").splitlines()
        patterns = [line for line in lines if line and not line.startswith("#")]
        for name in exclude_paths(str(self.context), patterns, "Dockerfile"):
            path, copy = self.context / name, image.place(image.workdir) / name
            if path.is_file():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, copy)

    def do_run(self, image: Image, value: str) -> None:
        words = shlex.split(value)
        if words[0] in ("useradd", "apt-get"):
            image.system.append(value)
            if "openjdk-17-jre-headless" in words:
                image.programs.append(self.of_java)
            return
        environment = image.variables()
        if words[1:2] == ["install"]:
            environment |= self.in_place_of_a_network(image, [w for w in words[2:] if not w.startswith("-")])
        if words[1:3] == ["spark", "connector"]:
            environment["XDG_CACHE_HOME"] = str(cache_root())  # archives that were fetched once
        done = subprocess.run(
            ["sh", "-c", image.here(value)],
            cwd=image.place(image.workdir),
            env=environment,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, f"RUN {value}\n{done.stdout}{done.stderr}"

    def in_place_of_a_network(self, image: Image, requirements: list[str]) -> dict[str, str]:
        """What pip is told to install is there already, but for our own wheel, which it builds."""
        (site,) = image.place("/opt/ottla").glob("lib/python*/site-packages")
        asked = []
        for each in requirements:
            extras = re.fullmatch(r"\.(?:\[(.*)\])?", each)
            words = (extras[1] or "").split(",") if extras else []
            asked += of_project(image.place("/src"), filter(None, words)) if extras else [each]
        link(asked, image.folder / "dependencies")
        (site / "dependencies.pth").write_text(str(image.folder / "dependencies"))
        link(["hatchling"], image.folder / "build-backend")
        return {
            "PIP_NO_INDEX": "1",
            "PIP_NO_BUILD_ISOLATION": "0",  # pip's way to say yes to this one in a variable
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PYTHONPATH": str(image.folder / "build-backend"),
        }
