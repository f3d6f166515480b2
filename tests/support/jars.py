"""Java archives of the oracles, fetched once per user and shared by all checkouts.

They live outside the source tree: in `$OTTLA_TEST_CACHE`, else `$XDG_CACHE_HOME/ottla`, else
`~/.cache/ottla`, one folder per artifact under `jars/`. A folder appears by rename when it is complete, with
a MANIFEST of file names and sizes that is compared at the first use in each process; a folder that differs is
fetched anew. A lock file makes that safe under pytest-xdist.

Fetched with Maven where `mvn` exists, else with the Ivy inside the pyspark wheel; OTTLA_TEST_FETCH=maven|ivy
forces one way. Both get caches of their own below ours: Ivy trusts a half-filled Maven cache in the home
directory and then fails for good.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support.java import java

MANIFEST = "MANIFEST"
FETCH_TIMEOUT_S = 900

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>local</groupId><artifactId>oracle-jars</artifactId><version>1</version><packaging>pom</packaging>
  <dependencies><dependency>
    <groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>
    {exclusions}
  </dependency></dependencies>
</project>
"""
EXCLUSION = "<exclusion><groupId>{0}</groupId><artifactId>{1}</artifactId></exclusion>"


class Artifact(NamedTuple):
    """A Maven artifact that is fetched with everything it needs at run time."""

    group: str
    name: str
    version: str
    excluded: tuple[tuple[str, str], ...] = ()

    @property
    def folder(self) -> str:
        return f"{self.name}-{self.version}"


KAFKA = {version: Artifact("org.apache.kafka", "kafka_2.13", version) for version in ("4.4.0", "3.9.2")}
KAFKA_TOOLS = Artifact("org.apache.kafka", "kafka-tools", "4.4.0")
KAFKA_STREAMS = Artifact("org.apache.kafka", "kafka-streams", "4.4.0")
SPARK_KAFKA = Artifact(
    "org.apache.spark",
    "spark-sql-kafka-0-10_2.13",
    "4.2.0",
    # pyspark carries these two itself
    (("org.apache.hadoop", "hadoop-client-runtime"), ("org.apache.hadoop", "hadoop-client-api")),
)

OPENSEARCH = Artifact("org.opensearch", "opensearch", "2.19.6")
OPENSEARCH_NETTY = Artifact("org.opensearch.plugin", "transport-netty4-client", "2.19.6")
LOG4J = Artifact("org.apache.logging.log4j", "log4j-core", "2.25.4")
MARIADB_CONNECTOR = Artifact("org.mariadb.jdbc", "mariadb-java-client", "3.5.6")


class JarsUnavailable(RuntimeError):
    """The jars could not be fetched; the message holds the fetcher's own words and what to do."""


def kafka_jars(version: str = "4.4.0") -> Path:
    """Folder with the runtime jars of an Apache Kafka broker, "4.4.0" or "3.9.2"."""
    return jars_of(KAFKA[version])


def kafka_tools_jars() -> Path:
    """Folder with the jars of Apache Kafka's command line tools (4.4.0)."""
    return jars_of(KAFKA_TOOLS)


def kafka_streams_jars() -> Path:
    """Folder with the jars of Kafka Streams (4.4.0)."""
    return jars_of(KAFKA_STREAMS)


def spark_kafka_jars() -> Path:
    """Folder with the jars of Spark's Kafka source and sink, without what pyspark carries itself."""
    return jars_of(SPARK_KAFKA)


def opensearch_jars() -> list[Path]:
    """Every jar of an OpenSearch node that speaks HTTP: the server, its transport, a logging binding."""
    folders = [jars_of(artifact) for artifact in (OPENSEARCH, OPENSEARCH_NETTY, LOG4J)]
    found = {jar.name: jar for folder in folders for jar in sorted(folder.glob("*.jar"))}
    return list(found.values())


def mariadb_connector_jars() -> Path:
    """Folder with MariaDB's JDBC driver, and nothing that it needs for other purposes."""
    return jars_of(MARIADB_CONNECTOR)


def pyspark_jar(prefix: str) -> Path:
    """A jar inside the pyspark wheel by the start of its name, for instance "zookeeper-3"."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise JarsUnavailable("the pyspark wheel is not installed: `make test` installs the test extras")
    found = sorted((Path(spec.origin).parent / "jars").glob(f"{prefix}*.jar"))
    if not found:
        raise JarsUnavailable(f"pyspark holds no jar named {prefix}*.jar")
    return found[0]


def cache_root() -> Path:
    """The directory that survives between checkouts (see the module's docstring)."""
    if chosen := os.environ.get("OTTLA_TEST_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "ottla"


@functools.cache
def jars_of(artifact: Artifact) -> Path:
    """Folder with an artifact and its runtime dependencies, fetched on first use."""
    root = cache_root() / "jars"
    root.mkdir(parents=True, exist_ok=True)
    target = root / artifact.folder
    if not is_complete(target):
        with locked(root / f".{artifact.folder}.lock"):
            if not is_complete(target):
                fetch(artifact, target)
    return target


def is_complete(folder: Path) -> bool:
    """Whether a folder holds exactly the files, at the sizes, that were there when it was filled."""
    try:
        written = (folder / MANIFEST).read_text()
    except FileNotFoundError:
        return False
    return written == manifest_of(folder)


def manifest_of(folder: Path) -> str:
    return "".join(f"{jar.name} {jar.stat().st_size}\n" for jar in sorted(folder.glob("*.jar")))


def fetch(artifact: Artifact, target: Path) -> None:
    """Fills `target` by way of a neighbour that is renamed when complete."""
    way = os.environ.get("OTTLA_TEST_FETCH") or ("maven" if shutil.which("mvn") else "ivy")
    partial = Path(tempfile.mkdtemp(prefix=f".{artifact.folder}.", dir=target.parent))
    try:
        {"maven": fetch_with_maven, "ivy": fetch_with_ivy}[way](artifact, partial)
        if not (partial / f"{artifact.name}-{artifact.version}.jar").exists():
            raise JarsUnavailable(f"{way} ended well but brought no {artifact.name}-{artifact.version}.jar")
        (partial / MANIFEST).write_text(manifest_of(partial))
        shutil.rmtree(target, ignore_errors=True)
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def fetch_with_maven(artifact: Artifact, folder: Path) -> None:
    exclusions = "".join(EXCLUSION.format(*pair) for pair in artifact.excluded)
    pom = folder / "pom.xml"
    pom.write_text(
        POM.format(
            group=artifact.group,
            name=artifact.name,
            version=artifact.version,
            exclusions=exclusions and f"<exclusions>{exclusions}</exclusions>",
        )
    )
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
    repository = cache_root() / "maven"
    command = ["mvn", "-B", "-q", "-f", str(pom), f"-Dmaven.repo.local={repository}", *goal]
    run_fetcher(artifact, command, repository)
    pom.unlink()


def fetch_with_ivy(artifact: Artifact, folder: Path) -> None:
    cache = cache_root() / "ivy"
    command = [str(java()), "-jar", str(pyspark_jar("ivy-2")), "-cache", str(cache)]
    command += ["-dependency", artifact.group, artifact.name, artifact.version, "-confs", "default"]
    command += ["-types", "jar", "bundle", "-retrieve", f"{folder}/[artifact]-[revision].[ext]"]
    run_fetcher(artifact, command, cache)
    for _, name in artifact.excluded:
        for jar in folder.glob(f"{name}-[0-9]*.jar"):
            jar.unlink()


def run_fetcher(artifact: Artifact, command: list[str], cache: Path) -> None:
    """Runs Maven or Ivy; a failure is told with its last lines and with what to delete before a retry."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False)
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        coordinates = ":".join(artifact[:3])
        raise JarsUnavailable(
            f"{Path(command[0]).name} could not fetch {coordinates}.\n{tail}\n"
            f"Is the network reachable? If it is, delete {cache} and run again."
        )


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds an exclusive lock between processes; freed by the system when its holder dies."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
