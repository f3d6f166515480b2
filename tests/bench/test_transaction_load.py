"""The clients of the transactions part, against a real broker."""

from __future__ import annotations

from pathlib import Path

from bench import job, transactions
from bench.offsets import end_offsets
from bench.starting import second_life
from ottla.client import KafkaClient
from protocol import messages as m
from tests.support.ottla_process import OttlaProcess

TOPIC = "transactions-of-the-load"


def test_transactions_are_counted_and_open_ones_hold_back_only_what_is_theirs(tmp_path: Path) -> None:
    with OttlaProcess(directory=tmp_path) as ottla:
        with KafkaClient(f"{ottla.host}:{ottla.port}") as client:
            client.create_topic(TOPIC, 3)
        where = {"host": ottla.host, "port": ottla.port, "topic": TOPIC}
        done = job.run(
            "bench.transaction_load:transact", **where, producers=2, records=10, seconds=1.0, prefix="p"
        )
        assert done["transactions"] >= 2  # at least one of each producer, beside one that warms up
        assert 0 < done["p50"] <= done["p99"]
        committed = end_offsets(ottla.host, ottla.port, TOPIC, 3)
        assert sum(committed) == (done["transactions"] + 2) * (10 + 3)  # records and markers
        job.run("bench.transaction_load:leave_open", **where, producers=2, prefix="o")
        assert end_offsets(ottla.host, ottla.port, TOPIC, 3) == [committed[0] + 2, *committed[1:]]
        with KafkaClient(f"{ottla.host}:{ottla.port}") as client:
            answer = client.call(m.ListTransactionsRequest(state_filters=["Ongoing"]), version=1)
        assert sorted(each.transactional_id for each in answer.transaction_states) == ["o-0", "o-1"]
        read = job.run(
            "bench.transaction_load:read_committed",
            **where,
            offsets=1,
            connections=2,
            depth=2,
            seconds=1.0,
        )
        assert read["answers"] > 0


def test_a_broker_comes_back_with_all_its_transactional_ids() -> None:
    seconds, stall_ms = second_life(
        "ottla", lambda broker: transactions.register(broker, 300), transactions.look, 120
    )
    assert seconds > 0
    assert stall_ms is not None
