"""Producers, commits, aborts and fences in any order on a running broker; a model says what readers see."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from protocol.errors import ErrorCode as E
from tests.support.ottla_process import OttlaProcess
from tests.support.transactions import TxnProducer, committed_values, until_settled
from tests.support.wire_client import WireClient

SEEDS = range(8)
STEPS = 60
PARTITIONS = 2


@dataclass
class Model:
    """What is in each partition: (value, transaction). A transaction has an outcome when it has ended."""

    written: list[list[tuple[bytes, int]]] = field(default_factory=lambda: [[] for _ in range(PARTITIONS)])
    outcomes: dict[int, bool] = field(default_factory=dict)

    def committed(self, partition: int) -> list[bytes]:
        """What a reader of committed records sees: nothing from the first open transaction on."""
        seen = []
        for value, txn in self.written[partition]:
            if txn not in self.outcomes:
                break
            if self.outcomes[txn]:
                seen.append(value)
        return seen

    def all(self, partition: int) -> list[bytes]:
        return [value for value, _ in self.written[partition]]


class Player:
    """One transactional id. `open` is the number of its transaction, once something was added."""

    def __init__(self, wire: WireClient, name: str) -> None:
        # its transactions stay open over many steps, and a step may take long
        self.producer = TxnProducer(wire, name, timeout_ms=600_000).init()
        self.open: int | None = None
        self.has: set[int] = set()


@pytest.fixture(scope="module")
def broker() -> Iterator[OttlaProcess]:
    with OttlaProcess({"transaction.state.log.num.partitions": "3"}) as running:
        yield running


@pytest.mark.parametrize("seed", SEEDS)
def test_readers_see_what_the_model_says(broker: OttlaProcess, seed: int) -> None:
    chance = random.Random(seed)
    topic = f"model-{seed}"
    model = Model()
    transactions = 0
    with WireClient(broker.bootstrap_servers) as wire:
        wire.create_topic(topic, PARTITIONS)
        players = [Player(wire, f"{topic}-{number}") for number in range(3)]

        def end(player: Player, commit: bool) -> None:
            assert player.open is not None
            assert player.producer.end(commit) == E.NONE
            player.producer.await_state("CompleteCommit" if commit else "CompleteAbort")
            model.outcomes[player.open] = commit
            player.open, player.has = None, set()

        for step in range(STEPS):
            player = chance.choice(players)
            producer = player.producer
            match chance.choice(["produce", "produce", "produce", "end", "end", "fence", "plain"]):
                case "produce":
                    partition = chance.randrange(PARTITIONS)
                    if partition not in player.has:
                        assert producer.reach_add((topic, partition)) == E.NONE
                        player.has.add(partition)
                    if player.open is None:
                        transactions += 1
                        player.open = transactions
                    values = [b"%d.%d" % (step, number) for number in range(chance.randrange(1, 4))]
                    assert producer.produce(topic, *values, partition=partition) == E.NONE
                    model.written[partition] += [(value, player.open) for value in values]
                case "end" if player.open is not None:
                    end(player, chance.random() < 0.6)
                case "fence":
                    zombie = TxnProducer(wire, producer.id)
                    zombie.producer_id, zombie.epoch = producer.producer_id, producer.epoch
                    assert until_settled(producer.try_init) == E.NONE
                    if player.open is not None:
                        model.outcomes[player.open] = False
                    player.open, player.has = None, set()
                    assert zombie.produce(topic, b"zombie") != E.NONE
                    assert zombie.end(commit=True) == E.PRODUCER_FENCED
                case "plain":
                    partition = chance.randrange(PARTITIONS)
                    value = b"%d plain" % step
                    wire.produce_values(topic, value, partition=partition)
                    model.written[partition].append((value, 0))
                    model.outcomes[0] = True
            for partition in range(PARTITIONS):
                assert committed_values(wire, topic, 1, partition) == model.committed(partition)
                assert committed_values(wire, topic, 0, partition) == model.all(partition)
