"""Batches of transactions: whom the coordinator is asked about, and what producers hear of the answer."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from broker.handlers.produce_answers import Partition
from broker.handlers.produce_request import Entry
from broker.handlers.produce_transactions import admit, told
from broker.transaction.verifier import Question
from protocol.errors import ErrorCode as E
from protocol.records.batch import Record
from protocol.records.builder import build_batch
from runtime.os_files import OsFileSystem
from storage.producers.entry import ProducerEntry
from storage.producers.state import ProducerState


@pytest.mark.parametrize(
    ("error", "add", "abortable", "expected"),
    [
        (E.PRODUCER_FENCED, False, True, E.INVALID_PRODUCER_EPOCH),
        (E.INVALID_PRODUCER_ID_MAPPING, False, True, E.INVALID_PRODUCER_ID_MAPPING),
        (E.TRANSACTION_ABORTABLE, False, True, E.TRANSACTION_ABORTABLE),
        (E.TRANSACTION_ABORTABLE, False, False, E.INVALID_TXN_STATE),
        (E.INVALID_TXN_STATE, False, True, E.INVALID_TXN_STATE),
        (E.NETWORK_EXCEPTION, True, True, E.NOT_ENOUGH_REPLICAS),
        (E.COORDINATOR_LOAD_IN_PROGRESS, False, True, E.NOT_ENOUGH_REPLICAS),
        (E.COORDINATOR_NOT_AVAILABLE, False, True, E.NOT_ENOUGH_REPLICAS),
        (E.NOT_COORDINATOR, False, True, E.NOT_ENOUGH_REPLICAS),
        (E.UNKNOWN_TOPIC_OR_PARTITION, True, True, E.NOT_ENOUGH_REPLICAS),
        (E.OPERATION_NOT_ATTEMPTED, True, True, E.NOT_ENOUGH_REPLICAS),
        (E.CONCURRENT_TRANSACTIONS, False, True, E.NOT_ENOUGH_REPLICAS),
        (E.CONCURRENT_TRANSACTIONS, True, True, E.CONCURRENT_TRANSACTIONS),
    ],
)
def test_what_a_producer_hears(error: E, add: bool, abortable: bool, expected: E) -> None:
    assert told(error, add=add, abortable=abortable)[0] is expected


class Asked:
    """A verifier that keeps what it was asked."""

    def __init__(self) -> None:
        self.questions: list[tuple[Question, Callable[[dict[tuple[str, int], E]], None]]] = []

    def ask(self, question: Question, done: Callable[[dict[tuple[str, int], E]], None]) -> None:
        self.questions.append((question, done))


class Stage:
    """Entries of a request, and what came of them."""

    def __init__(self, *, verify: bool = True) -> None:
        self.asked = Asked()
        self.admitted: list[list[Entry]] = []
        self.context: Any = SimpleNamespace(
            env=SimpleNamespace(clock=SimpleNamespace(now_ms=lambda: 0)),
            logs=SimpleNamespace(producer_settings=SimpleNamespace(verify=verify)),
            transactions=SimpleNamespace(verifier=self.asked),
        )

    def entry(self, index: int, producer_id: int = 5, *, transactional: bool = True) -> Entry:
        producers = ProducerState(OsFileSystem(), "nowhere")
        replica: Any = SimpleNamespace(topic="a", index=index, log=SimpleNamespace(producers=producers))
        batch = build_batch(
            [Record(0, 1, None, b"v")],
            producer_id=producer_id,
            producer_epoch=2,
            base_sequence=0,
            transactional=transactional,
        )
        return Entry(replica, Partition(index=index), batch, transactional)

    def admit(self, *entries: Entry, version: int = 9) -> None:
        admit(self.context, "t", version, entries, self.admitted.append)


def test_all_partitions_of_a_request_are_one_question() -> None:
    stage = Stage()
    entries = [stage.entry(0), stage.entry(1), stage.entry(2, -1, transactional=False)]
    stage.admit(*entries)
    [(question, done)] = stage.asked.questions
    assert question == ("t", (5, 2), [("a", 0), ("a", 1)], False)
    assert stage.admitted == []
    done({("a", 0): E.NONE, ("a", 1): E.TRANSACTION_ABORTABLE})
    assert stage.admitted == [[entries[0], entries[2]]]
    assert entries[1].answer.error_code == E.INVALID_TXN_STATE
    assert entries[0].guard is not None
    assert entries[2].guard is None


def test_from_version_12_on_the_question_adds() -> None:
    stage = Stage(verify=False)
    stage.admit(stage.entry(0), version=12)
    assert stage.asked.questions[0][0].add


def test_without_verification_nobody_is_asked() -> None:
    stage = Stage(verify=False)
    entry = stage.entry(0)
    stage.admit(entry)
    assert (stage.asked.questions, stage.admitted) == ([], [[entry]])


def test_while_the_transaction_is_open_here_nobody_is_asked() -> None:
    stage = Stage()
    entry = stage.entry(0)
    known = ProducerEntry(5, 2, current_txn_first_offset=3)
    entry.replica.log.producers.entries[5] = known
    stage.admit(entry)
    assert (stage.asked.questions, stage.admitted) == ([], [[entry]])


def test_two_producers_in_one_request_are_refused_as_a_whole() -> None:
    stage = Stage()
    entries = [stage.entry(0, 5), stage.entry(1, 6)]
    stage.admit(*entries)
    assert stage.admitted == [[]]
    assert [each.answer.error_code for each in entries] == [E.INVALID_PRODUCER_ID_MAPPING] * 2


def test_what_is_too_short_for_a_batch_is_left_to_the_check() -> None:
    stage = Stage()
    entry = stage.entry(0)
    entry.records = entry.records[:40]
    stage.admit(entry)
    assert stage.admitted == [[entry]]
