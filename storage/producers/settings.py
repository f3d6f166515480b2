"""What the logs of a broker go by in keeping producers."""

from __future__ import annotations

from dataclasses import dataclass

from runtime.clock import Clock


@dataclass(slots=True)
class ProducerSettings:
    """One object for all logs; values may change while the broker runs.

    `expiration_ms`: producers that wrote nothing for so long are forgotten (producer.id.expiration.ms).
    `verify`: a transaction's first batch needs a guard (transaction.partition.verification.enable).
    `clock`: tells which producers of a snapshot have expired meanwhile; without it they are kept.
    """

    clock: Clock | None = None
    expiration_ms: int = 86_400_000
    verify: bool = False
