"""A consumer that keeps a fetch session, for the tests of sessions."""

from __future__ import annotations

from protocol.errors import ErrorCode
from replication.fetch import FetchParams
from replication.fetch_sessions import FetchSessions
from runtime.entropy import SeededRandom
from tests.unit.replication.cluster import on_broker, produce, wanted

NAMES, IDS = 12, 13


def params(version=NAMES, wait=0, least=1, most=1 << 20, **fields):
    return FetchParams(version, wait, least, most, **fields)


class Client:
    """Speaks to the sessions of a broker as a consumer does."""

    def __init__(self, broker, sessions, version=NAMES, **fields):
        self.broker, self.sessions, self.version, self.fields = broker, sessions, version, fields
        self.session_id, self.epoch, self.now = 0, 0, 1000

    def context(self, entries, forget, epoch, session_id, **fields):
        return self.sessions.open(
            params(self.version, **{**self.fields, **fields}), session_id, epoch, entries, forget, self.now
        )

    def full(self, *entries, session_id=None, epoch=0, **fields):
        context = self.context(entries, (), epoch, session_id or self.session_id, **fields)
        error, self.session_id, rows = context.respond(context.read(), self.now)
        self.epoch = 1
        return error, {row.wanted.key: row for row in rows}

    def more(self, *entries, forget=(), **fields):
        context = self.context(entries, forget, self.epoch, self.session_id, **fields)
        error, self.session_id, rows = context.respond(context.read(), self.now)
        self.epoch += 1
        return error, {row.wanted.key: row for row in rows}


def on_sessions(story, partitions=4, slots=10, version=NAMES, **fields):
    async def main(broker):
        broker.topic_id = (await broker.create("t", partitions)).topic_id
        sessions = FetchSessions(broker.replicas.wanted_partition, SeededRandom(b"sessions"), slots)
        story(broker, Client(broker, sessions, version, **fields))

    on_broker(main)


def fill(broker, index, count=1):
    for _ in range(count):
        produce(broker.replicas.get("t", index))


def keys(answer):
    error, rows = answer
    assert error == ErrorCode.NONE
    return [index for _, index in rows]


def every(*indexes, offset=0):
    return [wanted("t", index, offset) for index in indexes]
