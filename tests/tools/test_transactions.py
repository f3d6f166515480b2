"""`ottla transactions` beside Kafka's TransactionsCommand, on Ottla and on Apache Kafka."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

import pytest

from tests.support.broker_settings import await_setting
from tests.support.tools import kafka_tool, ottla_tool
from tests.support.transactions import TxnProducer, committed_values
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

Option = tuple[str, str]
TIMEOUT_MS = 600_000  # of the open transactions: no tool is so slow
_numbers = itertools.count()


@pytest.fixture
def at(either_broker) -> Option:
    return "--bootstrap-server", either_broker.bootstrap_servers


@pytest.fixture
def wire(either_broker) -> Iterator[WireClient]:
    with WireClient(either_broker.bootstrap_servers) as client:
        yield client


@pytest.fixture
def producer(wire: WireClient) -> TxnProducer:
    """One with an open transaction on a topic of its name, which has begun at offset 1."""
    name = f"transactions-tool-{next(_numbers)}"
    wire.create_topic(name)
    wire.produce_values(name, b"before")
    made = TxnProducer(wire, name, TIMEOUT_MS).init()
    assert made.add((name, 0)) == 0
    assert made.produce(name, b"a") == 0
    return made


def same(at: Option, *arguments: str) -> tuple[str, str, int]:
    """What both tools print and end with, one after the other; the time goes on in between."""
    seen = []
    for tool in (ottla_tool, kafka_tool):
        done = tool("transactions", *at, *arguments)
        error = done.stderr.strip().removesuffix(" Enable debug logging for additional detail.")
        seen.append((steady(done.stdout), error, done.returncode))
    assert seen[0] == seen[1]
    return seen[0]


def steady(printed: str) -> str:
    """Rows in an order of their own, and a duration that is not the tools'."""
    head, *rows = printed.splitlines() or [""]
    duration = head.split("\t").index("TransactionDurationMs") if "TransactionDurationMs" in head else -1
    cut = []
    for row in rows:
        cells = row.split("\t")
        if duration >= 0:
            cells[duration] = "N"
        cut.append("\t".join(cells))
    return "\n".join([re.sub(r"TransactionDurationMs\s*", "TransactionDurationMs", head), *sorted(cut)])


def cells(printed: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("\t")][:-1] for line in printed.splitlines()]


def test_list(at: Option, producer: TxnProducer) -> None:
    printed, _, code = same(at, "list", "--transactional-id-pattern", f"{producer.id}$")
    assert code == 0
    titles, row = cells(printed)
    assert titles == ["TransactionalId", "Coordinator", "ProducerId", "TransactionState"]
    assert row == [producer.id, row[1], str(producer.producer_id), "Ongoing"]
    printed, _, _ = same(at, "list", "--duration-filter", "100000000")
    assert producer.id not in printed


def test_describe(at: Option, producer: TxnProducer) -> None:
    printed, _, code = same(at, "describe", "--transactional-id", producer.id)
    assert code == 0
    _, row = cells(printed)
    numbers = [str(each) for each in (producer.producer_id, producer.epoch, TIMEOUT_MS)]
    assert row[1:6] == [producer.id, *numbers[:2], "Ongoing", numbers[2]]
    assert row[-1] == f"{producer.id}-0"
    _, error, code = same(at, "describe", "--transactional-id", "not-known")
    assert "not-known" in error
    assert code == 1


def test_describe_producers(at: Option, producer: TxnProducer) -> None:
    where = ("--topic", producer.id, "--partition", "0")
    printed, _, code = same(at, "describe-producers", *where)
    assert code == 0
    _, row = cells(printed)
    assert row == [str(producer.producer_id), "0", "-1", "0", row[4], "1"]
    assert producer.end(commit=True) == 0
    producer.await_state("CompleteCommit")
    printed, _, _ = same(at, "describe-producers", *where)
    assert cells(printed)[1][-1] == "None"


@pytest.mark.parametrize("tool", [ottla_tool, kafka_tool])
def test_a_transaction_that_hangs_is_found_and_aborted(
    wire: WireClient, at: Option, producer: TxnProducer, tool
) -> None:
    """Its coordinator has ended it, and then comes a batch that it does not know of."""
    where = ("--topic", producer.id, "--partition", "0")
    assert tool("transactions", *at, "find-hanging", *where).stdout.count("\n") == 1
    verify = ("configs", *at, "--entity-type", "brokers", "--entity-default", "--alter")
    key = "transaction.partition.verification.enable"
    assert ottla_tool(*verify, "--add-config", f"{key}=false").returncode == 0
    try:
        await_setting(wire, key, "false")
        assert producer.end(commit=False) == 0
        producer.await_state("CompleteAbort")
        assert producer.produce(producer.id, b"late") == 0
    finally:
        assert ottla_tool(*verify, "--delete-config", key).returncode == 0
    printed, _, code = same(at, "find-hanging", *where, "--max-transaction-timeout", "1")
    assert code == 0
    [_, row] = cells(printed)
    assert row[:6] == [producer.id, "0", str(producer.producer_id), "0", "0", "3"]
    same(at, "abort", *where, "--start-offset", "2")  # there is none
    done = tool("transactions", *at, "abort", *where, "--start-offset", "3")
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    assert tool("transactions", *at, "find-hanging", *where).stdout.count("\n") == 1
    assert committed_values(wire, producer.id) == [b"before"]


@pytest.mark.parametrize("tool", [ottla_tool, kafka_tool])
def test_a_transaction_is_ended_by_force(at: Option, producer: TxnProducer, tool) -> None:
    done = tool("transactions", *at, "forceTerminateTransaction", "--transactionalId", producer.id)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    ends = ("Empty",) if tool is ottla_tool else ("Empty", "CompleteAbort")
    wait_until(lambda: producer.state() in ends, f"one of the states {ends}")
    assert producer.end(commit=True) == 90


@pytest.mark.parametrize(
    "arguments",
    [
        ("find-hanging",),
        ("find-hanging", "--broker-id", "1", "--partition", "0"),
        ("abort", "--topic", "t", "--partition", "0"),
        ("abort", "--topic", "t", "--partition", "0", "--producer-id", "1"),
        ("abort", "--topic", "t", "--partition", "0", "--producer-id", "1", "--producer-epoch", "1"),
    ],
)
def test_what_is_asked_wrongly(at: Option, arguments: tuple[str, ...]) -> None:
    _, error, code = same(at, *arguments)
    assert error
    assert code == 1
