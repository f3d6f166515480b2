"""Every key has a text of its own that can stand alone, and nobody has them in memory who does not ask."""

from __future__ import annotations

import subprocess
import sys

from broker.config.client_metrics import CLIENT_METRICS_KEYS
from broker.config.definitions import BROKER_KEYS, GROUP_KEYS, OWN_KEYS, TOPIC_KEYS
from broker.config.documentation import (
    broker_key_text,
    client_metrics_key_text,
    group_key_text,
    topic_key_text,
)
from tests.support.ottla_process import CHECKOUT

TEXTS = {
    **{f"broker {name}": broker_key_text(name) for name in (*BROKER_KEYS, *OWN_KEYS)},
    **{f"topic {name}": topic_key_text(name) for name in TOPIC_KEYS},
    **{f"group {name}": group_key_text(name) for name in GROUP_KEYS},
    **{f"client metrics {name}": client_metrics_key_text(name) for name in CLIENT_METRICS_KEYS},
}


def is_one_or_two_sentences(text: str | None) -> bool:
    return (
        text is not None
        and 20 < len(text) < 260
        and text[0].isupper()
        and text.endswith(".")
        and "  " not in text
    )


def test_a_key_has_one_or_two_sentences() -> None:
    """All in one test: five hundred tests take longer to be begun and told than the look at a text."""
    assert len(TEXTS) > 400
    assert {name: text for name, text in TEXTS.items() if not is_one_or_two_sentences(text)} == {}


def test_a_listeners_key_has_the_text_of_the_plain_one() -> None:
    assert broker_key_text("listener.name.external.ssl.keystore.location") == broker_key_text(
        "ssl.keystore.location"
    )
    assert broker_key_text("listener.name.external.plain.sasl.jaas.config") == broker_key_text(
        "sasl.jaas.config"
    )


def test_what_nobody_knows_has_no_text() -> None:
    for text_of in (broker_key_text, topic_key_text, client_metrics_key_text):
        assert text_of("no.such.key") is None


def test_the_texts_are_loaded_with_the_first_question() -> None:
    script = (
        "import sys\n"
        "from broker.handlers import describe_configs\n"
        "from broker.config.documentation import topic_key_text\n"
        "loaded = [name for name in sys.modules if name.startswith('broker.config.docs')]\n"
        "assert loaded == [], loaded\n"
        "topic_key_text('retention.ms')\n"
        "loaded = [name for name in sys.modules if name.startswith('broker.config.docs.')]\n"
        "assert loaded == ['broker.config.docs.topic'], loaded\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, cwd=CHECKOUT, timeout=60)
