"""Transactions in every state whose coordinator moves, and what has to become of them.

    with MovedTransactions(cluster) as moved:
        moved.bring_about()             # one transaction in each state
        ...another broker becomes the coordinator...
        moved.await_coordinator(2)
        moved.check_states()            # each is there as it was
        moved.finish()                  # decisions are carried out, the open one goes on and ends
        moved.check_contents()

One real client for each state, the same in all rounds. A transaction stays prepared, and does not become
complete, while some of its partitions take no marker: those of `HELD`, whose third replica is on no broker,
as soon as they ask for three in sync.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from protocol import messages as m
from protocol.errors import ErrorCode
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from tests.support.mixed_cluster import KAFKA, OFFSETS, MixedCluster
from tests.support.transactions import NOW, TxnProducer, committed_values
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

STATE = "__transaction_state"
TOPIC, HELD = "moved", "held"
ABSENT = 9
REPLICAS = {
    TOPIC: [[1, KAFKA, 2], [2, 1, KAFKA], [KAFKA, 1, 2]],
    HELD: [[1, KAFKA, ABSENT], [KAFKA, 1, ABSENT]],
}
STATES = {
    "open": "Ongoing",
    "committing": "PrepareCommit",
    "aborting": "PrepareAbort",
    "committed": "CompleteCommit",
    "aborted": "CompleteAbort",
}
PREPARED = ("committing", "aborting")
MIN_ISR, HELD_BACK, LET_GO = "min.insync.replicas", "3", "1"
GROUP = "moved-group"
TIMEOUT_S = 60
ABORTED = b"aborted"  # a value that is not looked at in the end
Cell = tuple[str, int]


@dataclass
class Fate:
    """Of one transaction, from its decision on."""

    commits: bool | None = None


class MovedTransactions:
    """See the module. The coordinator is Kafka's broker at first, the group's one of ours."""

    def __init__(self, cluster: MixedCluster) -> None:
        self._cluster = cluster
        self._admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 0})
        self._create()
        self._producers = {name: self._producer(name) for name in STATES}
        self._consumer = Consumer(
            {"bootstrap.servers": cluster.bootstrap_servers, "group.id": GROUP, "log_level": 0}
        )
        self._sent: list[tuple[Cell, bytes, Fate]] = []
        self._now: dict[str, Fate] = {}
        self._told: dict[str, Any] = {}
        self._round = 0

    def __enter__(self) -> MovedTransactions:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()

    def _create(self) -> None:
        self._cluster.create_topic(STATE, [[KAFKA, 1, 2]], cleanup_policy="compact")
        self._cluster.create_topic(OFFSETS, [[2, KAFKA, 1]], cleanup_policy="compact")
        self._cluster.create_topic(TOPIC, REPLICAS[TOPIC])
        self._create_held()

    def _create_held(self) -> None:
        """As the tools of old did it, in ZooKeeper: a request would be refused."""
        partitions = {str(index): replicas for index, replicas in enumerate(REPLICAS[HELD])}
        node = {"version": 2, "partitions": partitions, "adding_replicas": {}, "removing_replicas": {}}
        with self._cluster.zookeeper() as zookeeper:
            zookeeper.create(f"/brokers/topics/{HELD}", json.dumps(node).encode())
        for index, replicas in enumerate(REPLICAS[HELD]):
            wait_until(
                lambda index=index: self._cluster.partitions(HELD)[index:], f"{HELD}-{index} to be there"
            )
            wait_until(
                lambda index=index, replicas=replicas: self._cluster.leader_id(HELD, index) == replicas[0],
                f"{HELD}-{index} to have its leader",
            )
        self._hold(LET_GO)

    def _producer(self, name: str) -> Producer:
        producer = Producer(
            {
                "bootstrap.servers": self._cluster.bootstrap_servers,
                "transactional.id": name,
                "linger.ms": 1,
                "socket.timeout.ms": 5_000,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        producer.init_transactions(TIMEOUT_S)
        return producer

    # --- before the coordinator moves -----------------------------------------------------------------------

    def bring_about(self) -> None:
        """One transaction in each state, on partitions led by every broker."""
        self._round += 1
        for name, producer in self._producers.items():
            producer.begin_transaction()
            self._now[name] = Fate()
            cells = [(TOPIC, index) for index in range(3)]
            self._write(name, cells + ([(HELD, 0), (HELD, 1)] if name in PREPARED else []))
        self._send_offsets()
        self._hold(HELD_BACK)
        for name in STATES:
            if name != "open":
                self._end(name, commit=name.startswith("commit"))
        self._await_states()
        self._told = self._describe()

    def _write(self, name: str, cells: list[Cell]) -> None:
        for topic, index in cells:
            value = b"%d of %s in round %d" % (len(self._sent), name.encode(), self._round)
            self._producers[name].produce(topic, value, partition=index)
            self._sent.append(((topic, index), value, self._now[name]))
        assert self._producers[name].flush(TIMEOUT_S) == 0

    def _send_offsets(self) -> None:
        self._producers["open"].send_offsets_to_transaction(
            [TopicPartition(TOPIC, 0, self._round)], self._consumer.consumer_group_metadata(), TIMEOUT_S
        )

    def _end(self, name: str, *, commit: bool) -> None:
        producer = self._producers[name]
        (producer.commit_transaction if commit else producer.abort_transaction)(TIMEOUT_S)
        self._now[name].commits = commit

    def _hold(self, replicas: str) -> None:
        """How many replicas a marker needs on the partitions held back."""
        entry = ConfigEntry(MIN_ISR, replicas, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, HELD, incremental_configs=[entry])
        [changed] = self._admin.incremental_alter_configs([resource]).values()
        changed.result(TIMEOUT_S)
        for index in range(len(REPLICAS[HELD])):
            wait_until(
                lambda index=index: self._takes_records(index) == (replicas == LET_GO),
                f"{HELD}-{index} to need {replicas}",
            )

    def _takes_records(self, index: int) -> bool | None:
        """Whether a leader has enough in sync for it, None where it does not say. What Kafka's tells of its
        settings is what ZooKeeper has, whether it counts yet or not.
        """
        batch = build_batch([Record(0, NOW, None, ABORTED, ())])
        try:
            with WireClient(self._cluster.leader(HELD, index).bootstrap_servers) as client:
                error = client.produce(HELD, batch, index).error_code
        except OSError:  # it has just died
            return None
        return {ErrorCode.NONE: True, ErrorCode.NOT_ENOUGH_REPLICAS: False}.get(error)

    def _await_states(self) -> None:
        """Each has its state, and of what is decided the partitions are told that have no marker yet."""

        def as_wanted() -> bool:
            found = self._describe()
            states = {name: told.transaction_state for name, told in found.items()}
            return states == STATES and all(places(found[name]) == [(HELD, [0, 1])] for name in PREPARED)

        wait_until(as_wanted, f"a transaction in each state, {STATES}", TIMEOUT_S)

    def _describe(self) -> dict[str, Any]:
        """What the coordinator of now tells of each; nothing until it has loaded them."""
        try:
            with WireClient(self._cluster.leader(STATE).bootstrap_servers) as client:
                request = m.DescribeTransactionsRequest(transactional_ids=list(STATES))
                found = client.send(request, 0).transaction_states
        except OSError:  # it has just died
            return {}
        return (
            {} if any(each.error_code for each in found) else {each.transactional_id: each for each in found}
        )

    # --- after it -------------------------------------------------------------------------------------------

    def await_coordinator(self, broker_id: int) -> None:
        """Wait until this broker has loaded them all."""
        wait_until(
            lambda: self._cluster.leader_id(STATE) == broker_id, f"{broker_id} to lead {STATE}", TIMEOUT_S
        )
        wait_until(self._describe, f"{broker_id} to have the transactions", TIMEOUT_S)

    def check_states(self) -> None:
        """What the new coordinator knows is what the old one knew."""
        self._await_states()
        found = self._describe()
        assert {name: known(told) for name, told in found.items()} == {
            name: known(told) for name, told in self._told.items()
        }

    def finish(self) -> None:
        """Decisions are carried out; the open transaction goes on at its new coordinator and ends."""
        self._hold(LET_GO)
        self._write("open", [(HELD, 0), (TOPIC, 2)])
        self._end("open", commit=self._round % 2 == 0)
        wait_until(self._all_complete, "all transactions to be complete", TIMEOUT_S)
        self._check_offset()

    def _all_complete(self) -> bool:
        states = {name: told.transaction_state for name, told in self._describe().items()}
        return bool(states) and all(
            states[name] == ("CompleteCommit" if fate.commits else "CompleteAbort")
            for name, fate in self._now.items()
        )

    def _check_offset(self) -> None:
        """The group has the offset of the last transaction that was committed."""
        wanted = self._round // 2 * 2 or -1001
        [found] = self._consumer.committed([TopicPartition(TOPIC, 0)], TIMEOUT_S)
        assert found.offset == wanted

    def check_contents(self) -> None:
        """Readers of committed records see those of what was committed, others everything, in order."""
        self._cluster.await_full_isr(TOPIC)  # who came back is told who leads
        for cell in [
            (topic, index) for topic, replicas in REPLICAS.items() for index in range(len(replicas))
        ]:
            sent = [(value, fate.commits) for at, value, fate in self._sent if at == cell]
            with WireClient(self._cluster.leader(*cell).bootstrap_servers) as client:
                for isolation in (0, 1):
                    found = committed_values(client, cell[0], isolation, cell[1])
                    expected = [value for value, commits in sent if commits or not isolation]
                    assert [value for value in found if value != ABORTED] == expected


def known(told: Any) -> tuple[object, ...]:
    """What a coordinator tells of a transaction and its successor has to know as well."""
    return (
        told.transaction_state,
        told.producer_id,
        told.producer_epoch,
        told.transaction_timeout_ms,
        told.transaction_start_time_ms,
    )


def places(told: Any) -> list[tuple[str, list[int]]]:
    return [(topic.topic, sorted(topic.partitions)) for topic in told.topics]


def check_verification(cluster: MixedCluster, name: str) -> int:
    """Every leader asks the coordinator about a batch, whose broker ever that is; the producer's id.

    A partition that was never added is refused by each, one that was added is written to.
    """
    with WireClient(cluster.leader(STATE).bootstrap_servers) as coordinator:
        producer = TxnProducer(coordinator, name).init()
        for index in range(3):
            with WireClient(cluster.leader(TOPIC, index).bootstrap_servers) as leader:
                batch = producer.batch((TOPIC, index), b"never added")
                answer = leader.produce(TOPIC, batch, index, version=9, transactional_id=name)
                assert answer.error_code == ErrorCode.INVALID_TXN_STATE
                answer = leader.produce(TOPIC, batch, index, version=11, transactional_id=name)
                assert answer.error_code == ErrorCode.TRANSACTION_ABORTABLE
        assert producer.add((TOPIC, 0), (TOPIC, 1), (TOPIC, 2)) == ErrorCode.NONE
        for index in range(3):
            with WireClient(cluster.leader(TOPIC, index).bootstrap_servers) as leader:
                answer = leader.produce(
                    TOPIC, producer.batch((TOPIC, index), ABORTED), index, transactional_id=name
                )
                assert answer.error_code == ErrorCode.NONE
        assert producer.end(commit=False) == ErrorCode.NONE
        producer.await_state("CompleteAbort")
    return producer.producer_id
