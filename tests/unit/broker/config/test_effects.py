"""The three lists: keys in use, keys that promise protection, KRaft's keys."""

from __future__ import annotations

from broker.config.definitions import BROKER_KEYS
from broker.config.effects import EFFECTIVE, differs_from_default, is_kraft, is_protecting


def test_keys_in_use_exist_and_are_on_no_other_list() -> None:
    for name in sorted(EFFECTIVE):
        assert name in BROKER_KEYS
        assert not is_kraft(name)


def test_kraft_keys() -> None:
    assert is_kraft("process.roles")
    assert is_kraft("controller.quorum.voters")
    assert is_kraft("metadata.log.dir")
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
