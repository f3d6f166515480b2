"""A cluster on bad days with transactional producers: what readers of committed records see is what was
committed, whole and once; every transaction ends; offsets that a transaction committed are there with it.

Beside the faults of other runs the coordinator of a transaction, that of its group or the leader of its data
is hit in the very moments in which something is asked of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coordinator.placement import partition_for
from coordinator.transaction.shard import TransactionShard
from coordinator.transaction.state import AT_REST
from tests.simulation.cluster import QuietCluster
from tests.simulation.committed_reader import CommittedReader
from tests.simulation.faults import Faults, Kind
from tests.simulation.history import TopicPartition
from tests.simulation.inside import context_of, replicas_on
from tests.simulation.ledger import Ledger
from tests.simulation.machine import BrokerMachine
from tests.simulation.reader import Reader
from tests.simulation.scenario import PLAIN, TXN
from tests.simulation.txn_writer import TransactionalWriter
from tests.simulation.world import MS_US

IDS, OFFSETS = "__transaction_state", "__consumer_offsets"
COORDINATORS = 3  # partitions of either topic
HIT, HIT_WITHIN_US = 0.03, 60 * MS_US


class TransactionalCluster(QuietCluster):
    """See the module."""

    topics = (PLAIN, TXN)

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.ledger = Ledger(self.world.fail)
        self.ledger.on_step = self._step
        self._own = [partition for partition in self.partitions if partition[0] == TXN]
        for partition in self._own:
            self.history.of(partition).has_markers = True
        self._writers: list[TransactionalWriter] = []
        self._hits = self.world.chance("hits")
        self._faults: Faults | None = None

    def drawn_settings(self) -> dict[str, str]:
        return {
            **super().drawn_settings(),
            "transaction.state.log.num.partitions": str(COORDINATORS),
            "transaction.state.log.replication.factor": str(self.brokers),
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "300",
        }

    def faults(self) -> Faults:
        self._faults = super().faults()
        return self._faults

    def kinds(self, faults: Faults) -> list[Kind]:
        kinds = [kind for kind in super().kinds(faults) if kind != faults.jump_clock]
        return [*kinds, faults.long_pause, faults.expire, faults.expire_all, faults.lose_metadata]

    def begin_more(self) -> None:
        chance = self.chance
        sources = [self._own[0], (PLAIN, 0)]
        for number in range(1, chance.randint(3, 5)):
            writer = self._client(
                TransactionalWriter,
                f"w{number}",
                ledger=self.ledger,
                partitions=self._own,
                sources=sources,
                version=chance.choice((1, 2)),
                timeout_ms=chance.choice((700, 2_000)),
            )
            self._writers.append(writer)
            self._begin(writer)
        self._begin(self._committed("r1"))

    def _committed(self, name: str, *, keep: bool = False) -> CommittedReader:
        reader: CommittedReader = self._client(
            CommittedReader, name, ledger=self.ledger, partitions=self._own, keep=keep
        )
        return reader

    # -- faults in the moment

    def _step(self, producer: str, step: str) -> None:
        """A producer is about to ask something of a coordinator, or of a leader."""
        if self.stopping or self._faults is None or self._hits.random() >= HIT:
            return
        topic = self._hits.choice((IDS, IDS, OFFSETS, TXN))
        count = len(self._own) if topic == TXN else COORDINATORS
        state = self.tree.state(topic, partition_for(producer, count))
        if state is not None and state.leader >= 0:
            machine = self.machines[state.leader - 1]
            self.world.after(self._hits.randint(0, HIT_WITHIN_US), self._hit, machine, step)

    def _hit(self, machine: BrokerMachine, step: str) -> None:
        faults = self._faults
        if faults is None or self.stopping or machine.process is None or machine.process.loop.dead:
            return
        self.world.trace.mark(f"hit at {step}")
        kinds = (faults.kill, faults.kill, faults.pause, faults.expire, faults.stop, faults.cut_off)
        self._hits.choice(kinds)(machine)

    # -- the end

    def unsettled(self) -> list[str]:
        return super().unsettled() or [*self._unfinished(), *self._unstable()]

    def _unfinished(self) -> Iterator[str]:
        """Transactions that are open, or whose end is not written."""
        for machine in self.machines:
            context = context_of(machine)
            manager = None if context is None else context.transactions.coordinator._manager
            for partition in () if manager is None else manager.runtime.active_partitions():
                shard: TransactionShard = manager.runtime.shard(partition)
                for transactional_id in shard.ids():
                    txn = shard.get(transactional_id)
                    if txn is not None and txn.state not in AT_REST:
                        yield f"{transactional_id} on {machine.name} is {txn.state.name}"

    def _unstable(self) -> Iterator[str]:
        """Partitions on which readers of committed records do not get to the end."""
        for machine in self.machines:
            for replica in replicas_on(machine):
                stable, mark = replica.log.last_stable_offset, replica.log.high_watermark
                if stable != mark:
                    yield f"{replica} on {machine.name} is stable to {stable} of {mark}"

    async def _verify(self) -> None:
        reader = self._committed("committed", keep=True)
        done = reader.env.loop.create_task(reader.read_to_end(), name="committed")
        done.add_done_callback(lambda _: self._ask_groups(reader, self._writers))

    def _ask_groups(self, reader: CommittedReader, writers: Sequence[TransactionalWriter]) -> None:
        """What the group of each producer has committed, and then the comparison with the ledger."""
        offsets: dict[str, dict[TopicPartition, int]] = {}

        async def ask(writer: TransactionalWriter) -> None:
            offsets[writer.name] = await writer.committed_offsets()
            writer.close()
            self.world.after(0, next_one)

        def next_one() -> None:
            left = [writer for writer in writers if writer.name not in offsets]
            if left:
                left[0].env.loop.create_task(ask(left[0]), name="look")
                return
            self.ledger.check_end(reader.rows, offsets)
            self._check_others(reader)
            self._spawn(super(TransactionalCluster, self)._verify())

        next_one()

    def _check_others(self, reader: Reader) -> None:
        """What was acknowledged without a transaction is seen, too."""
        for partition in self._own:
            seen = dict(reader.rows[partition])
            for offset, value in self.history.of(partition).value_at.items():
                if not self.ledger.is_transactional(value) and seen.get(offset) != value:
                    self.world.fail(f"{partition}@{offset}: readers of committed records do not see it")
