"""Producers that go on until their broker dies, and remember what was acknowledged.

A plain producer sends a batch again when no answer came, so its records may be there twice. An idempotent one
sends the same batch with the same sequence again after the restart, so that its records are there once.
"""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, field

from protocol.records.batch import Record
from protocol.records.builder import build_batch
from tests.support.wire_client import WireClient

TIME = 1_700_000_000_000
RECORDS = 3
VALUE_BYTES = 5000


@dataclass
class Producer:
    """One producer of one partition. `acknowledged` maps values to their offsets."""

    address: str
    topic: str
    partition: int
    codec: int
    producer_id: int = -1
    acknowledged: dict[bytes, int] = field(default_factory=dict)
    sent: int = 0
    _unanswered: list[bytes] = field(default_factory=list)

    def run(self, enough: threading.Event) -> None:
        """Produce until told to stop, or until the broker is gone."""
        try:
            with WireClient(self.address, "load") as wire:
                while not enough.is_set():
                    self.produce(wire)
        except OSError:
            return

    def produce(self, wire: WireClient) -> None:
        """One batch, first of all the one that was not answered."""
        values = self._unanswered or [
            b"%s/%d/%d/" % (self.topic.encode(), self.partition, self.sent * RECORDS + i)
            + random.Random(self.sent * RECORDS + i).randbytes(VALUE_BYTES)  # that no codec makes smaller
            for i in range(RECORDS)
        ]
        self._unanswered = values
        idempotent = self.producer_id >= 0
        batch = build_batch(
            [Record(i, TIME, b"key", value, ()) for i, value in enumerate(values)],
            codec=self.codec,
            producer_id=self.producer_id,
            producer_epoch=0 if idempotent else -1,
            base_sequence=self.sent * RECORDS if idempotent else -1,
        )
        answer = wire.produce(self.topic, batch, self.partition)
        assert answer.error_code == 0, answer
        for i, value in enumerate(values):
            self.acknowledged[value] = answer.base_offset + i
        self._unanswered = []
        self.sent += 1


def run_all(producers: list[Producer], enough: threading.Event) -> list[threading.Thread]:
    """Start all of them."""
    threads = [threading.Thread(target=each.run, args=(enough,)) for each in producers]
    for thread in threads:
        thread.start()
    return threads
