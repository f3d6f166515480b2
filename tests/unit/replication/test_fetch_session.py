"""What a session tells, by examples and against a model that walks all partitions at each fetch."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from protocol.errors import ErrorCode
from replication.fetch import Budget, FetchParams, Row, Wanted, read_row
from replication.fetch_sessions import FetchSessions
from replication.metadata.image import ClusterImage, ImageHolder, PartitionImage, TopicImage
from replication.partition import Partition
from replication.replica_manager import ReplicaManager
from runtime.entropy import SeededRandom
from storage.log_config import LogConfig
from tests.simulation.files import SimFileSystem
from tests.support.logs import open_manager
from tests.unit.replication.cluster import produce, wanted
from tests.unit.replication.session_client import IDS, every, fill, keys, on_sessions

NODE, PARTITIONS = 1, 6


def test_an_incremental_answer_lists_only_what_changed():
    def story(broker, client):
        fill(broker, 0, 2)
        assert keys(client.full(*every(0, 1, 2))) == [0, 1, 2]
        assert keys(client.more(wanted("t", 0, 2))) == []
        fill(broker, 1)
        answer = client.more()
        assert keys(answer) == [1]
        assert answer[1]["t", 1].high_watermark == 1
        assert keys(client.more()) == [1]  # the client has not moved on: the records are sent again
        assert keys(client.more(wanted("t", 1, 1))) == []
        broker.replicas.get("t", 0).delete_records(1)
        answer = client.more()
        assert keys(answer) == [0]
        assert (answer[1]["t", 0].length, answer[1]["t", 0].log_start_offset) == (0, 1)
        assert keys(client.more()) == []

    on_sessions(story)


def test_a_new_high_watermark_is_told_without_records():
    def story(broker, client):
        fill(broker, 0, 2)
        client.full(wanted("t", 0, 2))
        partition = broker.replicas.get("t", 0)
        partition.log.set_high_watermark(1)
        partition.tell_watches()
        answer = client.more()
        assert keys(answer) == [0]
        assert (answer[1]["t", 0].length, answer[1]["t", 0].high_watermark) == (0, 1)
        assert keys(client.more()) == []

    on_sessions(story)


def test_an_error_is_told_each_time_and_the_next_success_too():
    def story(broker, client):
        client.full(*every(0, 1))
        partition = broker.replicas.get("t", 0)
        partition.apply(PartitionImage(0, 2, 1, 1, (2,), (2, 1)), 1)
        for _ in range(2):
            answer = client.more()
            assert keys(answer) == [0]
            assert answer[1]["t", 0].error == ErrorCode.NOT_LEADER_OR_FOLLOWER
            assert answer[1]["t", 0].high_watermark == -1
        partition.apply(PartitionImage(0, 1, 2, 2, (1,), (1,)), 1)
        answer = client.more()
        assert keys(answer) == [0]
        assert (answer[1]["t", 0].error, answer[1]["t", 0].length) == (ErrorCode.NONE, 0)
        assert keys(client.more()) == []

    on_sessions(story, version=10)


def test_a_partition_that_comes_later_is_found():
    def story(broker, client):
        answer = client.full(wanted("u", 0))
        assert answer[1]["u", 0].error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert client.more()[1]["u", 0].error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        topic = broker.holder.current.topics["t"]
        new = replace(topic, name="u", topic_id=bytes([8]) * 16)
        broker.holder.publish(broker.holder.current.with_topics([new]))
        answer = client.more()
        assert answer[1]["u", 0].error == ErrorCode.NONE
        assert keys(client.more()) == []
        produce(broker.replicas.get("u", 0))
        assert keys(client.more()) == [0]
        broker.holder.publish(broker.holder.current.with_topics([], ["u"]))
        assert client.more()[1]["u", 0].error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    on_sessions(story)


def test_an_unknown_partition_does_not_end_the_wait_of_the_others():
    def story(broker, client):
        client.full(wanted("t", 0), wanted("u", 0))
        client.more()
        waits = client.context([], (), client.epoch, client.session_id, wait=500)
        assert not waits.read().ready
        client.epoch += 1
        client.more(forget=[("t", 0)])
        assert client.context([], (), client.epoch, client.session_id, wait=500).read().ready

    on_sessions(story)


def test_a_deleted_topic_is_an_unknown_id_though_its_name_is_back():
    def story(broker, client):
        client.full(Wanted("", broker.topic_id, 0, 0, 100))
        image = broker.holder.current
        anew = replace(image.topics["t"], topic_id=bytes([8]) * 16)
        broker.holder.publish(image.with_topics([anew], ["t"]))
        error, rows = client.more()
        assert error == ErrorCode.NONE
        assert [row.error for row in rows.values()] == [ErrorCode.UNKNOWN_TOPIC_ID]

    on_sessions(story, version=IDS)


def test_those_that_returned_records_go_to_the_end():
    def story(broker, client):
        for index in range(4):
            fill(broker, index, 3)
        first = client.full(*every(0, 1, 2, 3), most=1)
        assert [key[1] for key, row in first[1].items() if row.length] == [0]
        client.session_id = client.sessions.get(client.session_id).session_id
        served = []
        offsets = [1, 0, 0, 0]
        moved = ()
        for _ in range(8):
            _, rows = client.more(*moved, most=1)
            (index,) = [key[1] for key, row in rows.items() if row.length]
            served.append(index)
            offsets[index] += 1
            moved = every(index, offset=offsets[index])
        assert served == [0, 1, 2, 3, 0, 1, 2, 3]

    on_sessions(story)


def test_a_change_without_bytes_does_not_end_the_wait_and_is_told_at_its_end():
    def story(broker, client):
        fill(broker, 0, 3)
        client.full(wanted("t", 0, 3))
        client.more()
        context = client.context([], (), client.epoch, client.session_id, wait=500)
        broker.replicas.get("t", 0).delete_records(2)
        for _ in range(2):
            assert not context.read().ready
        rows = context.respond(context.read(), 0)[2]
        assert [(row.index, row.log_start_offset) for row in rows] == [(0, 2)]

    on_sessions(story)


class Walker:
    """A session as Kafka keeps it: a list of all partitions, each of them read at each fetch."""

    def __init__(self, lookup):
        self.lookup = lookup
        self.entries: list[Wanted] = []
        self.told: dict[tuple, tuple[int, int]] = {}

    def ask(self, wanted, forgotten):
        for entry in wanted:
            at = next((i for i, known in enumerate(self.entries) if known.key == entry.key), None)
            if at is None:
                self.entries.append(entry)
                self.told[entry.key] = (-1, -1)
            else:
                self.entries[at] = entry
        self.entries = [entry for entry in self.entries if entry.key not in forgotten]

    def answer(self, params, everything=False):
        budget, rows = Budget(params), []
        for entry in self.entries:
            if budget.exhausted and not everything:
                break
            partition = self.lookup(entry)
            if isinstance(partition, Partition):
                row = read_row(entry, partition, params, budget)
            else:
                row = Row(entry, partition)
            news = (row.high_watermark, row.log_start_offset) != self.told[entry.key]
            if everything or news or row.length or row.error != ErrorCode.NONE:
                rows.append(row)
        for row in rows:
            failed = row.error != ErrorCode.NONE
            self.told[row.wanted.key] = (-1 if failed else row.high_watermark, row.log_start_offset)
            if row.length and not everything:
                self.entries.remove(row.wanted)
                self.entries.append(row.wanted)
        return rows


def shown(rows):
    return [
        (
            row.wanted.key,
            row.error,
            row.length,
            row.high_watermark,
            row.last_stable_offset,
            row.log_start_offset,
        )
        for row in rows
    ]


indexes = st.integers(0, PARTITIONS - 1)


class Sessions(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.holder = ImageHolder()
        self.replicas = ReplicaManager(
            NODE, self.holder, open_manager(SimFileSystem()), lambda topic, overrides: LogConfig()
        )
        self.number = 0
        self.epochs = [0] * PARTITIONS
        self.create_topic()
        self.sessions = FetchSessions(self.replicas.wanted_partition, SeededRandom(b"model"), 2)
        self.open()

    def create_topic(self):
        self.number += 1
        self.epochs = [0] * PARTITIONS
        states = tuple(PartitionImage(i, NODE, 0, 0, (NODE,), (NODE,)) for i in range(PARTITIONS))
        topic = TopicImage("t", bytes([self.number]) * 16, states)
        self.holder.publish(ClusterImage().with_topics([topic]))

    def partition(self, index):
        return self.replicas.get("t", index)

    def open(self):
        self.walker = Walker(self.replicas.wanted_partition)
        self.offsets = dict.fromkeys(range(0, PARTITIONS, 2), 0)
        entries = [self.wanted(index) for index in self.offsets]
        params = FetchParams(10, 0, 1, 250)
        self.walker.ask(entries, ())
        context = self.context(params, 0, 0, entries, ())
        error, self.session_id, rows = self.answer(context)
        self.epoch = 1
        assert error == ErrorCode.NONE
        assert shown(rows) == shown(self.walker.answer(params, everything=True))

    def context(self, params, session_id, epoch, entries, gone):
        return self.sessions.open(params, session_id, epoch, entries, gone, 0)

    def answer(self, context):
        context.read()  # a request that waited has read before
        return context.respond(context.read(), 0)

    def wanted(self, index, max_bytes=1000):
        return Wanted("t", bytes(16), index, self.offsets[index], max_bytes)

    @rule(index=indexes, count=st.integers(1, 3))
    def append(self, index, count):
        partition = self.partition(index)
        if partition is not None and partition.is_leader:
            produce(partition, count)
            partition.wake()

    @rule(index=indexes)
    def delete_some(self, index):
        partition = self.partition(index)
        if partition is not None and partition.log.high_watermark > partition.log.start_offset:
            partition.delete_records(partition.log.start_offset + 1)

    @rule(index=indexes)
    def lose_or_regain_leadership(self, index):
        image = self.holder.current
        topic = image.topics.get("t")
        if topic is None:
            return
        self.epochs[index] += 1
        leader = 2 if topic.partitions[index].leader == NODE else NODE
        state = PartitionImage(index, leader, self.epochs[index], self.epochs[index], (leader,), (NODE, 2))
        states = (*topic.partitions[:index], state, *topic.partitions[index + 1 :])
        self.holder.publish(image.with_topics([replace(topic, partitions=states)]))

    @rule(anew=st.sampled_from([True, True, False]))
    def delete_topic(self, anew):
        self.holder.publish(ClusterImage())
        if anew:
            self.create_topic()

    @rule()
    @precondition(lambda self: "t" not in self.holder.current.topics)
    def create_again(self):
        self.create_topic()

    @rule()
    @precondition(lambda self: self.session_id)
    def catch_up(self):
        """Read until there is nothing to tell: from here on every answer is due to something new."""
        for index in range(0, PARTITIONS, 2):
            partition = self.partition(index)
            self.offsets[index] = 0 if partition is None else partition.log.end_offset
        everything = [self.wanted(index) for index in self.offsets]
        for entries in (everything, [], []):
            self.ask(entries, (), 5000)

    @rule(most=st.sampled_from([1, 150, 5000]))
    @precondition(lambda self: self.session_id)
    def poll(self, most):
        self.ask([], (), most)

    @rule(
        moved=st.dictionaries(indexes, st.integers(0, 8), max_size=3),
        forgotten=st.sets(indexes, max_size=2),
        most=st.sampled_from([1, 150, 250, 5000]),
        max_bytes=st.sampled_from([0, 1, 120, 1000]),
        takes=st.booleans(),
    )
    @precondition(lambda self: self.session_id)
    def fetch(self, moved, forgotten, most, max_bytes, takes):
        """`takes`: the client moves behind what it received, as real ones do."""
        self.offsets.update(moved)
        entries = [self.wanted(index, max_bytes) for index in moved]
        gone = [("t", index) for index in sorted(forgotten - moved.keys())]
        for _, index in gone:
            self.offsets.pop(index, None)
        rows = self.ask(entries, gone, most)
        if takes and rows:
            behind = []
            for row in rows:
                partition = self.partition(row.index)
                if row.length and partition is not None:
                    self.offsets[row.index] = partition.log.end_offset
                    behind.append(self.wanted(row.index))
            self.ask(behind, (), 5000)

    def ask(self, entries, gone, most):
        params = FetchParams(10, 0, 1, most)
        context = self.context(params, self.session_id, self.epoch, entries, gone)
        self.walker.ask(entries, gone)
        error, self.session_id, rows = self.answer(context)
        self.epoch += 1
        assert error == ErrorCode.NONE
        if not self.offsets:
            assert (self.session_id, rows) == (0, [])
            return []
        assert self.session_id
        assert shown(rows) == shown(self.walker.answer(params))
        return rows

    @rule()
    @precondition(lambda self: not self.session_id)
    def open_again(self):
        self.open()

    @invariant()
    def the_order_and_the_links_are_right(self):
        session = self.sessions.get(self.session_id)
        if session is None:
            return
        order = sorted(session.watches.values(), key=lambda watch: watch.order)
        assert [watch.key for watch in order] == [entry.key for entry in self.walker.entries]
        assert set(session.news) <= set(session.watches.values())
        for watch in session.watches.values():
            if watch.partition is not None:
                assert watch in watch.partition.watches
            else:
                assert watch in session.news


SETTINGS = settings(max_examples=25, stateful_step_count=40, deadline=None, derandomize=True)
Sessions.TestCase.settings = SETTINGS
TestSessions = Sessions.TestCase
