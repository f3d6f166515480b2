"""AlterPartition: a leader asks for another set in sync (KIP-497). What is refused, and what is written.

The leader epoch stays: only the set in sync, the recovery state and with them the partition epoch change. All
brokers hear of it by UpdateMetadata, nobody by LeaderAndIsr; the leader has it from the answer.

Kafka in ZooKeeper mode takes the sender's word that it leads. Here the sender must be the leader, the new set
must be among the replicas and contain it, and a member named with another broker epoch than it registered
with is refused: it may have lost what it had fetched before (KIP-903).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from protocol import messages as m
from protocol.errors import ErrorCode
from replication.controller.cluster_state import ControllerState, Leadership, TopicPartition
from replication.controller.partition_states import refreshed
from replication.controller.reign import Reign

_log = logging.getLogger(__name__)

_Asked = m.AlterPartitionRequest.PartitionData
_Topic = m.AlterPartitionRequest.TopicData
_Answer = m.AlterPartitionResponse.PartitionData

TOPIC_IDS_FROM = 2
EPOCHS_FROM = 3
UNKNOWN_BROKER_EPOCH = -1


@dataclass(slots=True)
class IsrPlan:
    """`wanted` is to be written; `settled` is decided already, by an error or because it is so."""

    wanted: dict[TopicPartition, Leadership] = field(default_factory=dict)
    settled: dict[TopicPartition, ErrorCode | Leadership] = field(default_factory=dict)


def refusal_of(state: ControllerState, request: m.AlterPartitionRequest) -> ErrorCode | None:
    """The error of the whole request: the sender must be registered with this very epoch."""
    broker = state.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        return ErrorCode.STALE_BROKER_EPOCH
    return None


def plan(state: ControllerState, request: m.AlterPartitionRequest, version: int) -> IsrPlan:
    """What to write for the partitions of a request that is not refused as a whole."""
    made = IsrPlan()
    for topic in request.topics:
        name = topic_of(state, topic, version)
        for asked in topic.partitions if name is not None else ():
            partition = TopicPartition(name or "", asked.partition_index)
            decided = _decide(state, partition, request.broker_id, asked, version)
            if isinstance(decided, _Wanted):
                made.wanted[partition] = decided.leadership
            else:
                made.settled[partition] = decided
    return made


def topic_of(state: ControllerState, topic: _Topic, version: int) -> str | None:
    """The name of a topic of the request; None for an id that is not known."""
    return state.topic_names.get(topic.topic_id) if version >= TOPIC_IDS_FROM else topic.topic_name


@dataclass(slots=True, frozen=True)
class _Wanted:
    leadership: Leadership


def _decide(
    state: ControllerState, partition: TopicPartition, sender: int, asked: _Asked, version: int
) -> ErrorCode | Leadership | _Wanted:
    known = state.leaderships.get(partition)
    if known is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if asked.partition_epoch > known.partition_epoch or asked.leader_epoch > known.leader_epoch:
        return ErrorCode.NOT_CONTROLLER  # the leader knows more: there must be a later controller
    if asked.leader_epoch < known.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if sender != known.leader:
        return ErrorCode.INVALID_REQUEST
    members = _members(asked, version)
    isr, recovering = tuple(member for member, _ in members), asked.leader_recovery_state == 1
    if isr == known.isr and recovering == known.recovering:
        return known  # a repetition of what was done
    if asked.partition_epoch < known.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    if recovering and (len(isr) > 1 or not known.recovering):
        return ErrorCode.INVALID_REQUEST
    replicas = state.assignment(partition).replicas
    if sender not in isr or len(set(isr)) != len(isr) or any(member not in replicas for member in isr):
        return ErrorCode.INVALID_REQUEST
    unfit = [member for member, epoch in members if not _is_fit(state, member, epoch)]
    if unfit:
        _log.info("Broker %d may not have %s in sync in %s", sender, unfit, partition)
        before = version < TOPIC_IDS_FROM
        return ErrorCode.OPERATION_NOT_ATTEMPTED if before else ErrorCode.INELIGIBLE_REPLICA
    return _Wanted(replace(known, isr=isr, recovering=recovering))


def _members(asked: _Asked, version: int) -> Sequence[tuple[int, int]]:
    """The new set in sync with the broker epoch of each member, as far as the leader knows it."""
    if version >= EPOCHS_FROM:
        return [(member.broker_id, member.broker_epoch) for member in asked.new_isr_with_epochs]
    return [(member, UNKNOWN_BROKER_EPOCH) for member in asked.new_isr]


def _is_fit(state: ControllerState, member: int, epoch: int) -> bool:
    if not state.is_live(member):
        return False
    return epoch in (UNKNOWN_BROKER_EPOCH, state.brokers[member].epoch)


def response_to(
    state: ControllerState,
    request: m.AlterPartitionRequest,
    version: int,
    settled: dict[TopicPartition, ErrorCode | Leadership],
) -> m.AlterPartitionResponse:
    """The answer, in the order of the request."""
    topics: list[m.AlterPartitionResponse.TopicData] = []
    for topic in request.topics:
        name = topic_of(state, topic, version)
        answers = [
            _answer(
                asked.partition_index,
                ErrorCode.UNKNOWN_TOPIC_ID
                if name is None
                else settled[TopicPartition(name, asked.partition_index)],
            )
            for asked in topic.partitions
        ]
        topics.append(
            m.AlterPartitionResponse.TopicData(
                topic_name=topic.topic_name, topic_id=topic.topic_id, partitions=answers
            )
        )
    return m.AlterPartitionResponse(topics=topics)


def _answer(index: int, settled: ErrorCode | Leadership) -> _Answer:
    if isinstance(settled, ErrorCode):
        return _Answer(partition_index=index, error_code=settled)
    return _Answer(
        partition_index=index,
        leader_id=settled.leader,
        leader_epoch=settled.leader_epoch,
        isr=list(settled.isr),
        leader_recovery_state=int(settled.recovering),
        partition_epoch=settled.partition_epoch,
    )


async def alter(reign: Reign, request: m.AlterPartitionRequest, version: int) -> m.AlterPartitionResponse:
    """Do what the request asks for as far as it may, tell all brokers, and answer."""
    state, office = reign.state, reign.office
    refused = refusal_of(state, request)
    if refused is not None:
        return m.AlterPartitionResponse(error_code=refused)
    made = plan(state, request, version)
    written = await office.ledger.put_leaderships(made.wanted)
    state.leaderships.update(written.done)
    settled = {**made.settled, **written.done}
    settled |= dict.fromkeys(written.conflicts, ErrorCode.INVALID_UPDATE_VERSION)
    settled |= dict.fromkeys(written.failed, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    await refreshed(office, written.conflicts)
    await office.update_metadata(state.reachable, settled)
    return response_to(state, request, version, settled)


async def complete(reign: Reign, request: m.AlterPartitionRequest, version: int) -> None:
    """Let reassignments go on whose targets have come into sync by the request."""
    for topic in request.topics:
        name = topic_of(reign.state, topic, version)
        for asked in topic.partitions if name is not None else ():
            partition = TopicPartition(name or "", asked.partition_index)
            await reign.reassignments.complete_if_caught_up(partition)
