"""A simulated consumer of committed records: it leaves out what was aborted, as Kafka's clients do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from protocol import messages as m
from protocol.records.batch import batches, read_header, records
from protocol.records.control import ABORT, read_end_marker
from tests.simulation.history import TopicPartition
from tests.simulation.ledger import Ledger
from tests.simulation.reader import Reader, Rows

READ_COMMITTED = 1


class CommittedReader(Reader):
    """See the module. What it gets is told to the ledger; its end of a partition is the last stable one."""

    def __init__(self, *args: Any, ledger: Ledger, **more: Any) -> None:
        super().__init__(*args, **more)
        self._ledger = ledger

    def request(self, *args: Any) -> m.FetchRequest:
        request = super().request(*args)
        request.isolation_level = READ_COMMITTED
        return request

    def rows_of(self, partition: TopicPartition, found: Any, fetch_offset: int) -> Rows:
        aborted = [(each.first_offset, each.producer_id) for each in found.aborted_transactions or ()]
        rows = committed_rows(found.records or b"", aborted, fetch_offset)
        self._ledger.seen(self.name, partition, rows)
        return rows

    def limit_of(self, found: Any) -> int:
        limit: int = found.last_stable_offset
        if limit > found.high_watermark:
            self.world.fail(f"{self.name}: stable to {limit} with high watermark {found.high_watermark}")
        return limit


def committed_rows(data: bytes, aborted: Sequence[tuple[int, int]], fetch_offset: int) -> Rows:
    """(offset, value) of what was not aborted. `aborted`: (first offset, producer id) as the answer tells; it
    holds from there to the producer's next ABORT marker.
    """
    rows: Rows = []
    coming = sorted(aborted)
    ending: set[int] = set()
    for at, _ in batches(data):
        head = read_header(data, at)
        while coming and coming[0][0] <= head.last_offset:
            ending.add(coming.pop(0)[1])
        if head.is_control:
            marker = read_end_marker(data, at)
            if marker is not None and marker.type == ABORT:
                ending.discard(marker.producer_id)
        elif not (head.is_transactional and head.producer_id in ending):
            rows += [
                (record.offset, record.value or b"")
                for record in records(data, at)
                if record.offset >= fetch_offset
            ]
    return rows
