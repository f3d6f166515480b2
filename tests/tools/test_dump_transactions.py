"""`ottla dump-log` beside Kafka's DumpLogSegments on what transactions leave behind on Apache Kafka."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from confluent_kafka import Producer

from coordinator.placement import partition_for
from ottla.cli.record_decoders import TRANSACTION_RECORDS, TRANSACTION_STATES
from protocol import messages as m
from protocol.records.batch import Record
from tests.support.kafka_process import KafkaProcess
from tests.support.tools import assert_same
from tests.support.transactions import await_markers
from tests.support.wire_client import WireClient
from tests.tools.test_dump_offsets import every_record, written

pytestmark = pytest.mark.kafka

DECODER = "--transaction-log-decoder"
TOPIC, TRANSACTIONAL_ID = "dump-transactions", 'täx "1"'
TRANSACTIONS = 4  # the odd ones are aborted


@pytest.fixture(scope="module")
def broker(apache_kafka: KafkaProcess) -> KafkaProcess:
    with WireClient(apache_kafka.bootstrap_servers) as wire:
        wire.create_topic(TOPIC, 1)
    producer = Producer(
        {"bootstrap.servers": apache_kafka.bootstrap_servers, "transactional.id": TRANSACTIONAL_ID}
    )
    producer.init_transactions(60)
    for number in range(TRANSACTIONS):
        producer.begin_transaction()
        producer.produce(TOPIC, b"%d" % number, key=b"k")
        producer.flush()
        (producer.abort_transaction if number % 2 else producer.commit_transaction)(60)
    await_markers(apache_kafka.bootstrap_servers, TOPIC, 2 * TRANSACTIONS)
    return apache_kafka


def test_records_of_every_version_are_printed_as_kafkas_tool_prints_them(tmp_path: Path) -> None:
    records = every_record(TRANSACTION_RECORDS)
    printed = assert_same("dump-log", "--files", str(written(tmp_path, records)), DECODER)
    assert printed.count("\n| offset: ") == len(records)
    assert "skipping" not in printed


def test_every_state_has_its_name(tmp_path: Path) -> None:
    key = b"\0\0" + m.TransactionLogKey(transactional_id="t").encode(0)
    values = [m.TransactionLogValue(transaction_status=number) for number in range(len(TRANSACTION_STATES))]
    records = [Record(0, 1, key, b"\0\1" + value.encode(1), ()) for value in values]
    printed = assert_same("dump-log", "--files", str(written(tmp_path, records)), DECODER)
    assert [f'"transactionStatus":"{name}"' in printed for name in TRANSACTION_STATES] == [True] * 8


def test_a_state_that_nobody_knows(tmp_path: Path) -> None:
    key = b"\0\0" + m.TransactionLogKey(transactional_id="t").encode(0)
    value = b"\0\1" + m.TransactionLogValue(transaction_status=8).encode(1)
    log = written(tmp_path, [Record(0, 1, key, value, ())])
    assert '"transactionStatus":"8"' in assert_same("dump-log", "--files", str(log), DECODER)


def test_the_log_of_transactions(broker: KafkaProcess, tmp_path: Path) -> None:
    folder = broker.log_dir / f"__transaction_state-{partition_for(TRANSACTIONAL_ID, 50)}"
    copy = shutil.copy(folder / f"{0:020}.log", tmp_path)
    printed = assert_same("dump-log", "--files", str(copy), DECODER)
    assert '"data":{"transactionalId":"täx \\"1\\""}}' in printed
    assert "skipping" not in printed


def test_the_index_of_aborted_ones_and_their_markers(broker: KafkaProcess, tmp_path: Path) -> None:
    copy = shutil.copytree(broker.log_dir / f"{TOPIC}-0", tmp_path / "copy")
    log, index = copy / f"{0:020}.log", copy / f"{0:020}.txnindex"
    printed = assert_same("dump-log", "--files", f"{log},{index}", "--print-data-log")
    assert printed.count("endTxnMarker: ABORT") == printed.count("endTxnMarker: COMMIT") == 2
    aborted = [line for line in printed.splitlines() if line.startswith("version: 0 producerId: ")]
    assert [line.partition("firstOffset: ")[2] for line in aborted] == [
        "2 lastOffset: 3 lastStableOffset: 4",
        "6 lastOffset: 7 lastStableOffset: 8",
    ]
