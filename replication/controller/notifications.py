"""Notes that brokers leave for the controller: a log directory failed, a set in sync was changed directly.

Each note is a sequential node. The controller reads all that are there, acts, and takes away those it has
read. A new controller takes away what it finds at its start, for it reads everything else anyway.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from replication.controller.broker_changes import BrokerChanges
from replication.controller.cluster_state import TopicPartition
from replication.controller.office import Office
from replication.controller.reassignments import Reassignments
from replication.metadata import controller_payloads, paths
from replication.metadata.payloads import BadPayload
from replication.metadata.store import Delete, NoNode

_log = logging.getLogger(__name__)


class Notifications:
    """See the module."""

    def __init__(self, office: Office, brokers: BrokerChanges, reassignments: Reassignments) -> None:
        self._office = office
        self._state = office.state
        self._brokers = brokers
        self._reassignments = reassignments

    async def clear(self) -> None:
        """Take all notes away unread."""
        for folder in (paths.LOG_DIR_EVENTS, paths.ISR_CHANGES):
            names = await self._office.ledger.children(folder)
            await self._remove([f"{folder}/{name}" for name in names])

    async def on_log_dir_events(self) -> None:
        """Have the brokers that lost directories tell what they still serve."""
        brokers: dict[int, None] = {}
        notes = await self._read(paths.LOG_DIR_EVENTS)
        for path, value in notes.items():
            try:
                brokers[controller_payloads.decode_log_dir_event(path, value)] = None
            except BadPayload as damaged:
                _log.error("A note is passed over: %s", damaged)
        await self._brokers.ask_for_directories(brokers)
        await self._remove(notes)

    async def on_isr_changes(self) -> None:
        """Read what leaders of before inter.broker.protocol.version 2.7 have written, and tell everybody."""
        changed: dict[TopicPartition, None] = {}
        notes = await self._read(paths.ISR_CHANGES)
        for path, value in notes.items():
            try:
                named = controller_payloads.decode_partitions(path, value)
            except BadPayload as damaged:
                _log.error("A note is passed over: %s", damaged)
                continue
            changed.update(dict.fromkeys(TopicPartition(*partition) for partition in named))
        known = [partition for partition in changed if partition in self._state.leaderships]
        for partition in known:
            stored = await self._office.ledger.leadership(partition)
            if stored is not None:
                self._state.leaderships[partition] = stored
        if known:
            await self._office.update_metadata(self._state.reachable, known)
            for partition in known:
                await self._reassignments.complete_if_caught_up(partition)
        await self._remove(notes)

    async def _read(self, folder: str) -> dict[str, bytes]:
        """The values of the notes in a folder by path; those that vanish meanwhile are left out."""
        notes: dict[str, bytes] = {}
        for name in await self._office.ledger.children(folder):
            node = await self._office.ledger.get(f"{folder}/{name}")
            if node is not None:
                notes[f"{folder}/{name}"] = node.value
        return notes

    async def _remove(self, notes: Iterable[str]) -> None:
        for path in notes:
            try:
                await self._office.ledger.write([Delete(path)])
            except NoNode:
                continue
