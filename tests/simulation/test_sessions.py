"""Sessions with the simulated metadata server end, hang and come back as those with a real one do."""

from __future__ import annotations

import pytest

from replication.metadata.memory_store import MemoryTree
from replication.metadata.store import ConnectionLost, Create, SessionEvent, SessionExpired, WatchEvent
from tests.simulation.loop import HostLoop
from tests.simulation.sessions import MetadataServer, SimSession
from tests.simulation.wire import Wire
from tests.simulation.world import SECOND_US, World

TIMEOUT_MS = 2_000


class Cluster:
    """Two sessions on hosts `a` and `b`."""

    def __init__(self):
        self.world = World(5)
        self.wire = Wire(self.world)
        self.server = MetadataServer(self.world, self.wire, MemoryTree())
        self.loops = {name: HostLoop(self.world, name) for name in ("a", "b")}
        self.sessions = {
            name: SimSession(self.server, self.wire.kernel(name), loop, TIMEOUT_MS)
            for name, loop in self.loops.items()
        }
        self.events = {name: [] for name in self.loops}
        for name, session in self.sessions.items():
            session.on_session(self.events[name].append)
            self.call(name, session.open())

    def begin(self, name, work):
        return self.loops[name].create_task(work)

    def call(self, name, work):
        task = self.begin(name, work)
        self.run(0.2)
        return task.result()

    def run(self, seconds):
        self.world.run(self.world.now_us + int(seconds * SECOND_US))

    def cut(self, name):
        self.wire.cut(name, "metadata")
        self.wire.cut("metadata", name)


@pytest.fixture
def cluster():
    return Cluster()


def test_changes_are_seen_and_told_on_all_sessions(cluster):
    a, b = cluster.sessions["a"], cluster.sessions["b"]
    told = []
    b.watch("/x", lambda path, event: told.append((path, event)))
    created = cluster.call("a", a.create("/x", b"1"))
    assert told == [("/x", WatchEvent.CREATED)]
    assert cluster.call("b", b.get("/x")) == (b"1", 0, created, 0)
    assert cluster.call("a", a.create_sequential("/n_", b"")) == "/n_0000000000"


def test_a_short_cut_is_noticed_by_nobody(cluster):
    cluster.cut("a")
    task = cluster.begin("a", cluster.sessions["a"].create("/x", b""))
    cluster.run(0.6)
    assert not task.done()
    cluster.wire.heal_all()
    cluster.run(0.5)
    assert task.result() > 0
    assert cluster.events["a"] == [SessionEvent.CONNECTED]


def test_a_longer_one_suspends_and_what_was_missed_is_told_afterwards(cluster):
    a, b = cluster.sessions["a"], cluster.sessions["b"]
    told = []
    a.watch("/x", lambda path, event: told.append(event))
    cluster.cut("a")
    task = cluster.begin("a", a.get("/x"))
    cluster.call("b", b.create("/x", b""))
    cluster.run(1.15)
    with pytest.raises(ConnectionLost):
        task.result()
    with pytest.raises(ConnectionLost):
        cluster.call("a", a.get("/x"))
    cluster.wire.heal_all()
    cluster.run(0.6)
    assert cluster.events["a"] == [SessionEvent.CONNECTED, SessionEvent.SUSPENDED, SessionEvent.CONNECTED]
    assert told == [WatchEvent.CREATED]
    assert cluster.call("a", a.get("/x")) is not None


@pytest.mark.parametrize("how", ["cut", "pause", "die"])
def test_a_session_that_is_not_heard_of_is_over_for_the_others(cluster, how):
    a, b = cluster.sessions["a"], cluster.sessions["b"]
    cluster.call("a", a.multi([Create("/ids", b""), Create("/ids/a", b"", ephemeral=True)]))
    told = []
    b.watch("/ids/a", lambda path, event: told.append(event))
    if how == "cut":
        cluster.cut("a")
    else:
        getattr(cluster.loops["a"], how)()
    cluster.run(1.4)
    assert cluster.call("b", b.children("/ids")) == ["a"]
    cluster.run(1.5)
    assert told == [WatchEvent.DELETED]
    if how == "die":
        return
    assert SessionEvent.EXPIRED not in cluster.events["a"]
    cluster.wire.heal_all()
    cluster.loops["a"].resume()
    cluster.run(2)
    assert cluster.events["a"][-1] == SessionEvent.EXPIRED
    with pytest.raises(SessionExpired):
        cluster.call("a", a.get("/ids"))
    old = cluster.call("a", a.open()), a.session_id
    assert cluster.events["a"][-1] == SessionEvent.CONNECTED
    assert old[1] != 1
    assert cluster.call("a", a.children("/ids")) == []


def test_the_age_of_the_last_contact_rises_while_cut(cluster):
    cluster.run(1)
    assert cluster.sessions["a"].contact_age_ms() <= TIMEOUT_MS / 6 + 10
    cluster.cut("a")
    cluster.run(3)
    assert 3_000 <= cluster.sessions["a"].contact_age_ms() <= 3_400
    cluster.loops["b"].pause()
    cluster.run(3)
    assert cluster.sessions["b"].contact_age_ms() >= 3_000


def test_a_closed_session_takes_its_nodes_with_it(cluster):
    a, b = cluster.sessions["a"], cluster.sessions["b"]
    cluster.call("a", a.create("/mine", b"", ephemeral=True))
    cluster.call("a", a.close())
    assert cluster.call("b", b.get("/mine")) is None
