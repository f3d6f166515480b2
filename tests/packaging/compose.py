"""Services of a compose file as processes of this machine.

Each runs its image's ENTRYPOINT with its own command, in nothing but the environment that image and file
give it. Every port of a container is a free port of 127.0.0.1 here, and the addresses in commands and
variables are written accordingly: `broker1:19092` is what broker1 listens on as 19092, `localhost` the
container itself, but in `advertised.listeners` the host, with the port that the file publishes.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from tests.packaging.dockerfile import Dockerfile, Image
from tests.support.ports import free_port
from tests.support.waiting import wait_until

ADDRESS = re.compile(r"((?<=//)|\b[a-z][a-z0-9-]*):(\d+)\b")
ADVERTISED = "KAFKA_ADVERTISED_LISTENERS"
DURATION = re.compile(r"(?:(\d+)m)?(?:(\d+)s)?")
HERE = "127.0.0.1"
START_TIMEOUT_S = 240
CHECK_TIMEOUT_S = 60


def seconds(duration: str) -> int:
    """`1m30s` as a number."""
    match = DURATION.fullmatch(duration)
    assert match is not None, duration
    return int(match[1] or 0) * 60 + int(match[2] or 0)


class Compose:
    """A compose file; `addresses` are what runs already, by service and port of the container."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.content: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
        self.services: dict[str, dict[str, Any]] = self.content["services"]
        self.addresses: dict[tuple[str, int], int] = {}
        self.published: dict[int, tuple[str, int]] = {}  # ports of the host
        for name, service in self.services.items():
            for text in service.get("ports", ()):
                *_, host, container = map(int, re.findall(r"\d+", text))
                assert host not in self.published, f"port {host} is published twice"
                self.published[host] = name, container

    def port(self, service: str, container_port: int) -> int:
        """What stands here for a port of a service."""
        assert service in self.services, f"there is no service {service}"
        return self.addresses.setdefault((service, container_port), free_port())

    def published_port(self, host_port: int) -> int:
        """What stands here for a port of the host."""
        return self.port(*self.published[host_port])

    def here(self, service: str, text: str, advertised: bool = False) -> str:
        """A text with this machine's addresses in it."""

        def address(match: re.Match[str]) -> str:
            host, number = match[1], int(match[2])
            if advertised and host == "localhost":
                return f"{HERE}:{self.published_port(number)}"
            return f"{HERE}:{self.port(service if host in ('', 'localhost') else host, number)}"

        return ADDRESS.sub(address, text)

    def order(self) -> list[str]:
        """Services, each after those that it depends on."""
        found: list[str] = []

        def add(name: str) -> None:
            for other in self.services[name].get("depends_on", ()):
                add(other)
            if name not in found:
                found.append(name)

        for name in self.services:
            add(name)
        return found

    def service(self, name: str, image: Image, folder: Path) -> Service:
        return Service(self, name, image, folder)


class Service:
    """One service, with a directory for each of its volumes."""

    def __init__(self, compose: Compose, name: str, image: Image, folder: Path) -> None:
        self.compose, self.name, self.settings = compose, name, compose.services[name]
        volumes = dict(reversed(text.split(":")) for text in self.settings.get("volumes", ()))
        for volume in volumes.values():
            assert volume in compose.content["volumes"], f"there is no volume {volume}"
        places = {path: folder / (volumes.get(path) or name) for path in image.volumes}
        for directory in places.values():
            directory.mkdir()
        self.volumes = places
        self.image = replace(image, places=image.places | places)
        self.output_path = folder / f"{name}.log"
        self.process: subprocess.Popen[bytes] | None = None

    def environment(self) -> dict[str, str]:
        given = self.settings.get("environment", {})
        found = replace(self.image, environment=self.image.environment | given).variables()
        return {key: self.compose.here(self.name, value, key == ADVERTISED) for key, value in found.items()}

    def words(self, command: Iterable[str]) -> list[str]:
        """A command with this machine's places and addresses in it."""
        return [self.compose.here(self.name, self.image.here(word)) for word in command]

    def command(self) -> list[str]:
        return self.words([*self.image.entrypoint, *self.settings.get("command", self.image.command)])

    def start(self) -> None:
        with self.output_path.open("ab") as output:
            self.process = subprocess.Popen(
                self.command(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.image.place(self.image.workdir),
                env=self.environment(),
                start_new_session=True,
            )

    def healthcheck(self) -> list[str]:
        """Its own, or the image's."""
        own: list[str] = self.settings.get("healthcheck", {}).get("test", [])
        assert own[:1] in ([], ["CMD"])
        return own[1:] or self.image.healthcheck

    def is_healthy(self) -> bool:
        """Whether the healthcheck says so; fails where the process has ended."""
        assert self.process is not None
        assert self.process.poll() is None, self.output()
        try:
            done = subprocess.run(
                self.words(self.healthcheck()),
                cwd=self.image.place(self.image.workdir),
                env=self.environment(),
                capture_output=True,
                timeout=CHECK_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    def await_health(self) -> None:
        wait_until(self.is_healthy, f"{self.name} to be healthy", START_TIMEOUT_S)

    def output(self) -> str:
        return self.output_path.read_text(errors="replace")

    def complete(self) -> None:
        """Run it until it ends well, and anew when it ends otherwise, as its restart policy says."""
        assert self.settings["restart"] == "on-failure"

        def done() -> bool:
            self.start()
            return self.wait() == 0

        try:
            wait_until(done, f"{self.name} to complete", START_TIMEOUT_S)
        except TimeoutError as error:
            raise AssertionError(f"{error}:\n{self.output()}") from error

    def wait(self, timeout_s: float = START_TIMEOUT_S) -> int:
        assert self.process is not None
        return self.process.wait(timeout_s)

    def stop(self) -> int:
        """Its stop signal, as `docker compose stop` sends it; the exit code, within the grace it is given."""
        assert self.process is not None
        word = self.settings.get("stop_signal", self.image.stop_signal)
        self.process.send_signal(getattr(signal, word))
        return self.wait(seconds(self.settings["stop_grace_period"]))

    def kill(self) -> None:
        """The process and its children, if it still runs."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def images(dockerfile: Dockerfile, compose: Compose) -> dict[str, Image]:
    """What the services are made of, by the name of the image; each target is built once."""
    targets = {
        each["image"]: each["build"]["target"] for each in compose.services.values() if "build" in each
    }
    return {name: dockerfile.build(target) for name, target in targets.items()}
