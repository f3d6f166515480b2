"""Carrying out what the transaction coordinator has decided: markers to all partitions of a transaction, then
the record that it is complete.

Partitions of this broker are written to directly, those of others through one request at a time for each
broker, which takes along what has come up meanwhile. What fails for now is sent again, to the leader that
there is by then: a decision is carried out however long it takes. It ends without its record where a newer
coordinator is found to own the transaction, or this broker coordinates it no more.

A partition that is no more needs no marker. A broker of a cluster asks the store whether it is so, for it
hears of partitions one by one, and one without its marker would never let readers of committed records pass.

Invariant: at most one `_Ending` for a transaction is at work; its decision is that of the shard. With the
partition of `__transaction_state` its endings go as well: a broker that coordinates it again later finds what
is still to be done in the log, while an ending from before would end whatever transaction is open by then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from broker.transaction.markers import Marker, MarkerWriter
from broker.transaction.pace import AT_ONCE, Pace
from coordinator.result import CoordinatorError
from coordinator.transaction.state import TopicPartition, Transaction, TxnState
from protocol import messages as m
from protocol.errors import ErrorCode
from replication.cluster.channel import ChannelLost
from replication.metadata.image import NO_LEADER
from replication.metadata.payloads import BadPayload
from replication.metadata.store import StoreError
from runtime.pieces import split

if TYPE_CHECKING:
    from broker.coordinators import CountPartitions
    from coordinator.ports import Timer
    from coordinator.transaction.manager import TransactionManager
    from replication.cluster.channel import Channels
    from replication.metadata.image import ImageHolder
    from runtime.tasks import TaskScope

PURPOSE: Final = "transaction-markers"

_OURS_NO_MORE: Final = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
_DONE: Final = (ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT)
_NOT_OURS_TO_COMPLETE: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
"""Who coordinates it now finds the decision in the log."""

_log = logging.getLogger("ottla.transactions")

Errors = dict[TopicPartition, ErrorCode]


class _Ending:
    """One decision, and the partitions that have no marker yet."""

    __slots__ = ("left", "partition", "transactional_id", "txn")

    def __init__(self, partition: int, transactional_id: str, txn: Transaction) -> None:
        self.partition, self.transactional_id, self.txn = partition, transactional_id, txn
        self.left = dict.fromkeys(sorted(txn.partitions))

    def marker(self, coordinator_epoch: int) -> Marker:
        txn = self.txn
        commit = txn.state is TxnState.PREPARE_COMMIT
        return Marker(txn.producer_id, txn.epoch, coordinator_epoch, commit, txn.version)


_Parcel = tuple[_Ending, Marker, list[TopicPartition]]


class Endings:
    """See the module, and `coordinator.transaction.shard.Endings`. `channels` and `count_partitions` are None
    for a broker alone.
    """

    def __init__(
        self,
        node_id: int,
        holder: ImageHolder,
        writer: MarkerWriter,
        manager: Callable[[], TransactionManager],
        timer: Timer,
        tasks: TaskScope,
        channels: Channels | None,
        count_partitions: CountPartitions | None = None,
    ) -> None:
        self._count_partitions = count_partitions
        self._node_id, self._holder, self._writer = node_id, holder, writer
        self._manager, self._tasks, self._channels = manager, tasks, channels
        self._pace = Pace(timer)
        self._parcels: dict[int, list[_Parcel]] = {}  # by broker; an entry while its courier runs
        self._at_work: dict[int, dict[str, _Ending]] = {}  # by partition of the topic, by transactional id

    def decided(self, partition: int, transactional_id: str, txn: Transaction) -> None:
        """Carry out a decision that is committed."""
        ending = _Ending(partition, transactional_id, txn)
        self._at_work.setdefault(partition, {})[transactional_id] = ending
        cells = list(ending.left)
        if len(cells) <= AT_ONCE:
            self._pace.soon(max(1, len(cells)), partial(self._send, ending, cells))
            return
        for some in split(cells, AT_ONCE):  # not in this pass, which had to write so long a record
            self._pace.next(len(some), partial(self._send, ending, some))

    def unloaded(self, partition: int) -> None:
        """This broker looks after the partition no more: what is under way changes nothing from now on."""
        self._at_work.pop(partition, None)

    def left(self, partition: int, transactional_id: str) -> Collection[TopicPartition] | None:
        """The partitions of a decided transaction that have no marker yet; None where none is at work."""
        ending = self._at_work.get(partition, {}).get(transactional_id)
        return None if ending is None else ending.left.keys()

    def _send(self, ending: _Ending, partitions: Sequence[TopicPartition]) -> None:
        """Send markers to who leads now."""
        if not self._is_at_work(ending):
            return
        try:
            marker = ending.marker(self._manager().runtime.epoch(ending.partition))
        except CoordinatorError:
            self._let_go(ending)  # whoever coordinates it now finds the decision in the log
            return
        image = self._holder.current
        by_leader: dict[int, list[TopicPartition]] = {}
        unknown: list[TopicPartition] = []
        for cell in partitions:
            known = image.partition(*cell)
            if known is None:
                unknown.append(cell)
            else:
                by_leader.setdefault(known.leader, []).append(cell)
        if unknown and self._count_partitions is not None:
            looking = self._look_for(ending, unknown, self._count_partitions)
            self._tasks.spawn(f"partitions of transaction {ending.transactional_id}", looking)
        elif unknown or not ending.left:
            self._gone(ending, unknown)
        for leader, cells in by_leader.items():
            if leader == self._node_id:
                self._writer.write(marker, cells, lambda errors: self._answered(ending, errors))
            elif leader == NO_LEADER or self._channels is None:
                self._again(ending, cells)
            else:
                self._mail(leader, (ending, marker, cells))

    async def _look_for(
        self, ending: _Ending, partitions: Sequence[TopicPartition], count_partitions: CountPartitions
    ) -> None:
        """Partitions that this broker does not know: are they no more?"""
        try:
            counts = {name: await count_partitions(name) for name in by_topic(partitions)}
        except (StoreError, BadPayload):
            counts = {}
        there = [cell for cell in partitions if not counts or cell[1] < counts[cell[0]]]
        if gone := [cell for cell in partitions if cell not in there]:
            self._gone(ending, gone)
        if there:
            self._again(ending, there)

    def _gone(self, ending: _Ending, partitions: Sequence[TopicPartition]) -> None:
        """These need no marker."""
        if self._is_at_work(ending):
            for cell in partitions:
                ending.left.pop(cell, None)
            if not ending.left:
                self._complete(ending)

    def _answered(self, ending: _Ending, errors: Errors) -> None:
        if not self._is_at_work(ending):
            return
        again: list[TopicPartition] = []
        for cell, error in errors.items():
            if error in _DONE:
                ending.left.pop(cell, None)
            elif error in _OURS_NO_MORE:
                self._let_go(ending)
                _log.info(
                    "Transaction %s was ended by somebody else: %s-%d says %s",
                    ending.transactional_id, *cell, error.message,
                )  # fmt: skip
                return
            else:
                again.append(cell)
        if again:
            self._again(ending, again)
        elif not ending.left:
            self._complete(ending)

    def _again(self, ending: _Ending, partitions: list[TopicPartition]) -> None:
        self._pace.again(len(partitions), lambda: self._send(ending, partitions))

    def _complete(self, ending: _Ending) -> None:
        if not self._is_at_work(ending):
            return

        def decided(error: ErrorCode, _: bool | None) -> None:
            if error is ErrorCode.COORDINATOR_NOT_AVAILABLE:
                self._pace.again(1, lambda: self._complete(ending))
                return
            self._let_go(ending)
            if error is not ErrorCode.NONE and error not in _NOT_OURS_TO_COMPLETE:
                _log.error(
                    "Transaction %s has its markers but is not written as complete: %s",
                    ending.transactional_id, error.message,
                )  # fmt: skip

        self._manager().complete(ending.partition, ending.transactional_id, ending.txn, decided)

    def _is_at_work(self, ending: _Ending) -> bool:
        """False where it has ended, or its partition has gone, even if that has come back meanwhile."""
        return self._at_work.get(ending.partition, {}).get(ending.transactional_id) is ending

    def _let_go(self, ending: _Ending) -> None:
        if self._is_at_work(ending):
            del self._at_work[ending.partition][ending.transactional_id]

    # --- other brokers --------------------------------------------------------------------------------------

    def _mail(self, broker_id: int, parcel: _Parcel) -> None:
        waiting = self._parcels.get(broker_id)
        if waiting is not None:
            waiting.append(parcel)
            return
        self._parcels[broker_id] = [parcel]
        self._tasks.spawn(f"transaction markers for broker {broker_id}", self._carry(broker_id))

    async def _carry(self, broker_id: int) -> None:
        """Bring what there is for a broker, until there is nothing."""
        assert self._channels is not None
        channel = self._channels.to(broker_id, PURPOSE)
        try:
            while parcels := self._parcels[broker_id]:
                self._parcels[broker_id] = []
                try:
                    answer = await channel.ask(_request(parcels))
                except ChannelLost:
                    for ending, _, cells in parcels:
                        self._again(ending, cells)
                    continue
                errors = _errors(answer)
                for ending, marker, cells in parcels:
                    told = errors.get(marker.producer_id, {})
                    found = {cell: told.get(cell, ErrorCode.UNKNOWN_SERVER_ERROR) for cell in cells}
                    self._answered(ending, found)
        finally:
            del self._parcels[broker_id]


def _request(parcels: Sequence[_Parcel]) -> m.WriteTxnMarkersRequest:
    request = m.WriteTxnMarkersRequest
    return request(
        markers=[
            request.WritableTxnMarker(
                producer_id=marker.producer_id,
                producer_epoch=marker.epoch,
                transaction_result=marker.commit,
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=marker.version,
                topics=[
                    request.WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
                    for name, indexes in by_topic(cells).items()
                ],
            )
            for _, marker, cells in parcels
        ]
    )


def by_topic(cells: Sequence[TopicPartition]) -> dict[str, list[int]]:
    """Partitions grouped by their topic, in the order in which they come."""
    found: dict[str, list[int]] = {}
    for name, index in cells:
        found.setdefault(name, []).append(index)
    return found


def _errors(answer: m.WriteTxnMarkersResponse) -> dict[int, Errors]:
    """What was answered of each partition, by producer id; its partitions tell two of one id apart."""
    found: dict[int, Errors] = {}
    for result in answer.markers:
        errors = found.setdefault(result.producer_id, {})
        for topic in result.topics:
            for each in topic.partitions:
                errors[topic.name, each.partition_index] = ErrorCode(each.error_code)
    return found
