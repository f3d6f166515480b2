"""`ottla features`: show and change finalized features, as Kafka's FeatureCommand does.

A release stands for the level of every feature that a new cluster of Apache Kafka has with it. Ottla's broker
has no metadata version, and says so. Failures of single features go to standard output, their number to
standard error; the exit code is 1 then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import click

from ottla.cli.feature_levels import (
    HIGHEST,
    LATEST_RELEASE,
    METADATA_VERSION,
    REQUIRED,
    UnknownRelease,
    described,
    level_text,
    levels_of_release,
    metadata_level,
)
from ottla.cli.options import (
    ToolFailed,
    bootstrap_option,
    command_config_option,
    connect,
    read_properties,
)
from ottla.client import ClientError, KafkaClient
from protocol import messages as m
from protocol.errors import ErrorCode

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
NAME_WIDTH, LEVEL_WIDTH = 42, 17
TIMEOUT_MS = 60_000
_SHORTS: Final = range(-(1 << 15), 1 << 15)

Open = Callable[[], KafkaClient]


@click.group(name="features", short_help="Show or change finalized features.")
@bootstrap_option
@command_config_option
@click.pass_context
def command(ctx: click.Context, bootstrap_server: str, command_config: Path | None) -> None:
    """Show and change the features that a cluster has finalized."""
    ctx.obj = lambda: connect(bootstrap_server, read_properties(command_config))


def feature_option(text: str) -> Callable[[Any], Any]:
    """--feature, which may be repeated."""
    return click.option("--feature", "features", multiple=True, metavar=text, help="May be repeated.")


def dry_run_option(function: Any) -> Any:
    """--dry-run."""
    return click.option("--dry-run", is_flag=True, help="Validate, but change nothing.")(function)


def release_options(function: Any) -> Any:
    """--release-version, and --metadata from before there were other features."""
    function = click.option("--metadata", metavar="RELEASE", help="Deprecated: the level of metadata.")(
        function
    )
    text = "The release whose levels all features shall have, such as 4.0-IV3."
    return click.option("--release-version", "release", metavar="RELEASE", help=text)(function)


def unsafe_option(function: Any) -> Any:
    """--unsafe."""
    return click.option("--unsafe", is_flag=True, help="Also where metadata may be lost.")(function)


@command.command()
@click.pass_obj
def describe(open_client: Open) -> None:
    """Show supported and finalized levels."""
    try:
        with open_client() as client:
            request = m.ApiVersionsRequest(client_software_name="ottla", client_software_version="1")
            answer: m.ApiVersionsResponse = client.call(request)
    except ClientError as error:
        raise ToolFailed(str(error)) from error
    finalized = {each.name: each.max_version_level for each in answer.finalized_features}
    for each in sorted(answer.supported_features, key=lambda feature: feature.name):
        low, high = level_text(each.name, each.min_version), level_text(each.name, each.max_version)
        level = level_text(each.name, finalized.get(each.name, 0))
        click.echo(
            f"Feature: {each.name:{NAME_WIDTH}}SupportedMinVersion: {low:{LEVEL_WIDTH}}"
            f"SupportedMaxVersion: {high:{LEVEL_WIDTH}}FinalizedVersionLevel: {level:{LEVEL_WIDTH}}"
            f"Epoch: {answer.finalized_features_epoch}"
        )


@command.command()
@feature_option("FEATURE=LEVEL")
@release_options
@dry_run_option
@click.pass_obj
def upgrade(
    open_client: Open, features: tuple[str, ...], release: str | None, metadata: str | None, dry_run: bool
) -> None:
    """Raise the level of features."""
    wanted = wished(features, release, metadata, "upgrade")
    if release is not None:
        wanted = {feature: level for feature, level in wanted.items() if level}
    if any(level == 0 for level in wanted.values()):
        raise ToolFailed(
            "The upgradeType flag should be set to SAFE_DOWNGRADE or UNSAFE_DOWNGRADE when the provided "
            "maxVersionLevel:0 is < 1."
        )
    change(open_client, "upgrade", wanted, UPGRADE, dry_run)


@command.command()
@feature_option("FEATURE=LEVEL")
@release_options
@dry_run_option
@unsafe_option
@click.pass_obj
def downgrade(
    open_client: Open,
    features: tuple[str, ...],
    release: str | None,
    metadata: str | None,
    dry_run: bool,
    unsafe: bool,
) -> None:
    """Lower the level of features."""
    kind = UNSAFE_DOWNGRADE if unsafe else SAFE_DOWNGRADE
    change(open_client, "downgrade", wished(features, release, metadata, "downgrade"), kind, dry_run)


@command.command()
@feature_option("FEATURE")
@dry_run_option
@unsafe_option
@click.pass_obj
def disable(open_client: Open, features: tuple[str, ...], dry_run: bool, unsafe: bool) -> None:
    """Lower the level of features to 0."""
    wanted: dict[str, int] = {}
    for feature in features:
        add_level(wanted, feature, 0)
    demand(wanted, "disable")
    change(open_client, "disable", wanted, UNSAFE_DOWNGRADE if unsafe else SAFE_DOWNGRADE, dry_run)


@command.command(name="version-mapping")
@click.option("--release-version", "release", default=LATEST_RELEASE, metavar="RELEASE", show_default=True)
def version_mapping(release: str) -> None:
    """Show the levels of features that belong to a release."""
    try:
        levels = levels_of_release(release)
    except UnknownRelease as unknown:
        raise ToolFailed(str(unknown)) from unknown
    for feature, level in levels.items():
        click.echo(f"{feature}={level}" + (f" ({release})" if feature == METADATA_VERSION else ""))


@command.command(name="feature-dependencies")
@click.option("--feature", "features", multiple=True, required=True, metavar="FEATURE=LEVEL")
def feature_dependencies(features: tuple[str, ...]) -> None:
    """Show on which other levels a level depends."""
    for feature, level in map(parse_level, features):
        if feature not in HIGHEST:
            raise ToolFailed(f"Unknown feature: {feature}")
        if not 0 <= level <= HIGHEST[feature]:
            raise ToolFailed(f"No feature:{feature} with feature level {level}")
        required = REQUIRED.get((feature, level))
        if required is None:
            click.echo(f"{described(feature, level)} has no dependencies.")
        else:
            click.echo(f"{described(feature, level)} requires:\n    {described(*required)}")


def wished(features: Sequence[str], release: str | None, metadata: str | None, verb: str) -> dict[str, int]:
    """The levels that the options ask for, each feature once. Raises ToolFailed in Kafka's words."""
    if release is not None and (features or metadata is not None):
        raise ToolFailed("Can not specify `release-version` with other feature flags.")
    try:
        if release is not None:
            return levels_of_release(release)
        if metadata is None:
            return parse_levels(features, verb)
        click.echo(" `metadata` flag is deprecated and may be removed in a future release.")
        levels = {METADATA_VERSION: metadata_level(metadata)}
    except UnknownRelease as unknown:
        raise ToolFailed(str(unknown)) from unknown
    for feature, level in map(parse_level, features):
        add_level(levels, feature, level)
    return levels


def parse_levels(texts: Sequence[str], verb: str) -> dict[str, int]:
    """FEATURE=LEVEL options, each feature once. Raises ToolFailed in Kafka's words."""
    levels: dict[str, int] = {}
    for feature, level in map(parse_level, texts):
        add_level(levels, feature, level)
    demand(levels, verb)
    return levels


def parse_level(text: str) -> tuple[str, int]:
    """One FEATURE=LEVEL. Raises ToolFailed in Kafka's words."""
    feature, equals, level = text.partition("=")
    level = level.strip()
    if not equals:
        raise ToolFailed(f"Can't parse feature=level string {text}: equals sign not found.")
    digits = level.removeprefix("-").removeprefix("+")
    if not (digits.isascii() and digits.isdigit() and int(level) in _SHORTS):
        raise ToolFailed(f"Can't parse feature=level string {text}: unable to parse {level} as a short.")
    return feature.strip(), int(level)


def add_level(levels: dict[str, int], feature: str, level: int) -> None:
    """Note one wish; a feature is named once."""
    if feature in levels:
        raise ToolFailed(f"Feature {feature} was specified more than once.")
    levels[feature] = level


def demand(levels: dict[str, int], verb: str) -> None:
    """Refuse a command without features."""
    if not levels:
        raise ToolFailed(f"You must specify at least one feature to {verb}")


def change(open_client: Open, verb: str, levels: dict[str, int], kind: int, dry_run: bool) -> None:
    """Send the updates, all or nothing, and say of each feature what became of it."""
    if any(level < 0 for level in levels.values()):
        raise ToolFailed("Cannot specify a negative version level.")
    if "" in levels:
        raise ToolFailed("Provided feature can not be empty.")
    update = m.UpdateFeaturesRequest.FeatureUpdateKey
    request = m.UpdateFeaturesRequest(
        timeout_ms=TIMEOUT_MS,
        feature_updates=[
            update(feature=feature, max_version_level=level, upgrade_type=kind)
            for feature, level in levels.items()
        ],
        validate_only=dry_run,
    )
    try:
        with open_client() as client:
            answer: m.UpdateFeaturesResponse = client.call_controller(request, lambda told: [told.error_code])
    except ClientError as error:
        raise ToolFailed(str(error)) from error
    failed = answer.error_code != ErrorCode.NONE
    reason = answer.error_message or ErrorCode(answer.error_code).message
    done = f"can be {verb}d" if dry_run else f"was {verb}d"
    not_done = f"Can not {verb}" if dry_run else f"Could not {verb}"
    for feature, level in sorted(levels.items()):
        to = "" if verb == "disable" else f" to {level}"
        click.echo(f"{not_done} {feature}{to}. {reason}" if failed else f"{feature} {done}{to}.")
    if failed:
        raise ToolFailed(f"{len(levels)} out of {len(levels)} operation(s) failed.")
