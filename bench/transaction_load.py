"""The clients of the transactions part. Functions without an underscore in front run as processes."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from bench import wire
from bench.driver import Ring, call, connect, drive, receive_answer
from protocol import messages as m
from protocol.errors import ErrorCode

if TYPE_CHECKING:
    from confluent_kafka import Producer

TIMEOUT_SECONDS = 60
OPEN_MS = 600_000  # how long a transaction may stay open
FEW = 3  # partitions of a transaction
RECORD = b"0123456789abcdef" * 6 + b"0123"
INIT_VERSION = 4
AT_ONCE = 100  # requests of a connection under way
AGAIN = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
)


def transact(
    host: str, port: int, topic: str, producers: int, records: int, seconds: float, prefix: str
) -> dict[str, float]:
    """librdkafka: transactions of so many records on three partitions, one after another from each producer.

    How many were committed in how many seconds, and p50 and p99 in ms from begin_transaction to the return of
    commit_transaction.
    """
    running = [_producer(host, port, f"{prefix}-{each}") for each in range(producers)]
    for producer in running:
        producer.init_transactions(TIMEOUT_SECONDS)
        _transaction(producer, topic, records)  # connections, metadata
    took: list[float] = []
    problems: list[BaseException] = []
    begin = time.perf_counter()

    def loop(producer: Producer) -> None:
        try:
            while True:  # once at least, whenever the thread has come to begin
                took.append(_transaction(producer, topic, records))
                if time.perf_counter() >= begin + seconds:
                    break
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=loop, args=(producer,)) for producer in running]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise RuntimeError(str(problems[0]))
    passed = time.perf_counter() - begin
    took.sort()
    count = len(took)
    return {
        "transactions": count,
        "seconds": passed,
        "p50": took[count // 2] * 1e3,
        "p99": took[min(count - 1, count * 99 // 100)] * 1e3,
    }


def leave_open(host: str, port: int, topic: str, producers: int, prefix: str) -> dict[str, int]:
    """Each producer writes one record in a transaction that it does not end."""
    for each in range(producers):
        producer = _producer(host, port, f"{prefix}-{each}")
        producer.init_transactions(TIMEOUT_SECONDS)
        producer.begin_transaction()
        producer.produce(topic, RECORD, partition=0)
        if producer.flush(TIMEOUT_SECONDS):
            raise RuntimeError("a record of an open transaction was not acknowledged")
    return {"open": producers}


def read_committed(
    host: str, port: int, topic: str, offsets: int, connections: int, depth: int, seconds: float
) -> dict[str, float]:
    """Fetches of one batch each below the last stable offset, as fast as they are answered."""
    frames = [wire.fetch_frame(topic, 0, k * 7 % offsets, 1, isolation_level=1) for k in range(offsets)]
    rings = [Ring([*frames[i:], *frames[:i]], depth) for i in range(connections)]
    totals = drive((host, port), rings, depth, seconds, _check_fetched)
    return {"answers": totals.answers, "seconds": totals.seconds}


def register(host: str, port: int, prefix: str, count: int, connections: int) -> dict[str, int]:
    """Have the coordinator know so many transactional ids: the prefix and a number from 0 on."""
    left = [f"{prefix}{each}" for each in range(count)]
    limit = time.monotonic() + TIMEOUT_SECONDS * 5
    sockets = [connect(host, port) for _ in range(connections)]
    while left:
        if time.monotonic() > limit:
            raise RuntimeError(f"{len(left)} transactional ids were not taken")
        _find_coordinator(sockets[0], left[0])
        refused: list[str] = []
        for at in range(0, len(left), AT_ONCE * connections):
            refused += _register(sockets, left[at : at + AT_ONCE * connections])
        left = refused
    for each in sockets:
        each.close()
    return {"ids": count}


def _register(sockets: list[Any], ids: list[str]) -> list[str]:
    """Those of them that are to be asked for again."""
    for at, transactional_id in enumerate(ids):
        request = m.InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=OPEN_MS,
            producer_id=-1,
            producer_epoch=-1,
        )
        sockets[at % len(sockets)].sendall(wire.framed(request, INIT_VERSION))
    refused = []
    for at, transactional_id in enumerate(ids):
        answer = receive_answer(sockets[at % len(sockets)])
        error = wire.answered(m.InitProducerIdResponse, INIT_VERSION, answer).error_code
        if error in AGAIN:
            refused.append(transactional_id)
        elif error:
            raise wire.RefusedError(f"InitProducerId answered error {error}")
    return refused


def _find_coordinator(sock: Any, transactional_id: str) -> None:
    """The first question has the topic of transactions made."""
    request = m.FindCoordinatorRequest(key_type=1, coordinator_keys=[transactional_id])
    while True:
        answer = wire.answered(m.FindCoordinatorResponse, 4, call(sock, wire.framed(request, 4)))
        if not answer.coordinators[0].error_code:
            return
        time.sleep(0.05)


def _producer(host: str, port: int, transactional_id: str) -> Producer:
    from confluent_kafka import Producer

    return Producer(
        {
            "bootstrap.servers": f"{host}:{port}",
            "transactional.id": transactional_id,
            "transaction.timeout.ms": OPEN_MS,
            "linger.ms": 0,
        }
    )


def _transaction(producer: Producer, topic: str, records: int) -> float:
    """One transaction; how long it took in seconds."""
    start = time.perf_counter()
    producer.begin_transaction()
    for each in range(records):
        producer.produce(topic, RECORD, partition=each % FEW)
    producer.commit_transaction(TIMEOUT_SECONDS)
    return time.perf_counter() - start


def _check_fetched(answer: bytes) -> None:
    if not wire.check_fetched(answer):
        raise wire.RefusedError("a committed record was not given out")
