"""From a properties file, --override options and the environment to a BrokerConfig.

Owns the order (profile or file, then KAFKA_* variables, then overrides), the single-node profile, and
what the user is told: problems stop the start, notices are one log line each. Pure: the caller reads
the file and hands over the environment.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from broker.config.broker_config import BrokerConfig
from broker.config.checks import check_cross_key_rules
from broker.config.definitions import BROKER_KEYS, base_name, find_broker_key
from broker.config.effects import EFFECTIVE, differs_from_default, is_kraft, is_protecting
from broker.config.listeners import Listeners, parse_listeners
from broker.config.values import ConfigError, words
from storage.properties import parse_properties

_TOOL_VARIABLES: Final = words(
    """
    KAFKA_VERSION KAFKA_HEAP_OPTS KAFKA_OPTS KAFKA_JMX_OPTS KAFKA_JMX_PORT KAFKA_JMX_HOSTNAME
    KAFKA_JVM_PERFORMANCE_OPTS KAFKA_GC_LOG_OPTS KAFKA_DEBUG KAFKA_HOME KAFKA_MODE
    """
)
_TOOL_PREFIXES: Final = ("KAFKA_LOG4J", "KAFKA_TOOLS_LOG4J")

_PROFILE: Final = {
    "listeners": "PLAINTEXT://localhost:9092",
    "group.initial.rebalance.delay.ms": "0",
}
_PROFILE_ALONE: Final = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


@dataclass(slots=True, frozen=True)
class LoadedConfig:
    """A checked configuration, its listeners, and lines for the log (warnings, then plain facts)."""

    config: BrokerConfig
    listeners: Listeners
    warnings: tuple[str, ...]
    notices: tuple[str, ...]


def load_config(
    file: bytes | str | None,
    overrides: Iterable[str] = (),
    environ: Mapping[str, str] | None = None,
    brokers: int = 1,
) -> LoadedConfig:
    """Build the configuration; without a file a profile stands below everything else.

    `overrides` are `key=value` texts, `brokers` is how many will form a cluster of this machine's own. Raises
    ConfigError whose text lists every problem, one a line.
    """
    environ = {} if environ is None else environ
    given: dict[str, str] = {}
    if file is not None:
        try:
            given.update(parse_properties(file))
        except ValueError as error:
            raise ConfigError(f"The configuration file cannot be read: {error}") from error
    given.update(environment_settings(environ))
    for option in overrides:
        name, equals, value = option.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--override takes key=value, not '{option}'")
        given[name.strip()] = value
    notices: list[str] = []
    profile: dict[str, str] = {}
    if file is None:
        profile = profile_of(given, environ, brokers)
        kind = "single-node profile" if brokers == 1 else "profile of a single machine"
        notices.append(f"No configuration file: {kind}, data in {_data_dirs(profile | given)}")
    warnings, ignored = _review(given)
    if ignored:
        notices.append("Settings for Kafka's own metadata quorum are not needed here: " + ", ".join(ignored))
    config = _checked({**profile, **given})
    return LoadedConfig(config, parse_listeners(config), tuple(warnings), tuple(notices))


def environment_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Keys from KAFKA_* variables: `_` is a dot, `__` an underscore, `___` a dash, as in the
    apache/kafka image. Variables of the JVM and of Kafka's scripts are passed over.
    """
    found = {}
    for variable, value in environ.items():
        if not variable.startswith("KAFKA_") or variable in _TOOL_VARIABLES:
            continue
        if variable.startswith(_TOOL_PREFIXES):
            continue
        words = variable[len("KAFKA_") :].replace("___", "-").replace("__", "\0").replace("_", ".")
        found[words.replace("\0", "_").lower()] = value
    return found


def profile_of(given: Mapping[str, str], environ: Mapping[str, str], brokers: int) -> dict[str, str]:
    """What a start without a file assumes, less what the user gave: loopback only, no rebalance delay, and a
    data directory that survives restarts (XDG_DATA_HOME). A broker that is alone has internal topics of one
    replica; several have a directory of their own, so that neither finds the other's data.
    """
    assumed = _PROFILE | _PROFILE_ALONE if brokers == 1 else _PROFILE
    profile = {name: value for name, value in assumed.items() if name not in given}
    if "node.id" not in given and "broker.id" not in given:
        profile["node.id"] = "1"
    if "log.dirs" not in given and "log.dir" not in given:
        base = environ.get("XDG_DATA_HOME") or _home_data(environ)
        if base:
            profile["log.dirs"] = f"{base}/ottla/{'kafka-logs' if brokers == 1 else 'kafka-cluster'}"
    return profile


def _home_data(environ: Mapping[str, str]) -> str:
    home = environ.get("HOME") or environ.get("USERPROFILE") or ""
    return f"{home}/.local/share" if home else ""


def _data_dirs(values: Mapping[str, str]) -> str:
    default = BROKER_KEYS["log.dir"].default or ""
    return values.get("log.dirs") or values.get("log.dir") or default


def _review(given: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Warnings for unknown and idle keys, and the KRaft keys passed over; raises on protection."""
    warnings: list[str] = []
    ignored: list[str] = []
    problems: list[str] = []
    for name, text in given.items():
        if is_protecting(name):
            if differs_from_default(name, text):
                problems.append(
                    f"{name} promises protection that this version does not give yet, so it does not start. "
                    "Remove the key to run without."
                )
        elif is_kraft(name):
            ignored.append(name)
        elif find_broker_key(name) is None:
            warnings.append(_unknown(name))
        elif base_name(name) not in EFFECTIVE and differs_from_default(name, text):
            warnings.append(f"{name}={text.strip()} has no effect yet")
    if problems:
        raise ConfigError("\n".join(problems))
    return warnings, ignored


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, BROKER_KEYS, 1, 0.6)
    return f"Unknown configuration key {name}" + (f". Did you mean {close[0]}?" if close else "")


def _checked(static: dict[str, str]) -> BrokerConfig:
    problems: list[str] = []
    for name, text in static.items():
        key = find_broker_key(name)
        if key is not None:
            try:
                key.parse(text)
            except ConfigError as error:
                problems.append(str(error))
    if problems:
        raise ConfigError("\n".join(problems))
    config = BrokerConfig(static)
    problems = check_cross_key_rules(config) + _reserved_ids(config)
    for each in parse_listeners(config).bound if not problems else ():
        if each.protocol != "PLAINTEXT":
            problems.append(
                f"Listener {each.name} asks for {each.protocol}, which this version does not speak yet. "
                "Use PLAINTEXT, or remove the listener."
            )
    if problems:
        raise ConfigError("\n".join(problems))
    return config


def _reserved_ids(config: BrokerConfig) -> list[str]:
    """The cluster gives out the ids above the reserved ones. A rule of the start: later it has such a one."""
    if not config.text("zookeeper.connect").strip() or not config.flag("broker.id.generation.enable"):
        return []
    highest = config.integer("reserved.broker.max.id")
    if (config.configured_node_id or 0) <= highest:
        return []
    return [
        f"broker.id must not be greater than reserved.broker.max.id={highest}: the ids above it are given to "
        "brokers that have none"
    ]
