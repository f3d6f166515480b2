"""Shared by the handlers that show settings: which source a value is said to come from."""

from __future__ import annotations

from collections.abc import Sequence

from broker.config.broker_config import ConfigSource, Synonym


def effective_source(synonyms: Sequence[Synonym]) -> ConfigSource:
    """The source of the effective value; a value that nothing sets is a default."""
    return synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
