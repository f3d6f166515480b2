import pytest

from storage.errors import StorageFailed
from storage.log_config import LogConfig
from storage.write_turn import WriteTurn
from tests.simulation.files import SimFileSystem
from tests.support.logs import START_MS, TOPIC_ID, batch, checked, open_manager

ONE = len(batch(1))


class Turns:
    """Two logs, a turn that ends when told, and what its callers heard."""

    def __init__(self, config=None):
        self.files = SimFileSystem()
        manager = open_manager(self.files, config=config)
        self.logs = [manager.get_or_create("t", n, TOPIC_ID) for n in range(2)]
        self.armed = []
        self.turn = WriteTurn(self.armed.append)
        self.heard = []

    def stage(self, number, name):
        log = self.logs[number]
        log.append_as_leader(checked(batch(1)), 0, START_MS)
        self.turn.stage(log, lambda error: self.heard.append((name, error is None)))

    def end(self):
        (call,) = self.armed
        self.armed.clear()
        call()


def test_callers_hear_in_order_after_one_write_for_each_log():
    turns = Turns()
    writes = []
    turns.files.draw = lambda operation, path: (
        writes.append(path) if operation == "append" and ".log" in path else None
    )
    for name, number in enumerate((0, 1, 0, 0, 1)):
        turns.stage(number, name)
    assert not turns.heard
    assert len(turns.armed) == 1
    turns.end()
    assert turns.heard == [(n, True) for n in range(5)]
    assert len(writes) == 2
    assert [log.end_offset for log in turns.logs] == [3, 2]


def test_a_failed_log_fails_its_own_callers_only():
    turns = Turns()
    for name, number in enumerate((0, 1, 0)):
        turns.stage(number, name)
    turns.files.fail_next("append", 28, "t-0/")
    turns.end()
    assert turns.heard == [(0, False), (1, True), (2, False)]
    turns.stage(0, "next")
    turns.end()
    assert turns.heard[-1] == ("next", True)
    assert turns.logs[0].end_offset == 1


def test_a_failure_during_a_roll_reaches_those_staged_before_it():
    turns = Turns(LogConfig(segment_bytes=2 * ONE))
    turns.stage(0, "a")
    turns.stage(0, "b")
    turns.files.fail_next("append", 28, ".log")
    with pytest.raises(StorageFailed, match="no space"):
        turns.stage(0, "c")
    turns.stage(0, "d")
    turns.end()
    assert turns.heard == [("a", False), ("b", False), ("d", True)]
    assert turns.logs[0].end_offset == 1


def test_what_a_caller_stages_belongs_to_the_next_turn():
    turns = Turns()
    log = turns.logs[0]

    def again(error):
        turns.heard.append("first")
        turns.stage(0, "second")

    log.append_as_leader(checked(batch(1)), 0, START_MS)
    turns.turn.stage(log, again)
    turns.end()
    assert turns.heard == ["first"]
    turns.end()
    assert turns.heard == ["first", ("second", True)]
