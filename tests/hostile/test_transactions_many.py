"""Very many transactions at once: that run out of time together, that are ended in one packet, on very many
partitions, and those that a broker that is killed leaves behind.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from protocol import messages as m
from protocol.errors import ErrorCode as E
from tests.hostile.attacks import request_frame
from tests.hostile.victim import MIB, NORMAL_CLIENT_S, STRANGER_BYTES, Victim
from tests.support.transactions import TxnProducer, await_transactions
from tests.support.waiting import wait_until
from tests.support.wire_client import WireClient

TOPIC, PARTITIONS = "t", 50
WIDE, WIDE_PARTITIONS = "wide", 500
SETTINGS = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "transaction.state.log.num.partitions": "1",  # ids can be chosen so that one partition has them all
}
UNTIL_LATE_MS = 3000
_PRODUCER = struct.Struct(">hqh")  # error, producer id, epoch, after the correlation id and the throttle time

Producer = tuple[str, int, int]
"""Transactional id, producer id, epoch."""


def prepare(victim: Victim) -> None:
    with victim.wire() as wire:
        wire.create_topic(TOPIC, partitions=PARTITIONS)
        await_transactions(wire, "id")


@pytest.fixture(scope="module")
def victim() -> Iterator[Victim]:
    with Victim(SETTINGS) as started:
        prepare(started)
        yield started
        assert started.serves()
        assert not [line for line in started.lines() if "Traceback" in line or " ERROR " in line]


def pipelined(wire: WireClient, requests: list[tuple[m.Message, int]], at_once: int = 500) -> list[bytes]:
    """The answers, without their sizes; so many requests arrive together."""
    answers = []
    for at in range(0, len(requests), at_once):
        some = requests[at : at + at_once]
        wire.write(b"".join(request_frame(request, version) for request, version in some))
        answers += [bytes(wire.read_frame()) for _ in some]
    return answers


def begun(wire: WireClient, name: str, count: int, timeout_ms: int = 60_000) -> list[Producer]:
    """So many producers, each with a transaction open on all partitions of the topic."""
    given = initialized(wire, [f"{name}-{number}" for number in range(count)], timeout_ms)
    assert {error for error, _ in given} == {0}
    producers = [producer for _, producer in given]
    for answer in pipelined(wire, [(adding(each), 1) for each in producers]):
        assert answer.endswith(bytes(2)), answer  # the error of the last partition
    return producers


def initialized(wire: WireClient, ids: list[str], timeout_ms: int = 60_000) -> list[tuple[int, Producer]]:
    """The error of each InitProducerId, and the producer."""
    asked = [
        m.InitProducerIdRequest(
            transactional_id=each, transaction_timeout_ms=timeout_ms, producer_id=-1, producer_epoch=-1
        )
        for each in ids
    ]
    given = []
    for each, answer in zip(ids, pipelined(wire, [(request, 1) for request in asked]), strict=True):
        error, producer_id, epoch = _PRODUCER.unpack_from(answer, 8)
        given.append((error, (each, producer_id, epoch)))
    return given


def adding(producer: Producer) -> m.AddPartitionsToTxnRequest:
    request = m.AddPartitionsToTxnRequest
    return request(
        v3_and_below_transactional_id=producer[0],
        v3_and_below_producer_id=producer[1],
        v3_and_below_producer_epoch=producer[2],
        v3_and_below_topics=[request.AddPartitionsToTxnTopic(name=TOPIC, partitions=list(range(PARTITIONS)))],
    )


def ending(producer: Producer) -> m.EndTxnRequest:
    return m.EndTxnRequest(
        transactional_id=producer[0], producer_id=producer[1], producer_epoch=producer[2], committed=True
    )


def errors_of_ends(answers: list[bytes]) -> list[int]:
    """Of EndTxn 2."""
    return [struct.unpack_from(">h", answer, 8)[0] for answer in answers]


def states(wire: WireClient, producers: list[Producer]) -> set[str]:
    request = m.DescribeTransactionsRequest(transactional_ids=[each[0] for each in producers])
    return {each.transaction_state for each in wire.send(request, 0).transaction_states}


def all_are(state: str, victim: Victim, producers: list[Producer]) -> None:
    with victim.wire() as wire:
        wait_until(lambda: states(wire, producers) == {state}, f"all transactions in state {state}", 120)
        ends = [wire.list_offset(TOPIC, -1, 7, isolation_level=level).offset for level in (0, 1)]
        assert ends[0] == ends[1]  # no transaction is open


def test_a_thousand_that_run_out_of_time_together(victim: Victim) -> None:
    """50,000 markers, and a producer that each partition remembers with each of them."""
    with victim.normal_client() as client, victim.memory() as memory:
        with victim.wire() as wire:
            producers = begun(wire, "late", 1000, UNTIL_LATE_MS)
        all_are("CompleteAbort", victim, producers)
    assert (client.errors, client.worst_s < NORMAL_CLIENT_S) == (0, True), client
    assert memory.peak_growth < STRANGER_BYTES, memory


def test_hundreds_that_are_ended_in_one_packet(victim: Victim) -> None:
    """25,000 markers for 30 KiB of requests."""
    with victim.wire() as wire:
        producers = begun(wire, "ended", 500)
        with victim.normal_client() as client, victim.memory() as memory:
            answers = pipelined(wire, [(ending(each), 2) for each in producers])
            assert set(errors_of_ends(answers)) == {0}
            all_are("CompleteCommit", victim, producers)
    assert (client.errors, client.worst_s < NORMAL_CLIENT_S) == (0, True), client
    assert memory.peak_growth < STRANGER_BYTES, memory


def test_one_on_very_many_partitions(victim: Victim) -> None:
    with victim.wire() as wire:
        wire.create_topic(WIDE, partitions=WIDE_PARTITIONS)
        with victim.normal_client() as client:
            producer = TxnProducer(wire, "wide").init()
            assert producer.add(*((WIDE, index) for index in range(WIDE_PARTITIONS))) == 0
            assert producer.end(commit=True) == 0
            wait_until(
                lambda: states(wire, [("wide", 0, 0)]) == {"CompleteCommit"}, "markers on all partitions"
            )
        for index in range(0, WIDE_PARTITIONS, 97):
            assert wire.list_offset(WIDE, -1, index).offset == 1
    assert (client.errors, client.worst_s < NORMAL_CLIENT_S) == (0, True), client


def test_ends_of_what_is_not_ones_own(victim: Victim) -> None:
    """Again and again, under ids and epochs that were never given: nothing happens, and nothing stays."""
    with victim.wire() as wire:
        [(name, producer_id, epoch)] = begun(wire, "own", 1)
        wrong = {
            (name, producer_id, -1): E.PRODUCER_FENCED,
            (name, producer_id, -(1 << 15)): E.PRODUCER_FENCED,
            (name, producer_id, (1 << 15) - 1): E.PRODUCER_FENCED,
            (name, -1, epoch): E.INVALID_PRODUCER_ID_MAPPING,
            (name, (1 << 63) - 1, epoch): E.INVALID_PRODUCER_ID_MAPPING,
            ("nobody", producer_id, epoch): E.INVALID_PRODUCER_ID_MAPPING,
            ("", producer_id, epoch): E.INVALID_REQUEST,
        }
        with victim.normal_client() as client, victim.memory() as memory:
            answers = pipelined(wire, [(ending(each), 2) for each in wrong] * 1000)
        assert errors_of_ends(answers) == [*wrong.values()] * 1000
        assert states(wire, [(name, 0, 0)]) == {"Ongoing"}
        assert errors_of_ends(pipelined(wire, [(ending((name, producer_id, epoch)), 2)])) == [0]
    assert (client.errors, client.worst_s < NORMAL_CLIENT_S) == (0, True), client
    assert memory.growth < 32 * MIB, memory


def test_what_a_killed_broker_leaves_behind_is_carried_out(tmp_path: Path) -> None:
    """Killed with decisions whose markers may not be written: each transaction ends one way or the other."""
    with Victim(SETTINGS, tmp_path) as victim:
        prepare(victim)
        with victim.wire() as wire:
            producers = begun(wire, "left", 300)
            wire.write(b"".join(request_frame(ending(each), 2) for each in producers))
            assert errors_of_ends([bytes(wire.read_frame())]) == [0]
            victim.broker.kill()
        victim.broker.start()
        with victim.wire() as wire:
            await_transactions(wire, "left-0")
            wait_until(lambda: states(wire, producers[:1]) == {"CompleteCommit"}, "what was answered")
            open_at_most = {"Ongoing", "CompleteCommit"}
            wait_until(lambda: states(wire, producers) <= open_at_most, "what was decided")
            initialized(wire, [each[0] for each in producers])  # aborts those that are open
            over = {"CompleteAbort", "Empty"}
            wait_until(lambda: states(wire, producers) <= over, "the end of all transactions")
            ends = [wire.list_offset(TOPIC, -1, 7, isolation_level=level).offset for level in (0, 1)]
            assert ends[0] == ends[1]
