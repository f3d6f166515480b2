"""Whose data lie in a log directory."""

from __future__ import annotations

import pytest

from broker.config.load import load_config
from broker.config.values import ConfigError
from ottla.brokers.folders import prepare
from ottla.brokers.plan import plan_cluster


def plan(folder, count, *more):
    given = [f"log.dirs={folder}", "listeners=PLAINTEXT://127.0.0.1:0", *more]
    return plan_cluster(load_config(b"", given, brokers=count), count)


def test_the_folder_of_the_cluster_file_is_made(tmp_path) -> None:
    assert prepare(plan(tmp_path / "new" / "data", 2)) == []
    assert (tmp_path / "new" / "data").is_dir()
    prepare(plan(tmp_path / "new" / "data", 2, f"ottla.cluster.file={tmp_path / 'else' / 'f'}"))
    assert (tmp_path / "else").is_dir()


def test_the_data_of_a_broker_that_was_alone_are_not_hidden(tmp_path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\n")
    with pytest.raises(ConfigError, match="holds the data of a broker that was alone"):
        prepare(plan(tmp_path, 2))


def test_a_broker_that_was_only_tried_alone_there_does_no_harm(tmp_path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\n")
    (tmp_path / "broker_1").mkdir()
    assert prepare(plan(tmp_path, 2)) == []


def test_brokers_that_are_left_out_are_named(tmp_path) -> None:
    for name in ("broker_1", "broker_2", "broker_3", "lost+found"):
        (tmp_path / name).mkdir()
    assert prepare(plan(tmp_path, 2)) == [
        f"{tmp_path}/broker_3 holds the data of a broker that is not started: there are 2 this time"
    ]
