"""What a key is for, as DescribeConfigs v3+ tells on request.

The tables of `docs` are loaded with the first question and kept; a broker that nobody asks never loads them.
"""

from functools import cache
from importlib import import_module

from broker.config.definitions import base_name

_BROKER_TABLES = ("cluster", "coordination", "log", "network", "security", "own")


def topic_key_text(name: str) -> str | None:
    """What a topic key is for; None where nobody knows the key."""
    return _texts("topic").get(name)


def client_metrics_key_text(name: str) -> str | None:
    """What a key of a client metrics subscription is for; None where nobody knows the key."""
    return _texts("client_metrics").get(name)


def group_key_text(name: str) -> str | None:
    """What a key of a group is for; None where nobody knows the key."""
    return _texts("group").get(name)


def broker_key_text(name: str) -> str | None:
    """What a broker key is for, listener-prefixed names included; None where nobody knows the key."""
    for table in _BROKER_TABLES:
        texts = _texts(table)
        text = texts.get(name) or texts.get(base_name(name))
        if text is not None:
            return text
    return None


@cache
def _texts(table: str) -> dict[str, str]:
    texts: dict[str, str] = {}
    name = ""
    for line in import_module(f"broker.config.docs.{table}").TABLE.splitlines():
        if line.startswith(" "):
            texts[name] = f"{texts[name]} {line.strip()}".lstrip()
        elif line:
            name = line
            texts[name] = ""
    return texts
