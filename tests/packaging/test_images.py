"""What the Dockerfile makes and the compose file asks for, before anything of it runs."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.packaging.compose import Compose, seconds
from tests.packaging.dockerfile import Dockerfile, Image
from tests.support.jars import pyspark_jar
from tests.support.ottla_process import CHECKOUT

BROKERS = ("broker1", "broker2", "broker3")
ROOT = {"LICENSE", "README.md", "pyproject.toml"}
LIBRARY = ROOT | {"ottla"}
SECRET = re.compile(r"(?i)pass|secret|token|credential|private|api_?key")


def words_of(environment: Mapping[str, str]) -> list[str]:
    return [word for pair in environment.items() for word in pair]


def test_base_images_are_pinned(dockerfile: Dockerfile, compose: Compose) -> None:
    bases = {stage[0].value for stage in dockerfile.stages.values()} - set(dockerfile.stages)
    assert bases == {"python:3.13-slim-bookworm"}
    version = pyspark_jar("zookeeper-3").stem.partition("-")[2]  # the one that these tests run
    assert compose.services["zookeeper"]["image"] == f"zookeeper:{version}"


def test_the_context_is_what_the_wheel_is_made_of(made: dict[str, Image], dockerfile: Dockerfile) -> None:
    wheel = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"][
        "wheel"
    ]
    expected = LIBRARY | set(wheel["force-include"])
    for stage in ("build", "build-spark"):
        context = dockerfile.folder / stage / "src"
        found = {path.name for path in context.iterdir()}
        assert found - expected <= {"Dockerfile", ".dockerignore"}  # a builder may read these from it
        assert expected <= found
        assert not [path for path in context.rglob("*") if path.name == "__pycache__"]


@pytest.mark.parametrize("name", ["ottla", "ottla-spark"])
def test_an_image_runs_as_nobody_in_particular_and_holds_no_secret(
    made: dict[str, Image], dockerfile: Dockerfile, name: str
) -> None:
    image = made[name]
    assert image.user == "ottla"
    assert any(line.startswith("useradd") and line.endswith(" ottla") for line in image.system)
    assert image.volumes == [image.workdir] == [image.environment["HOME"]]
    assert (image.stop_signal, image.entrypoint[0]) == ("SIGTERM", "ottla")
    assert not [word for word in words_of(image.environment) if SECRET.search(word)]
    assert {each.name for stage in dockerfile.stages.values() for each in stage}.isdisjoint({"ARG", "ADD"})


def test_an_image_holds_its_own_packages_only(made: dict[str, Image]) -> None:
    """The broker's has no Spark; the connector is where the compose file's job looks for it."""
    for name, has_spark in (("ottla", False), ("ottla-spark", True)):
        image = made[name]
        find = (
            "import importlib.util as u; print([u.find_spec(n) is not None for n in ('pyspark', 'pytest')])"
        )
        done = subprocess.run(
            [image.place("/opt/ottla") / "bin" / "python", "-c", find],
            env=image.variables(),
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == str([has_spark, False])
        assert (image.programs != image.programs[:1]) == has_spark  # Java
    jars = {path.name for path in (made["ottla-spark"].place("/opt/ottla") / "connector").iterdir()}
    assert any(name.startswith("org.apache.spark_spark-sql-kafka-0-10_2.13-4.2.0") for name in jars)
    assert any(name.startswith("org.apache.kafka_kafka-clients-") for name in jars)


def test_brokers_keep_three_replicas_and_are_told_apart(compose: Compose) -> None:
    settings = [compose.services[name]["environment"] for name in BROKERS]
    assert [each["KAFKA_BROKER_ID"] for each in settings] == ["1", "2", "3"]
    for name, each in zip(BROKERS, settings, strict=True):
        factors = {key: value for key, value in each.items() if key.endswith("REPLICATION_FACTOR")}
        assert len(factors) == 4
        assert set(factors.values()) == {"3"}
        assert {value for key, value in each.items() if "MIN_ISR" in key or "MIN_INSYNC" in key} == {"2"}
        inside, outside = each["KAFKA_ADVERTISED_LISTENERS"].split(",")
        assert inside == f"INSIDE://{name}:19092"
        address, port = outside.removeprefix("OUTSIDE://").split(":")
        assert (address, compose.published[int(port)]) == ("localhost", (name, 9092))
        assert each["KAFKA_INTER_BROKER_LISTENER_NAME"] == "INSIDE"


def test_services_have_health_volumes_and_time_to_stop(compose: Compose) -> None:
    for name, service in compose.services.items():
        environment = service.get("environment", {})
        assert not [word for word in words_of(environment) if SECRET.search(word)], name
        assert not service.get("privileged"), name
        assert service["restart"] in ("unless-stopped", "on-failure"), name
        for text in service.get("ports", ()):
            assert text.startswith("127.0.0.1:"), name  # nothing here asks for a password
        if name != "zookeeper":  # whose image starts as root to own its folders, and steps down
            assert service["cap_drop"] == ["ALL"], name
            assert service["security_opt"] == ["no-new-privileges:true"], name
    for name in (*BROKERS, "zookeeper"):
        service = compose.services[name]
        assert service["healthcheck"]["test"][0] == "CMD"
        assert service["volumes"]
    for name in BROKERS:
        service = compose.services[name]
        assert service["depends_on"] == {"zookeeper": {"condition": "service_healthy"}}
        assert seconds(service["stop_grace_period"]) >= 30
        assert service["stop_signal"] == "SIGTERM"
    spark = compose.services["spark"]
    assert seconds(spark["stop_grace_period"]) >= 60
    healthy = {name: {"condition": "service_healthy"} for name in BROKERS}
    assert compose.services["topics"]["depends_on"] == healthy
    assert spark["depends_on"] == {**healthy, "topics": {"condition": "service_completed_successfully"}}


def test_no_file_names_a_path_that_is_not_there() -> None:
    for name in ("Dockerfile", "docker-compose.yml", ".dockerignore"):
        for path in re.findall(r"^!([\w./]+)", Path(CHECKOUT, name).read_text(), re.MULTILINE):
            assert (CHECKOUT / path).exists(), path
