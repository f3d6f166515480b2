"""The images of the Dockerfile, made once."""

from __future__ import annotations

import pytest

from tests.packaging.compose import Compose, images
from tests.packaging.dockerfile import Dockerfile, Image
from tests.support.ottla_process import CHECKOUT


@pytest.fixture(scope="session")
def compose() -> Compose:
    return Compose(CHECKOUT / "docker-compose.yml")


@pytest.fixture(scope="session")
def dockerfile(tmp_path_factory: pytest.TempPathFactory) -> Dockerfile:
    return Dockerfile(CHECKOUT, tmp_path_factory.mktemp("images"))


@pytest.fixture(scope="session")
def made(dockerfile: Dockerfile, compose: Compose) -> dict[str, Image]:
    """By the names that the compose file gives them; their RUN lines have been run."""
    return images(dockerfile, compose)
