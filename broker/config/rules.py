"""What may be changed while the broker runs: the rules that the controller asks for.

Owns `DynamicConfigRules`, the broker's side of `replication.metadata.configs.ConfigRules`. The answers
are those of Kafka 4.4.0, except that a broker key that promises protection (TLS, SASL, quotas) or moves
listeners is refused while nothing would act on it. A key that Kafka does not know is taken for a broker,
as Kafka does for its plugins.
"""

from collections.abc import Mapping

from broker.config import client_metrics, group_configs
from broker.config.broker_config import BrokerConfig
from broker.config.checks import check_cross_key_rules
from broker.config.definitions import BROKER_KEYS, TOPIC_KEYS, find_broker_key
from broker.config.effects import is_protecting
from broker.config.topic_configs import TopicConfigs
from broker.config.values import ConfigError, format_value
from protocol.errors import ErrorCode
from replication.metadata.configs import ConfigRefused, ConfigResource, ConfigType

_MOVING_LISTENERS = ("listeners", "listener.security.protocol.map")
_THREAD_COUNTS = (
    "num.io.threads",
    "num.network.threads",
    "num.replica.fetchers",
    "num.recovery.threads.per.data.dir",
    "background.threads",
    "log.cleaner.threads",
)


class DynamicConfigRules:
    """Checks the overrides that a topic, broker, group or metrics subscription would have after a change."""

    def __init__(self, broker: BrokerConfig, topics: TopicConfigs) -> None:
        self._broker = broker
        self._topics = topics

    def validate(self, resource: ConfigResource, values: Mapping[str, str]) -> None:
        """Check the whole set of overrides. Raises ConfigRefused: 40 for topics and groups, 42 for brokers,
        either for metrics subscriptions.
        """
        if resource.type in (ConfigType.TOPIC, ConfigType.GROUP):
            try:
                if resource.type == ConfigType.TOPIC:
                    self._topics.validate(values)
                else:
                    group_configs.validate(self._broker, values)
            except ConfigError as error:
                raise ConfigRefused(ErrorCode.INVALID_CONFIG, str(error)) from error
        elif resource.type == ConfigType.BROKER:
            self._validate_broker(resource, values)
        elif resource.type == ConfigType.CLIENT_METRICS:
            client_metrics.validate(values)
        else:
            raise ConfigRefused(
                ErrorCode.INVALID_REQUEST, f"Resource type {resource.type.name} cannot be altered here."
            )

    def _validate_broker(self, resource: ConfigResource, values: Mapping[str, str]) -> None:
        known = {name: key for name in values if (key := find_broker_key(name)) is not None}
        _refuse_any(
            "Cannot update these configs dynamically",
            [name for name, key in known.items() if not key.dynamic],
        )
        _refuse_any(
            "These security configs can be dynamically updated only per-listener using the listener prefix",
            [name for name, key in known.items() if key.name == name and _per_listener(name)],
        )
        if not resource.name:
            _refuse_any(
                "Cannot update these configs at default cluster level, broker id must be specified",
                [name for name, key in known.items() if key.mode == "broker"],
            )
        _refuse_any(
            "This version has nothing yet that would act on these configs",
            [name for name in known if is_protecting(name) or name in _MOVING_LISTENERS],
        )
        try:
            for name, key in known.items():
                key.parse(values[name])
        except ConfigError as error:
            raise ConfigRefused(ErrorCode.INVALID_REQUEST, str(error)) from error
        self._check_together(resource, values)

    def _check_together(self, resource: ConfigResource, values: Mapping[str, str]) -> None:
        trial = BrokerConfig(self._broker.static)
        if resource.name:
            trial.apply_dynamic(self._broker.dynamic_default, values)
        else:
            trial.apply_dynamic(values, self._broker.dynamic_broker)
        problems = check_cross_key_rules(trial)
        unknown = [path for path in trial.names("cordoned.log.dirs") if path not in (*trial.log_dirs, "*")]
        if unknown:
            problems.append(
                "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. "
                f"Missing entries : {','.join(unknown)}"
            )
        problems += [text for name in _THREAD_COUNTS if (text := self._thread_problem(trial, name))]
        if problems:
            raise ConfigRefused(ErrorCode.INVALID_REQUEST, problems[0])

    def _thread_problem(self, trial: BrokerConfig, name: str) -> str:
        now, wanted = self._broker.integer(name), trial.integer(name)
        text = f"Dynamic thread count update validation failed for {name}={wanted}, value should "
        if wanted < now // 2:
            return text + f"be at least half the current value {now}"
        if wanted > now * 2:
            return text + f"not be greater than double the current value {now}"
        return ""

    def is_list(self, resource: ConfigResource, key: str) -> bool:
        """Whether append and subtract make sense for the key; of groups and metrics subscriptions
        Kafka says never."""
        if resource.type in (ConfigType.CLIENT_METRICS, ConfigType.GROUP):
            return False
        keys = TOPIC_KEYS if resource.type == ConfigType.TOPIC else BROKER_KEYS
        found = keys.get(key)
        return found is not None and found.kind == "list"

    def inherited(self, resource: ConfigResource, key: str) -> str | None:
        """The value in force without an override of the resource itself. For topics and brokers, which alone
        have keys that can be appended to.
        """
        if resource.type == ConfigType.TOPIC:
            definition = TOPIC_KEYS.get(key)
            return None if definition is None else format_value(self._topics.inherited(definition))
        trial = BrokerConfig(self._broker.static)
        trial.apply_dynamic(self._broker.dynamic_default if resource.name else {}, {})
        return None if find_broker_key(key) is None else format_value(trial[key])


def _per_listener(name: str) -> bool:
    return name.startswith(("ssl.", "sasl.")) and BROKER_KEYS[name].mode == "broker"


def _refuse_any(reason: str, names: list[str]) -> None:
    if names:
        raise ConfigRefused(ErrorCode.INVALID_REQUEST, f"{reason}: [{', '.join(names)}]")
