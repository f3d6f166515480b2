"""`ottla features` beside Kafka's FeatureCommand, on Ottla and on Apache Kafka."""

from __future__ import annotations

import re

import pytest

from ottla.cli.feature_levels import HIGHEST
from tests.support.tools import kafka_tool, ottla_tool

Option = tuple[str, str]


@pytest.fixture
def at(either_broker) -> Option:
    return "--bootstrap-server", either_broker.bootstrap_servers


def same(at: Option, *arguments: str) -> tuple[str, str, int]:
    """What both tools print and end with, one after the other. The epoch may rise in between."""
    seen = []
    for tool in (ottla_tool, kafka_tool):
        done = tool("features", *at, *arguments)
        seen.append((re.sub(r"Epoch: \d+", "Epoch: N", done.stdout), done.stderr.strip(), done.returncode))
    assert seen[0] == seen[1]
    return seen[0]


def test_describe_shows_levels_in_columns(at: Option) -> None:
    printed, _, code = same(at, "describe")
    assert code == 0
    assert re.search(
        r"^Feature: group\.version +SupportedMinVersion: 0 +SupportedMaxVersion: 1 ", printed, re.M
    )


@pytest.mark.parametrize("wanted", ["--dry-run", "--unsafe", ""])
def test_a_feature_goes_off_and_on(at: Option, wanted: str) -> None:
    flags = [wanted] if wanted else []
    try:
        printed, _, code = same(at, "disable", "--feature", "group.version", *flags)
        verb = "can be" if wanted == "--dry-run" else "was"
        assert (printed, code) == (f"group.version {verb} disabled.\n", 0)
        same(at, "downgrade", "--feature", "group.version=0", *flags)
    finally:
        printed, _, code = same(at, "upgrade", "--feature", "group.version=1")
    assert (printed, code) == ("group.version was upgraded to 1.\n", 0)


@pytest.mark.parametrize(
    "arguments",
    [
        ("upgrade",),
        ("downgrade",),
        ("disable",),
        ("upgrade", "--feature", "bad"),
        ("upgrade", "--feature", "a=b"),
        ("upgrade", "--feature", "a="),
        ("upgrade", "--feature", "=1"),
        ("upgrade", "--feature", "group.version=99999"),
        ("upgrade", "--feature", "group.version=0"),
        ("downgrade", "--feature", "group.version=-1"),
        ("upgrade", "--feature", "a=1", "--feature", "a=2"),
        ("disable", "--feature", "group.version", "--feature", "group.version"),
        ("upgrade", "--feature", "nope=1"),
        ("upgrade", "--feature", "group.version=7", "--feature", "share.version=1"),
        ("upgrade", "--release-version", "4.0", "--feature", "group.version=1"),
        ("downgrade", "--release-version", "4.0", "--metadata", "4.0"),
        ("upgrade", "--release-version", "3.2"),
        ("upgrade", "--metadata", "nope"),
        ("upgrade", "--metadata", "4.0", "--feature", "metadata.version=3"),
        ("version-mapping", "--release-version", "4.5"),
        ("feature-dependencies", "--feature", "bad"),
        ("feature-dependencies", "--feature", "nope=1"),
        ("feature-dependencies", "--feature", "group.version=9"),
    ],
)
def test_refusals_in_kafkas_words(at: Option, arguments: tuple[str, ...]) -> None:
    assert same(at, *arguments)[2] == 1


def test_disabling_what_is_not_there_refuses_all(at: Option) -> None:
    printed, told, code = same(at, "disable", "--feature", "nope", "--feature", "group.version", "--dry-run")
    assert len(printed.splitlines()) == 2
    assert (told, code) == ("2 out of 2 operation(s) failed.", 1)


def test_on_which_levels_others_depend(at: Option) -> None:
    options = [
        part
        for feature, highest in HIGHEST.items()
        for level in {max(1, highest - 1), highest}
        for part in ("--feature", f"{feature}={level}")
    ]
    assert same(at, "feature-dependencies", *options)[2] == 0


@pytest.mark.parametrize(
    "release", ["", "3.3", "3.8", "3.9-IV0", "4.0-IV1", "4.0", "4.1", "4.2-IV0", "4.3", "4.4"]
)
def test_the_levels_of_a_release(release: str) -> None:
    options = ("--release-version", release) if release else ()
    printed, _, code = same(("--bootstrap-server", "127.0.0.1:1"), "version-mapping", *options)
    assert (len(printed.splitlines()), code) == (7, 0)


@pytest.mark.parametrize("verb", ["upgrade", "downgrade"])
def test_all_features_to_the_levels_of_a_release(at: Option, verb: str) -> None:
    """What comes of it is the broker's to say: Ottla's has no metadata version, Kafka's goes no way back."""
    seen = []
    for tool in (ottla_tool, kafka_tool):
        done = tool("features", *at, verb, "--release-version", "3.9", "--dry-run")
        # Which feature is refused first goes by the order in the request: Kafka's tool has a hash table's.
        printed = re.sub(r"had an error: .*", "had an error", done.stdout)
        seen.append((printed, done.stderr.strip(), done.returncode))
    assert seen[0] == seen[1]
    assert "metadata.version to 21" in "".join(seen[0][:2])


def test_the_level_of_metadata_by_its_old_option(at: Option) -> None:
    printed, _, _ = same(at, "upgrade", "--metadata", "4.0", "--feature", "group.version=1", "--dry-run")
    assert "deprecated" in printed
