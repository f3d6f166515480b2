"""`ottla configs`: describe and alter settings of topics, brokers and what else has some, as Kafka's
ConfigCommand.

Quotas and credentials (users, clients, ips) have APIs of their own, which Ottla does not serve yet; they are
refused with a plain word.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from ottla.cli.options import (
    Command,
    ToolFailed,
    bootstrap_option,
    command_config_option,
    connect,
    read_properties,
)
from ottla.client import NO_NODE, ClientError, KafkaClient, check
from ottla.groups.admin import GroupAdmin
from ottla.version import __version__
from protocol import messages as m
from protocol.api_keys import ApiKey

# entity type -> (resource type on the wire, source of its own dynamic settings)
RESOURCES = {
    "topics": (2, 1),
    "brokers": (4, 2),
    "broker-loggers": (8, 6),
    "client-metrics": (16, 7),
    "groups": (32, 8),
}
ENTITY_TYPES = ("broker-loggers", "topics", "clients", "users", "brokers", "ips", "client-metrics", "groups")
SHORTCUTS = {
    "topic": "topics",
    "broker": "brokers",
    "broker_logger": "broker-loggers",
    "client_metrics": "client-metrics",
    "group": "groups",
    "client": "clients",
    "user": "users",
    "ip": "ips",
}
SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}
SOURCE_BROKER_DEFAULT = 3
SET, DELETE = 0, 1
DEFAULT_ENTITY = ""
GROUPS_TIMEOUT_S = 60.0

# A comma between settings: one that no closing bracket follows before the next opening one.
BETWEEN_SETTINGS = re.compile(r",(?=[^\]]*(?:\[|$))")

Setting = m.DescribeConfigsResponse.DescribeConfigsResourceResult


def entity_options(command: Command) -> Command:
    """The short forms: --topic t for --entity-type topics --entity-name t, and so on."""
    for name, entity_type in SHORTCUTS.items():
        option = f"--{name.replace('_', '-')}"
        command = click.option(option, name, metavar="NAME", help=f"One of the {entity_type}.")(command)
    for name in ("broker", "client", "user", "ip"):
        option = f"--{name}-defaults"
        command = click.option(option, is_flag=True, help=f"The defaults of all {name}s.")(command)
    return command


@click.command(name="configs", short_help="Describe or change configurations.")
@bootstrap_option
@command_config_option
@click.option("--describe", is_flag=True, help="Show settings.")
@click.option("--alter", is_flag=True, help="Change settings.")
@click.option("--all", "everything", is_flag=True, help="Show settings that were not changed, too.")
@click.option("--entity-type", metavar="TYPE", help=f"One of {', '.join(ENTITY_TYPES)}.")
@click.option("--entity-name", metavar="NAME", help="The topic, or the broker's id.")
@click.option("--entity-default", is_flag=True, help="The defaults of all entities of the type.")
@click.option("--add-config", metavar="K=V,K=[V,V]", help="Settings to change.")
@click.option(
    "--add-config-file", type=click.Path(path_type=Path), metavar="FILE", help="The same in a file."
)
@click.option("--delete-config", metavar="K,K", help="Settings to reset.")
@click.version_option(__version__, message="%(version)s")
@entity_options
def command(
    bootstrap_server: str,
    command_config: Path | None,
    describe: bool,
    alter: bool,
    everything: bool,
    entity_type: str | None,
    entity_name: str | None,
    entity_default: bool,
    add_config: str | None,
    add_config_file: Path | None,
    delete_config: str | None,
    **shortcuts: str | bool | None,
) -> None:
    """Describe or change settings of a topic, a broker or all brokers."""
    if describe == alter:
        raise ToolFailed("Command must include exactly one action: --describe, --alter")
    kind, name = entity(entity_type, entity_name, entity_default, shortcuts)
    if entity_default and kind != "brokers":
        raise ToolFailed(
            f"An entity name must be specified with --alter of {kind}"
            if alter
            else f"--entity-default must not be specified with --describe of {kind}"
        )
    if name is None and (alter or kind == "broker-loggers"):
        action = "alter" if alter else "describe"
        raise ToolFailed(f"An entity name must be specified with --{action} of {kind}")
    changes = list(changes_in(add_config, add_config_file, delete_config))
    if alter and not changes:
        raise ToolFailed(
            "At least one of --add-config, --add-config-file, or --delete-config must be specified "
            "with --alter"
        )
    try:
        with connect(bootstrap_server, read_properties(command_config)) as client:
            if describe:
                show(client, kind, name, everything)
            else:
                change(client, kind, name or DEFAULT_ENTITY, changes)
    except ClientError as error:
        click.echo(f"Error while executing config command: {error}", err=True)
        sys.exit(1)


def entity(
    entity_type: str | None,
    entity_name: str | None,
    entity_default: bool,
    shortcuts: dict[str, str | bool | None],
) -> tuple[str, str | None]:
    """The entity meant: its type, and its name, "" for the default of the type, None for all."""
    chosen: list[tuple[str, str | None]] = []
    if entity_type is not None:
        chosen.append((entity_type, DEFAULT_ENTITY if entity_default else entity_name))
    for shortcut, kind in SHORTCUTS.items():
        if shortcuts.get(f"{shortcut}_defaults"):
            chosen.append((kind, DEFAULT_ENTITY))
        name = shortcuts.get(shortcut)
        if isinstance(name, str):
            chosen.append((kind, name))
    if not chosen:
        raise ToolFailed("At least one entity type must be specified")
    if len(chosen) > 1:
        raise ToolFailed("Exactly one entity may be named: " + ", ".join(kind for kind, _ in chosen))
    kind, found = chosen[0]
    if kind not in ENTITY_TYPES:
        raise ToolFailed(
            f"Invalid entity type {kind}, the entity type must be one of {', '.join(ENTITY_TYPES)} "
            "with a --bootstrap-server or --bootstrap-controller argument"
        )
    if kind not in RESOURCES:
        raise ToolFailed(
            f"Entities of type {kind} have quotas and credentials, which this tool does not know"
        )
    return kind, found


def changes_in(
    add_config: str | None, add_config_file: Path | None, delete_config: str | None
) -> Iterator[tuple[int, str, str | None]]:
    """(operation, setting, value) for each change asked for."""
    for key, value in read_properties(add_config_file).items():
        yield SET, key, value
    for setting in BETWEEN_SETTINGS.split(add_config) if add_config else ():
        key, equals, value = setting.strip().partition("=")
        if not equals:
            raise ToolFailed(
                'Invalid entity config: all configs to be added must be in the format "key=val" or  '
                '"key=[val1,val2]" to group values which contain commas.'
            )
        yield SET, key.strip(), re.sub(r"[\[\]]", "", value).strip()
    for key in delete_config.split(",") if delete_config else ():
        yield DELETE, key.strip(), None


def show(client: KafkaClient, kind: str, name: str | None, everything: bool) -> None:
    """--describe. Only who asks for an entity's own settings is told that there is no such entity."""
    if name is None:
        names = [*(names_of(client, kind) or ()), *([DEFAULT_ENTITY] if kind == "brokers" else ())]
    elif name == DEFAULT_ENTITY or everything:
        names = [name]
    else:
        known = names_of(client, kind)
        if known is not None and name not in known:
            click.echo(f"The {kind[:-1]} '{name}' doesn't exist and doesn't have dynamic config.")
            return
        names = [name]
    for each in names:
        if each == DEFAULT_ENTITY:
            click.echo(f"Default configs for {kind} in the cluster are:")
        else:
            click.echo(f"{'All' if everything else 'Dynamic'} configs for {kind[:-1]} {each} are:")
        for entry in sorted(settings_of(client, kind, each), key=lambda entry: entry.name):
            own = SOURCE_BROKER_DEFAULT if each == DEFAULT_ENTITY else RESOURCES[kind][1]
            if everything or entry.config_source == own:
                click.echo(f"  {described(entry)}")


def described(entry: Setting) -> str:
    """One setting with where its value comes from."""
    synonyms = ", ".join(
        f"{SOURCES.get(each.source, 'UNKNOWN')}:{each.name}={shown(each.value)}" for each in entry.synonyms
    )
    sensitive = "true" if entry.is_sensitive else "false"
    return f"{entry.name}={shown(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}"


def shown(value: str | None) -> str:
    """A value as Java prints it."""
    return "null" if value is None else value


def names_of(client: KafkaClient, kind: str) -> list[str] | None:
    """Names of the entities there are; None where the broker can't tell. A group needs no settings of its
    own to be one, and settings need no group.
    """
    topics = client.metadata(None)
    if kind == "topics":
        return sorted(topic.name or "" for topic in topics)
    if kind in ("brokers", "broker-loggers"):
        return [str(node) for node in sorted(client.nodes)]
    configured = configured_names(client, kind)
    if kind != "groups":
        return configured
    groups = GroupAdmin(client, GROUPS_TIMEOUT_S).list_groups(None)
    return list(dict.fromkeys([*(each.group_id for each in groups), *(configured or ())]))


def configured_names(client: KafkaClient, kind: str) -> list[str] | None:
    """Names of what has settings of its own, in order; None where the broker can't tell."""
    if not client.connection().supports(ApiKey.LIST_CONFIG_RESOURCES):
        return None
    version = client.connection().version_for(ApiKey.LIST_CONFIG_RESOURCES)
    wanted = RESOURCES[kind][0]
    response: m.ListConfigResourcesResponse = client.call(
        m.ListConfigResourcesRequest(resource_types=[wanted] if version > 0 else [])
    )
    check(response.error_code)
    return sorted(each.resource_name for each in response.config_resources if each.resource_type == wanted)


def settings_of(client: KafkaClient, kind: str, name: str) -> Sequence[Setting]:
    """All settings of one entity, asked of the broker that is meant or of any."""
    resource = m.DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=RESOURCES[kind][0], resource_name=name, configuration_keys=None
    )
    request = m.DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (result,) = client.call(request, node_for(kind, name)).results
    check(result.error_code, result.error_message)
    settings: Sequence[Setting] = result.configs
    return settings


def change(client: KafkaClient, kind: str, name: str, changes: Sequence[tuple[int, str, str | None]]) -> None:
    """--alter."""
    resource = m.IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=RESOURCES[kind][0],
        resource_name=name,
        configs=[
            m.IncrementalAlterConfigsRequest.AlterableConfig(name=key, config_operation=how, value=value)
            for how, key, value in changes
        ],
    )
    client.metadata([])
    request = m.IncrementalAlterConfigsRequest(resources=[resource])
    for result in client.call(request, node_for(kind, name)).responses:
        check(result.error_code, result.error_message)
    if name == DEFAULT_ENTITY:
        click.echo(f"Completed updating default config for {kind} in the cluster.")
    else:
        click.echo(f"Completed updating config for {kind[:-1]} {name}.")


def node_for(kind: str, name: str) -> int:
    """A broker's settings are asked of itself."""
    if kind not in ("brokers", "broker-loggers") or name == DEFAULT_ENTITY:
        return NO_NODE
    if not name.isdigit():
        raise ClientError(f"'{name}' is no broker id")
    return int(name)
