"""Which replicas a throttle binds."""

from __future__ import annotations

from ottla.cli import reassignment_throttles as throttles
from ottla.cli.reassignment_cluster import BROKER, TOPIC, Moving

T0, T1, U0 = ("t", 0), ("t", 1), ("u", 0)


class Cluster:
    """Keeps what is configured."""

    def __init__(self) -> None:
        self.changes = []

    def racks(self):
        return dict.fromkeys((1, 2, 3, 4))

    def configure(self, kind, name, values):
        self.changes.append((kind, name, values))


def test_a_move_goes_from_where_the_replicas_are_or_were():
    under_way = {T0: Moving((4, 1, 2), (4,), (1,)), U0: Moving((3, 1), (3,), (1,))}
    moves = throttles.moves_of(under_way, {T0: (3, 2), T1: (2, 3)}, {T0: (4, 1, 2), T1: (1, 2)})
    assert moves == {T0: ((1, 2), (3,)), U0: ((1,), (3,)), T1: ((1, 2), (3,))}


def test_sources_are_bound_as_leaders_and_the_new_replicas_as_followers(capsys):
    cluster = Cluster()
    throttles.put(cluster, {}, {T0: (3, 2), T1: (1, 2)}, {T0: (1, 2), T1: (1, 2)}, 1000)
    assert cluster.changes == [
        (
            TOPIC,
            "t",
            {
                "leader.replication.throttled.replicas": "0:1,0:2,1:1,1:2",
                "follower.replication.throttled.replicas": "0:3",
            },
        ),
        *(
            (
                BROKER,
                broker,
                {
                    "leader.replication.throttled.rate": "1000",
                    "follower.replication.throttled.rate": "1000",
                },
            )
            for broker in ("1", "2", "3")
        ),
    ]
    assert capsys.readouterr().out == "The inter-broker throttle limit was set to 1000 B/s\n"


def test_all_brokers_and_the_topics_are_unbound(capsys):
    cluster = Cluster()
    throttles.clear(cluster, [(T0, (1, 9)), (T1, (2,))])
    assert [(kind, name) for kind, name, _ in cluster.changes] == [
        *((BROKER, broker) for broker in "1234"),
        (TOPIC, "t"),
    ]
    assert capsys.readouterr().out == (
        "Clearing broker-level throttles on brokers 1,2,3,4,9\nClearing topic-level throttles on topic t\n"
    )


def test_brokers_whose_replicas_move_between_directories_are_bound_once(capsys):
    cluster = Cluster()
    throttles.put_log_dirs(cluster, [2, 1, 2], 5)
    assert cluster.changes == [
        (BROKER, broker, {"replica.alter.log.dirs.io.max.bytes.per.second": "5"}) for broker in ("1", "2")
    ]
    assert capsys.readouterr().out == "The replica-alter-dir throttle limit was set to 5 B/s\n"
