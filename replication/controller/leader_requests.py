"""Elections that somebody asks for: ElectLeaders, the legacy node of tools, and the balancing of leaders.

The answers are those of Kafka: a partition is unknown (3), its topic is being deleted (17), it has the wanted
leader (84), or nobody can lead (80 for a preferred leader, 83 for an unclean one).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from enum import IntEnum

from protocol.errors import ErrorCode
from replication.controller.balance import misplaced
from replication.controller.cluster_state import TopicPartition
from replication.controller.elections import Strategy
from replication.controller.office import Office
from replication.controller.partition_states import PartitionMachine
from replication.metadata import controller_payloads, paths
from replication.metadata.payloads import BadPayload
from replication.metadata.store import Delete, NoNode

_log = logging.getLogger(__name__)


class ElectionType(IntEnum):
    """As in ElectLeaders."""

    PREFERRED = 0
    UNCLEAN = 1


ElectionOutcome = tuple[ErrorCode, str | None]


class LeaderRequests:
    """See the module."""

    def __init__(self, office: Office, partitions: PartitionMachine) -> None:
        self._office = office
        self._state = office.state
        self._partitions = partitions

    async def elect(
        self, partitions: Iterable[TopicPartition], kind: ElectionType
    ) -> dict[TopicPartition, ElectionOutcome]:
        """Elect where it is needed and possible; one outcome for each partition, in the order given."""
        outcomes: dict[TopicPartition, ElectionOutcome] = {}
        wanted: list[TopicPartition] = []
        for partition in dict.fromkeys(partitions):
            refused = self._refusal_of(partition, kind)
            outcomes[partition] = refused or (ErrorCode.NONE, None)
            if refused is None:
                wanted.append(partition)
        if kind is ElectionType.PREFERRED:
            elected = await self._partitions.elect(wanted, Strategy.PREFERRED)
            missing = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        else:
            elected = await self._partitions.elect(wanted, Strategy.OFFLINE, unclean=True)
            missing = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        have = dict.fromkeys(elected)
        for partition in wanted:
            if partition not in have:
                outcomes[partition] = (missing, missing.message)
        return outcomes

    async def on_legacy_node(self) -> None:
        """/admin/preferred_replica_election: elect what it names, then take it away."""
        node = await self._office.ledger.get(paths.PREFERRED_ELECTION)
        if node is None:
            return
        try:
            named = controller_payloads.decode_partitions(paths.PREFERRED_ELECTION, node.value)
        except BadPayload as damaged:
            _log.error("No preferred leaders are elected: %s", damaged)
            named = []
        outcomes = await self.elect(
            (TopicPartition(*partition) for partition in named), ElectionType.PREFERRED
        )
        for partition, (error, _) in outcomes.items():
            if error is not ErrorCode.NONE:
                _log.warning("No preferred leader is elected for %s: %s", partition, error.name)
        try:
            await self._office.ledger.write([Delete(paths.PREFERRED_ELECTION, node.version)])
        except NoNode:
            return

    async def balance(self) -> None:
        """Give leaderships back to preferred replicas where too many are elsewhere."""
        moving = misplaced(self._state, self._office.settings.imbalance_percent)
        if moving:
            _log.info("Leaders of %d partition(s) return to their preferred replicas", len(moving))
            await self._partitions.elect(moving, Strategy.PREFERRED)

    def _refusal_of(self, partition: TopicPartition, kind: ElectionType) -> ElectionOutcome | None:
        replicas = self._state.assignment(partition).replicas
        if not replicas:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, self._unknown(partition)
        if partition.topic in self._state.deleting:
            return ErrorCode.INVALID_TOPIC_EXCEPTION, "The topic is being deleted"
        known = self._state.leaderships.get(partition)
        if known is None:
            return None if kind is ElectionType.UNCLEAN else self._missing_preferred()
        if kind is ElectionType.PREFERRED:
            needed = known.leader != replicas[0]
        else:
            needed = not self._state.is_live(known.leader)
        return None if needed else (ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.ELECTION_NOT_NEEDED.message)

    def _unknown(self, partition: TopicPartition) -> str:
        if partition.topic not in self._state.assignments:
            return f"No such topic as {partition.topic}"
        return f"No such partition as {partition}"

    @staticmethod
    def _missing_preferred() -> ElectionOutcome:
        missing = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        return missing, missing.message
