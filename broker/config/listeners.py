"""Listeners and advertised listeners.

Owns the parsing and the rules of `listeners`, `advertised.listeners`, `listener.security.protocol.map`
and `inter.broker.listener.name`, with Kafka's texts for what it refuses. KRaft's controller listeners
are left out: this broker has none.

Addresses stay as written until the ports are bound: port 0 asks for any free port, an empty host means
every address, and `localhost` both loopback addresses.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from broker.config.broker_config import BrokerConfig
from broker.config.values import ConfigError

_ENDPOINT: Final = re.compile(r"([^:/]*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")
_LOOPBACK: Final = ("127.0.0.1", "::1")
_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@dataclass(slots=True, frozen=True)
class Listener:
    """One named address; `protocol` is the security protocol that the name maps to."""

    name: str
    protocol: str
    host: str
    port: int

    @property
    def bind_hosts(self) -> tuple[str, ...]:
        """Addresses to listen on: `""` is every address; the first must bind, a further one may not
        exist on the machine (no IPv6).
        """
        return _LOOPBACK if self.host == "localhost" else (self.host,)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


@dataclass(slots=True, frozen=True)
class Listeners:
    """What to bind, what to tell clients, and the listener between brokers."""

    bound: tuple[Listener, ...]
    advertised: tuple[Listener, ...]
    inter_broker_name: str

    def resolve(self, bound_ports: Mapping[str, int], host_name: str) -> tuple[Listener, ...]:
        """Advertised listeners with real addresses once the ports are bound.

        An advertised port 0 becomes the port that the listener of that name got; an empty host becomes
        `host_name`, the machine's own name.
        """
        resolved = []
        for each in self.advertised:
            port = each.port or bound_ports[each.name]
            resolved.append(Listener(each.name, each.protocol, each.host or host_name, port))
        return tuple(resolved)


def parse_listeners(config: BrokerConfig) -> Listeners:
    """Read and check the listener keys; raises ConfigError."""
    protocols = _protocol_map(config)
    controllers = _controller_names(config)
    bound = _parse("listeners", config.names("listeners"), protocols, controllers)
    if not bound:
        raise ConfigError(
            "listeners names no listener for clients. Add one, such as PLAINTEXT://localhost:9092"
        )
    _check_distinct(bound, config)
    given = config.names("advertised.listeners")
    advertised = _parse("advertised.listeners", given, protocols, controllers) if given else bound
    _check_advertised(advertised, bound, given != ())
    return Listeners(bound, advertised, _inter_broker_name(config, advertised))


def _protocol_map(config: BrokerConfig) -> dict[str, str]:
    protocols: dict[str, str] = {}
    for item in config.text("listener.security.protocol.map").split(","):
        name, colon, protocol = item.partition(":")
        if not colon or protocol.strip() not in _PROTOCOLS:
            raise ConfigError(
                f"listener.security.protocol.map: '{item}' is not NAME:PROTOCOL "
                f"with one of {', '.join(_PROTOCOLS)}"
            )
        protocols[name.strip().upper()] = protocol.strip()
    return protocols


def _controller_names(config: BrokerConfig) -> tuple[str, ...]:
    named = tuple(name.upper() for name in config.names("controller.listener.names"))
    return named or ("CONTROLLER",)


def _parse(
    key: str, items: tuple[str, ...], protocols: Mapping[str, str], controllers: tuple[str, ...]
) -> tuple[Listener, ...]:
    found = []
    for item in items:
        match = _ENDPOINT.fullmatch(item)
        if match is None or not match[1]:
            raise ConfigError(f"Unable to parse '{item}' of {key} as NAME://HOST:PORT")
        name, port = match[1].upper(), int(match[3])
        if name in controllers:
            continue
        if name not in protocols:
            raise ConfigError(
                f"Error creating broker listeners from '{','.join(items)}': "
                f"No security protocol defined for listener {name}. Add it to listener.security.protocol.map"
            )
        if not 0 <= port <= 65535:
            raise ConfigError(f"{key}: port {port} of listener {name} is not between 0 and 65535")
        found.append(Listener(name, protocols[name], match[2], port))
    return tuple(found)


def _check_distinct(bound: tuple[Listener, ...], config: BrokerConfig) -> None:
    text = ",".join(config.names("listeners"))
    if len({each.name for each in bound}) != len(bound):
        raise ConfigError(f"Each listener must have a different name, listeners: {text}")
    by_port: dict[int, list[Listener]] = {}
    for each in bound:
        if each.port:
            by_port.setdefault(each.port, []).append(each)
    for same in by_port.values():
        families = {_family(each.host) for each in same}
        if len(same) > 1 and (len(same) > 2 or families != {4, 6}):
            raise ConfigError(
                f"Each listener must have a different port unless exactly one listener has an IPv4 address "
                f"and the other IPv6 address, listeners: {text}"
            )


def _family(host: str) -> int:
    if ":" in host:
        return 6
    return 4 if re.fullmatch(r"[0-9]+(\.[0-9]+){3}", host) else 0


def _check_advertised(advertised: tuple[Listener, ...], bound: tuple[Listener, ...], given: bool) -> None:
    names = [each.name for each in bound]
    if len({each.name for each in advertised}) != len(advertised):
        raise ConfigError("Each listener must have a different name in advertised.listeners")
    unknown = [each.name for each in advertised if each.name not in names]
    if unknown:
        raise ConfigError(
            "advertised.listeners listener names must be equal to or a subset of the ones defined in "
            f"listeners. Found {','.join(each.name for each in advertised)}. "
            f"The valid options based on the current configuration are {','.join(names)}"
        )
    if any(each.host in ("0.0.0.0", "::") for each in advertised):
        hint = "" if given else " Set advertised.listeners to the address that clients use."
        raise ConfigError(
            "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address."
            + hint
        )


def _inter_broker_name(config: BrokerConfig, advertised: tuple[Listener, ...]) -> str:
    name = config.text("inter.broker.listener.name").upper()
    if name and config.is_set("security.inter.broker.protocol"):
        raise ConfigError(
            "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set."
        )
    name = name or config.text("security.inter.broker.protocol")
    names = [each.name for each in advertised]
    if name not in names:
        raise ConfigError(
            "inter.broker.listener.name must be a listener name defined in advertised.listeners. "
            f"The valid options based on currently configured listeners are {','.join(names)}"
        )
    return name
