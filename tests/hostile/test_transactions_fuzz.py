"""Requests about transactions from producers that exist and others, so many of them.

Nothing that a client sends may end in an exception, in a second line of the log, in an answer that does not
parse, in a transaction that never ends, or in one that can't be loaded again.
"""

from __future__ import annotations

import random
import time

from protocol import messages as m
from tests.hostile.fuzz import prepare
from tests.hostile.knowing_fuzz import survives
from tests.hostile.mutations import TOPICS
from tests.hostile.transaction_mutations import IDS, TransactionMutator
from tests.hostile.victim import Victim
from tests.support.transactions import TxnProducer, await_transactions
from tests.support.waiting import wait_until

SEED = 4
REQUESTS = 2000
OPEN_MS = 5000
SETTINGS = {
    "transaction.max.timeout.ms": "10000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "transaction.state.log.num.partitions": "5",
}


def begin(victim: Victim, mutator: TransactionMutator, number: int) -> None:
    """A new producer with an open transaction, in whose name the mutator then speaks."""
    with victim.wire() as wire:
        producer = TxnProducer(wire, f"begun-{number}", timeout_ms=OPEN_MS).init()
        since = time.monotonic()
        errors = producer.add((TOPICS[0], 0)), producer.add_offsets("g1"), producer.produce(TOPICS[0], b"v")
        assert errors == (0, 0, 0) or time.monotonic() - since > OPEN_MS / 1000
        request = m.InitProducerIdRequest(transactional_id=producer.id)
        answer = m.InitProducerIdResponse(producer_id=producer.producer_id, producer_epoch=producer.epoch)
        mutator.learn(request.API_KEY, 4, bytes(request.encode(4)), answer)


def fuzz_transactions(seed: int, requests: int) -> str:
    """See the module; a line with what was done."""
    with Victim(SETTINGS) as victim:
        with victim.wire() as wire:
            versions = wire.versions()
            await_transactions(wire, IDS[0])
            wire.send(m.FindCoordinatorRequest(key="g1"), 3)
        mutator = TransactionMutator(random.Random(seed), prepare(victim), versions)
        done = survives(
            victim,
            mutator,
            requests,
            lambda number: begin(victim, mutator, number),
            lambda line: await_ends(victim, line),
        )
    return f"seed {seed}: {done}"


def await_ends(victim: Victim, after: int) -> None:
    """Every transaction ends, at the latest when its time is over.

    But for those that were ended by markers of another coordinator's, which only brokers may send where there
    is an authorizer: of them the log tells, after that line.
    """
    with victim.wire() as wire:

        def all_ended() -> bool:
            listed = wire.send(m.ListTransactionsRequest(), 1)
            states = [each.transaction_state for each in listed.transaction_states]
            open_ones = [
                state for state in states if state not in ("Empty", "CompleteCommit", "CompleteAbort")
            ]
            forged = [line for line in victim.lines(after) if "was ended by somebody else" in line]
            return listed.error_code == 0 and len(open_ones) <= len(forged)

        wait_until(all_ended, "the end of all transactions", 120)


def test_a_running_broker_survives_requests_about_transactions() -> None:
    print(fuzz_transactions(SEED, REQUESTS))
