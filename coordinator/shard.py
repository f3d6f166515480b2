"""What the runtime asks of the state behind one partition of an internal topic.

The runtime applies each record through `replay`, whether it was just appended or comes from a load: one way
in, so that live state equals replayed state. Everything that `replay` changes lies in `JournaledTable`s over
the journal that the runtime handed to the shard's maker.
"""

from __future__ import annotations

from typing import Protocol

from protocol.records.batch import NO_PRODUCER_ID

NOT_TRANSACTIONAL = NO_PRODUCER_ID


class Shard(Protocol):
    """State of one partition; all calls come from the runtime, on the loop's thread."""

    def replay(self, key: bytes, value: bytes | None, offset: int, producer_id: int) -> None:
        """Apply one record. `producer_id` is -1 outside transactions. Unknown keys are passed over.

        Raises MalformedMessage for a known key or value whose bytes do not parse.
        """

    def replay_end_marker(self, producer_id: int, commit: bool) -> None:
        """The transaction of a producer has ended on this partition."""

    def on_loaded(self, now_ms: int) -> None:
        """All records have been replayed: set timers, start what has to go on."""

    def on_unloaded(self) -> None:
        """The partition has gone, or its load failed: answer what is parked with NOT_COORDINATOR."""
