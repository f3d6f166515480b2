"""The session's settings: connector, master, and what the user says wins."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_jobs.failures import JobFailed
from spark_jobs.session import Launch, archives, connector, settings, start_failed


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)


def test_the_connector_of_this_spark_is_fetched_into_a_folder_of_our_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = settings(Launch(packages=("a:b:1",)), kafka=True)
    assert connector() == "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
    assert made["spark.jars.packages"] == f"{connector()},a:b:1"
    assert made["spark.jars.ivy"] == str(tmp_path / "ottla" / "spark-ivy")
    assert made["spark.master"] == "local[2]"
    assert "spark.jars.packages" not in settings(Launch(), kafka=False)


def test_archives_instead(tmp_path: Path) -> None:
    for name in ("b.jar", "a.jar", "note.txt"):
        (tmp_path / name).touch()
    single = tmp_path / "b.jar"
    assert archives(f"{tmp_path},{single}") == [*(str(tmp_path / n) for n in ("a.jar", "b.jar")), str(single)]
    made = settings(Launch(jars=str(tmp_path)), kafka=True)
    assert "spark.jars.packages" not in made
    with pytest.raises(JobFailed, match="no such file or folder"):
        archives("/nowhere")


def test_what_the_user_sets_wins() -> None:
    made = settings(Launch("spark://h:7077", conf=(("spark.sql.shuffle.partitions", "9"),)), kafka=True)
    assert (made["spark.master"], made["spark.sql.shuffle.partitions"]) == ("spark://h:7077", "9")


def test_under_spark_submit_master_and_connector_are_the_submits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    made = settings(Launch(), kafka=True)
    assert not {"spark.master", "spark.jars", "spark.jars.packages"} & made.keys()


def test_a_start_that_failed_says_what_to_delete() -> None:
    told = start_failed(Launch(), RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited"))
    assert "spark-ivy" in told
    assert "--jars" in told
    assert start_failed(Launch(), RuntimeError("other")) == "Spark does not start: other"
