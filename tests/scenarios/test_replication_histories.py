"""Random histories of three replicas: crashes, zombies, lost replies, late orders, elections clean or not.

Each seed draws a run of steps; a small model of the controller decides elections and ISR changes as the real
one does. After every step the invariants of a history checker must hold; in the end all faults are healed,
and the replicas must be equal and have everything that was promised. The numbers in brackets are those of the
list of invariants that replication was specified with.
"""

from __future__ import annotations

import random

import pytest

from protocol.errors import ErrorCode
from protocol.records.batch import batches, read_header
from storage.errors import AppendRefused
from tests.scenarios.controller_model import ControllerModel
from tests.support.logs import batch, checked
from tests.unit.replication.cluster.stage import BACKOFF_MS, LAG_MS, Stage

STEPS = 140


def rows(node, upto=None):
    """(base offset, last offset, leader epoch, CRC) of each batch."""
    data = node.batches()
    found = []
    for at, _ in batches(data):
        header = read_header(data, at)
        if upto is None or header.last_offset < upto:
            found.append((header.base_offset, header.last_offset, header.leader_epoch, header.crc))
    return found


class History:
    """One run. `promised` and `seen` are CRCs by base offset: acknowledged, and read by a consumer."""

    def __init__(self, seed, unclean):
        self.draw = random.Random(seed)
        self.unclean = unclean
        self.stage = Stage(3, min_insync_replicas=self.draw.choice([1, 2, 2]))
        self.controller = ControllerModel(self.stage, unclean)
        self.waiting, self.promised, self.seen, self.marks = [], {}, {}, {}
        self.down = {}
        self.serial = 0
        self.floor = 0  # what was deleted somewhere does not count anywhere: a crash may bring it back
        self.controller.elect(is_new=True)

    # Steps

    def step(self):
        deeds = [
            (14, self.produce), (22, self.fetch), (5, self.decide), (1, self.crash), (2, self.restart),
            (2, self.network), (2, self.time), (1, self.elect), (3, self.tell), (1, self.delete),
        ]  # fmt: skip
        [deed] = self.draw.choices([deed for _, deed in deeds], [weight for weight, _ in deeds])
        deed()
        self.settle()
        self.check()

    def node(self):
        return self.draw.choice(list(self.stage.live.values())) if self.stage.live else None

    def produce(self):
        """To anybody who believes to lead, zombies among them."""
        hosting = [node for node in self.stage.live.values() if node.replicas.get("t", 0) is not None]
        leading = [node for node in hosting if node.partition().is_leader]
        if not leading:
            return
        node = self.draw.choice(leading)
        self.serial += 1
        partition = node.partition()
        data = batch(self.draw.randint(1, 4), size=self.draw.choice([5, 300]), key=b"%d" % self.serial)
        acks = self.draw.choice([1, -1, -1, -1])
        try:
            appended = partition.append(checked(data), acks, 0)
        except AppendRefused:  # too few in-sync replicas
            return
        partition.write_pending()
        if acks == -1:
            row = next(row for row in rows(node) if row[0] == appended.base_offset)
            self.waiting.append((partition, partition.leader_epoch, row))

    def fetch(self):
        node = self.node()
        if node is not None:
            node.fetch(self.draw.randint(1, 2))

    def decide(self):
        node = self.node()
        if node is not None and node.proposals:
            self.controller.decide(node, lost=self.draw.random() < 0.25)

    def crash(self):
        if len(self.stage.live) > (0 if self.unclean else 1):
            node = self.node()
            self.down[node.id] = node
            self.stage.stop(node.id, checkpoint=self.draw.random() < 0.5)
            if self.draw.random() < 0.7:
                self.controller.broker_gone(node.id)

    def restart(self):
        if self.down:
            broker_id = self.draw.choice(sorted(self.down))
            self.controller.broker_gone(broker_id)
            self.stage.start(broker_id, self.down.pop(broker_id))
            self.controller.broker_came(broker_id)

    def network(self):
        pairs = [(a, b) for a in (1, 2, 3) for b in (1, 2, 3) if a != b]
        self.stage.cut = self.draw.sample(pairs, self.draw.randint(0, 2))
        self.stage.lossy = self.draw.sample(pairs, self.draw.randint(0, 2))

    def time(self):
        self.stage.clock.ms += self.draw.choice([10, BACKOFF_MS, LAG_MS + 1])
        for node in self.stage.live.values():
            if node.replicas.get("t", 0) is not None and node.partition().leadership is not None:
                node.partition().leadership.shrink()

    def elect(self):
        """A new leader; some hear of it later."""
        live = sorted(self.stage.live)
        self.controller.elect(tell=self.draw.sample(live, self.draw.randint(0, len(live))))

    def tell(self):
        self.controller.tell_all()

    def delete(self):
        node = self.node()
        if node is not None and node.replicas.get("t", 0) is not None and node.partition().is_leader:
            log = node.log
            if log.high_watermark > log.start_offset and self.draw.random() < 0.5:
                node.partition().delete_records(self.draw.randint(log.start_offset, log.high_watermark))
                node.logs.persist_log_starts()

    # Promises

    def settle(self):
        """Acknowledge what is committed; forget what was refused."""
        open_requests = []
        for partition, epoch, row in self.waiting:
            if partition.leader_epoch != epoch or partition.log.closed:
                continue
            verdict = partition.committed(row[1])
            if verdict is None:
                open_requests.append((partition, epoch, row))
            elif verdict == ErrorCode.NONE:
                assert self.promised.setdefault(row[0], row[3]) == row[3] or self.unclean  # [2]
        self.waiting = open_requests

    def check(self):
        committed = []
        for node in self.stage.live.values():
            if node.replicas.get("t", 0) is None:
                continue
            partition, log = node.partition(), node.log
            assert log.start_offset <= log.high_watermark <= log.end_offset  # [8] [11]
            if partition.is_leader:
                key = (node.id, node.epoch, partition.leader_epoch)
                assert log.high_watermark >= self.marks.get(key, 0)  # [8]
                self.marks[key] = log.high_watermark
            everything = rows(node)
            assert [row[0] for row in everything[1:]] == [row[1] + 1 for row in everything[:-1]]  # [9]
            assert [row[2] for row in everything] == sorted(row[2] for row in everything)  # [4]
            epochs = node.epochs
            assert epochs == sorted(epochs)
            assert len({start for _, start in epochs}) == len(epochs)  # [4]
            self.floor = max(self.floor, log.start_offset)
            below = [row for row in everything if self.floor <= row[0] and row[1] < log.high_watermark]
            committed.append((log.high_watermark, below))
            if not self.unclean:
                for row in below:
                    assert self.seen.setdefault(row[0], row[3]) == row[3]  # [2] [10]
        if not self.unclean:
            self._check_pairs(committed)

    def _check_pairs(self, committed):
        for mark, below in committed:
            for other_mark, other in committed:
                high = min(mark, other_mark)
                ours = [row for row in below if self.floor <= row[0] and row[1] < high]
                assert ours == [row for row in other if self.floor <= row[0] and row[1] < high]  # [3]

    def heal(self):
        """End all faults, and let the cluster come to rest."""
        stage = self.stage
        stage.cut, stage.lossy = [], []
        for broker_id in sorted(self.down):
            self.restart_one(broker_id)
        self.controller.elect()
        self.controller.tell_all()
        for _ in range(12):
            stage.clock.ms += BACKOFF_MS
            stage.sync(2)
            for node in stage.live.values():
                while node.proposals:
                    self.controller.decide(node, lost=False)
            self.settle()
            self.check()

    def restart_one(self, broker_id):
        self.controller.broker_gone(broker_id)
        self.stage.start(broker_id, self.down.pop(broker_id))
        self.controller.broker_came(broker_id)


def play(seed, unclean):
    history = History(seed, unclean)
    for _ in range(STEPS):
        history.step()
    history.heal()
    logs = [rows(node) for node in history.stage.live.values()]
    logs = [[row for row in log if row[1] >= history.floor] for log in logs]
    assert logs[0] == logs[1] == logs[2]
    ends = {node.ends for node in history.stage.live.values()}
    assert len(ends) == 1  # [14]
    [(end, mark)] = ends
    assert end == mark
    leader = history.stage[history.controller.stored["leader"]]
    assert sorted(leader.partition().isr) == [1, 2, 3]  # [14]
    if not unclean:
        present = {row[0]: row[3] for row in logs[0]}
        for base, crc in history.promised.items():
            assert present.get(base, crc if base < history.floor else None) == crc  # [1]
    return history


@pytest.mark.parametrize("seed", range(60))
def test_with_clean_elections_nothing_promised_is_lost(seed):
    play(seed, unclean=False)


@pytest.mark.parametrize("seed", range(40))
def test_with_unclean_ones_replicas_still_become_equal(seed):
    play(seed, unclean=True)


def test_the_histories_reach_what_they_are_for():
    """Else the tests above would prove little."""
    histories = [play(seed, unclean=False) for seed in range(20)]
    assert sum(len(history.promised) for history in histories) > 100
    assert max(history.controller.stored["epoch"] for history in histories) > 5
    assert any(history.controller.refused for history in histories)
