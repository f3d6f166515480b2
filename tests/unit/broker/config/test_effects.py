"""The three lists: keys in use, keys that promise protection, KRaft's keys."""

from __future__ import annotations

import re
from pathlib import Path

from broker.config.definitions import BROKER_KEYS, FALLBACK_NAMES, GROUP_KEYS, OWN_KEYS, TOPIC_KEYS
from broker.config.effects import EFFECTIVE, differs_from_default, is_kraft, is_protecting
from broker.config.group_configs import BOUNDS

ROOT = Path(__file__).parents[4]
NOT_A_USE = ("effects.py", "definitions.py", "rules.py")


def acted_on() -> set[str]:
    """Keys that the product's code reads: by name, or through the setting of a log or of a group that has
    their default, or as the bounds of such a setting.
    """
    files = [
        path
        for folder in ("broker", "coordinator", "replication", "storage")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not path.name.endswith("_keys.py") and path.name not in NOT_A_USE
    ]
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    found = {name for name in (*BROKER_KEYS, *OWN_KEYS) if f'"{name}"' in text}
    for key in TOPIC_KEYS.values():
        if key.broker_key and re.search(rf"\.{key.name.replace('.', '_')}\b", text):
            found.update(FALLBACK_NAMES.get(key.broker_key, (key.broker_key,)))
    for key in GROUP_KEYS.values():
        if f'"{key.name}"' in text:
            found.update({key.broker_key, *BOUNDS.get(key.name, ())})
    return found


def test_every_key_in_use_is_acted_on_somewhere() -> None:
    assert sorted(EFFECTIVE - acted_on()) == []


def test_keys_in_use_exist_and_are_on_no_other_list() -> None:
    for name in sorted(EFFECTIVE):
        assert name in BROKER_KEYS or name in OWN_KEYS
        assert not is_kraft(name)


def test_kraft_keys() -> None:
    assert is_kraft("process.roles")
    assert is_kraft("controller.quorum.voters")
    assert is_kraft("metadata.log.segment.bytes")
    assert not is_kraft("metadata.log.dir")
    assert not is_kraft("node.id")
    assert not is_kraft("controller.socket.timeout.ms")


def test_protection() -> None:
    assert is_protecting("ssl.key.password")
    assert is_protecting("listener.name.x.scram-sha-512.sasl.jaas.config")
    assert is_protecting("super.users")
    assert not is_protecting("listeners")


def test_a_default_may_be_written_in_other_words() -> None:
    assert not differs_from_default("num.io.threads", " 8 ")
    assert not differs_from_default("log.cleaner.min.cleanable.ratio", "0.50")
    assert differs_from_default("num.io.threads", "9")
    assert differs_from_default("no.such.key", "9")
    assert differs_from_default("num.io.threads", "x")
