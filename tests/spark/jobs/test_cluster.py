"""The jobs on a master and a worker, as they are on one machine: by spark-submit and by --master."""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.clients.datasets import flights
from tests.spark.jobs.job_process import CHECKOUT, JobProcess
from tests.spark.jobs.standalone import Standalone, spark_home
from tests.spark.quick import jvm_flags
from tests.spark.topics import fresh
from tests.support.jars import spark_kafka_jars
from tests.support.ottla_process import OttlaProcess

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark-cluster")]

SMALL = ("spark.executor.memory=512m", "spark.driver.memory=512m", "spark.cores.max=2")


def values(broker: OttlaProcess, topic: str, count: int) -> Counter[bytes]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "cluster"})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = consumer.consume(count, timeout=60)
    finally:
        consumer.close()
    return Counter(message.value() for message in found)


def test_a_job_by_spark_submit_and_one_by_master(jobs_broker: OttlaProcess, tmp_path: Path) -> None:
    """Executors have no checkout to import from: the package comes with the job. TERM goes to the submit."""
    lines = [row.value for row in itertools.islice(flights(), 500)]
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "app.log").write_bytes(b"".join(line + b"\n" for line in lines))
    topic = fresh(jobs_broker, 1, stem="cluster")
    jars = ",".join(str(jar) for jar in sorted(spark_kafka_jars().glob("*.jar")))
    small = (*SMALL, f"spark.executor.extraJavaOptions={jvm_flags()}")
    conf = [part for each in small for part in ("--conf", each)]
    environment = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": ""}
    environment["PYSPARK_SUBMIT_ARGS"] = "pyspark-shell"  # one test with the settings that users have
    with Standalone(tmp_path) as cluster:
        submit = [spark_home() / "bin" / "spark-submit", "--master", cluster.url, "--jars", jars, *conf]
        with JobProcess(
            *("ingest", tmp_path / "logs", "--format", "lines", "--bootstrap", jobs_broker.bootstrap_servers),
            *("--topic", topic, "--checkpoint", tmp_path / "ck", "--trigger", "500 milliseconds"),
            command=[*submit, CHECKOUT / "spark_jobs" / "__main__.py"],
            cwd=tmp_path,
            **environment,
        ) as job:
            job.wait_for(r"batch 0: 500 records")
            assert job.terminate() == 0
            assert "asked to stop" in job.output()
        assert values(jobs_broker, topic, len(lines)) == Counter(lines)
        with JobProcess(
            *("archive", "--bootstrap", jobs_broker.bootstrap_servers, "--topic", topic, "--batch"),
            *("--to", tmp_path / "archive", "--master", cluster.url, "--jars", spark_kafka_jars(), *conf),
            **environment,
        ) as job:
            assert job.wait() == 0, job.output()
        for name in ("ingest", "archive"):
            assert f"Registered app ottla {name}" in cluster.output("master.Master")
    assert (tmp_path / "archive" / "_SUCCESS").exists()
    assert list((tmp_path / "archive").glob("date=*/*.parquet"))
