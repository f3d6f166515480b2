"""Big fetches: byte for byte the answers of the ordinary way, and the same waiting, in pieces."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker.handlers import big_fetch, fetch
from broker.net.big_bodies import AT_ONCE
from protocol import messages as m
from protocol.api_keys import ApiKey
from protocol.records.batch import batches
from replication import big_fetch as pieces
from replication import fetch_sessions
from runtime.entropy import SeededRandom
from tests.support.net_broker import NetBroker, decode, fetch_request, frame, produce_request
from tests.support.random_messages import at_version

PARTITIONS = 4
IDS_FROM = 13


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(pieces, "PIECE", 2)


@pytest.fixture
def net(tmp_path):
    with running(tmp_path) as made:
        yield made


@contextmanager
def running(path, **settings_):
    with NetBroker(path, **settings_) as made:
        made.topic_id = made.create("orders", PARTITIONS).topic_id
        yield made


@contextmanager
def everything_is_big():
    """Every fetch goes the way of big ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fetch, "BIG_BODY_BYTES", 0)
        yield


def fill(net, partition=0, count=1, size=100, codec=0):
    writer = net.connect()
    for i in range(count):
        request = produce_request("orders", partition, [b"%d" % i * size], codec=codec)
        writer.send(frame(request, 9))
        net.end_turn()
        while writer.connection.waiting is not None:
            net.run()


def ask(net, client, request, version, correlation_id=7):
    """The bytes of the one answer."""

    async def send():
        client.send(frame(request, version, correlation_id))
        await client.wrote(1)

    net.run(send())
    [(answered, data)] = client.answers()
    assert answered == correlation_id
    return data


def ask_both(net, request, version):
    """Of two clients, one of which is served in pieces; sessions get the same ids."""
    ordinary, big = net.connect(), net.connect()
    answers = []
    for client, way in ((ordinary, contextmanager(lambda: (yield))), (big, everything_is_big)):
        net.sessions._random = SeededRandom(b"the same")
        with way():
            answers.append(ask(net, client, request, version))
        for session_id in list(net.sessions._sessions):
            net.sessions.close(session_id)
    return answers


def places(topic, topic_id, drawn):
    request = m.FetchRequest
    return request.FetchTopic(
        topic=topic,
        topic_id=topic_id,
        partitions=[
            request.FetchPartition(
                partition=index,
                fetch_offset=offset,
                partition_max_bytes=limit,
                current_leader_epoch=epoch,
                last_fetched_epoch=last,
                log_start_offset=-1,
            )
            for index, offset, limit, epoch, last in drawn
        ],
    )


wanted_partitions = st.lists(
    st.tuples(
        st.integers(0, PARTITIONS),
        st.integers(0, 7),
        st.sampled_from([0, 1, 150, 100_000]),
        st.sampled_from([-1, -1, 0, 3]),
        st.sampled_from([-1, -1, 0, 3]),
    ),
    max_size=5,
)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """Records in all codecs, in memory and in files."""
    with running(tmp_path_factory.mktemp("net")) as made:
        made.unknown_id = bytes(15) + b"\7"
        fill(made, 0, 5)
        fill(made, 1, 3, codec=1)
        fill(made, 2, 2, codec=4)
        fill(made, 3, 2, size=40_000)
        yield made


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    version=st.integers(0, 18),
    drawn=st.lists(st.tuples(st.sampled_from(["orders", "orders", "none"]), wanted_partitions), max_size=3),
    most=st.sampled_from([0, 1, 500, 1 << 20]),
    isolation=st.sampled_from([0, 1, 1, 2]),
    epoch=st.sampled_from([-1, 0, 1]),
    replica=st.sampled_from([-1, -1, -1, 1, 5]),
)
def test_the_answer_is_that_of_the_ordinary_way(filled, version, drawn, most, isolation, epoch, replica):
    ids = {"orders": filled.topic_id, "none": filled.unknown_id}
    topics = [
        places(name if version < IDS_FROM else "", ids[name] if version >= IDS_FROM else bytes(16), each)
        for name, each in drawn
    ]
    request = m.FetchRequest(min_bytes=1, max_bytes=most, topics=topics)
    request.isolation_level, request.session_epoch = isolation, epoch
    if version >= 15:
        request.replica_state.replica_id = replica
    else:
        request.replica_id = replica
    request = at_version(request, version)
    ordinary, big = ask_both(filled, request, version)
    assert big == ordinary
    assert len(filled.hub.deadlines) == 0


def follow(session_id, epoch, version, topics=(), forgotten=(), **fields):
    request = m.FetchRequest(
        min_bytes=1, max_bytes=1 << 20, session_id=session_id, session_epoch=epoch, **fields
    )
    request.topics = list(topics)
    request.forgotten_topics_data = [
        m.FetchRequest.ForgottenTopic(topic="orders", partitions=list(forgotten))
    ]
    return request


@pytest.mark.parametrize("version", [7, 11, 12])
def test_a_session_goes_on_as_in_the_ordinary_way(net, version):
    """Two sessions, one used in pieces, see the same."""

    def both(make):
        ordinary = ask(net, clients[0], make(ids[0]), version)
        with everything_is_big():
            big = ask(net, clients[1], make(ids[1]), version)
        one, other = decode(ApiKey.FETCH, version, ordinary), decode(ApiKey.FETCH, version, big)
        assert (one.error_code, one.responses) == (other.error_code, other.responses)
        return one, other

    clients, ids = [net.connect(), net.connect()], [0, 0]
    fill(net, 1, 2)
    first = both(lambda _: fetch_request("orders", {0: 0, 1: 0, 2: 0, 3: 0}, session_epoch=0))
    ids = [answer.session_id for answer in first]
    assert ids[0] != ids[1]
    fill(net, 2)
    moved = fetch_request("orders", {1: 2}).topics
    one, _ = both(lambda session_id: follow(session_id, 1, version, moved))
    assert [p.partition_index for t in one.responses for p in t.partitions] == [2]
    fill(net, 0)
    fill(net, 3)
    one, _ = both(lambda session_id: follow(session_id, 2, version, forgotten=[0, 2]))
    assert [p.partition_index for t in one.responses for p in t.partitions] == [3]
    wrong, _ = both(lambda session_id: follow(session_id, 9, version))
    assert wrong.error_code == 71


def sent(net, client, request, version=12, correlation_id=1, behind=True):
    """Send it with an ApiVersions behind, and let it be read for the first time."""
    data = frame(request, version, correlation_id)

    async def send():
        client.send(data + frame(m.ApiVersionsRequest(), 0, 50) if behind else data)
        await settled(client)

    net.run(send())


async def until(condition):
    async with asyncio.timeout(60):
        for _ in iter(condition, True):
            await asyncio.sleep(0)


async def settled(client):
    """Wait until a big fetch has read, and waits."""

    def is_settled():
        waiting = client.connection.waiting
        return not isinstance(waiting, big_fetch.BigFetch) or waiting._awaited is not None

    await until(is_settled)


async def come(client, count=1):
    await until(lambda: len(client.peek()) >= count)


@pytest.mark.parametrize("index", range(PARTITIONS))
def test_it_waits_and_is_woken_by_any_of_its_partitions(net, index):
    client = net.connect()
    every = dict.fromkeys(range(PARTITIONS), 0)
    with everything_is_big():
        sent(net, client, fetch_request("orders", every, max_wait_ms=60_000))
    assert client.answers() == []
    assert len(net.hub.deadlines) == 1
    fill(net, index)
    net.run(come(client, 2))
    (first, data), (second, _) = client.answers()
    assert (first, second) == (1, 50)
    found = [p for t in decode(ApiKey.FETCH, 12, data).responses for p in t.partitions]
    assert [len(list(batches(p.records or b""))) for p in found] == [i == index for i in range(PARTITIONS)]
    at_rest(net)


def at_rest(net):
    assert len(net.hub.deadlines) == 0
    assert all(not net.ctx.replicas.get("orders", i).waiters for i in range(PARTITIONS))
    assert net.hub.dispatcher._hot[ApiKey.FETCH].parked == 0
    assert net.ctx.big_bodies._inside == 0


def test_too_little_does_not_end_the_wait(net):
    client = net.connect()
    with everything_is_big():
        sent(net, client, fetch_request("orders", {0: 0, 1: 0, 2: 0}, max_wait_ms=60_000, min_bytes=400))
    fill(net, 2, 1)
    net.run(settled(client))
    assert client.answers() == []
    fill(net, 0, 2)
    net.run(come(client, 2))
    found = [p for t in decode(ApiKey.FETCH, 12, client.answers()[0][1]).responses for p in t.partitions]
    assert [len(list(batches(p.records or b""))) for p in found] == [2, 0, 1]
    at_rest(net)


def test_when_the_time_is_over_it_tells_what_there_is(net):
    client = net.connect()
    fill(net, 1)
    with everything_is_big():
        sent(net, client, fetch_request("orders", {0: 0, 1: 0, 2: 0}, max_wait_ms=60_000, min_bytes=400))
    assert client.answers() == []
    client.connection.waiting.expire()
    net.run(come(client, 2))
    found = [p for t in decode(ApiKey.FETCH, 12, client.answers()[0][1]).responses for p in t.partitions]
    assert [len(list(batches(p.records or b""))) for p in found] == [0, 1, 0]
    at_rest(net)


def test_a_session_waits_and_is_woken(net):
    client = net.connect()
    full = client.call(fetch_request("orders", {0: 0, 1: 0}, session_epoch=0), 12)
    client.call(follow(full.session_id, 1, 12), 12)
    with everything_is_big():
        sent(net, client, follow(full.session_id, 2, 12, max_wait_ms=60_000))
    assert client.answers() == []
    fill(net, 1)
    net.run(come(client, 2))
    found = [p for t in decode(ApiKey.FETCH, 12, client.answers()[0][1]).responses for p in t.partitions]
    assert [p.partition_index for p in found] == [1]
    assert net.sessions.get(full.session_id).waiter is None
    at_rest(net)


@pytest.mark.parametrize("when", ["decoding", "waiting"])
def test_a_client_that_goes_leaves_nothing(net, when, caplog):
    client = net.connect()
    request = fetch_request("orders", {0: 0, 1: 0, 2: 0}, max_wait_ms=60_000)
    with everything_is_big():
        if when == "waiting":
            sent(net, client, request)
            client.lose()
        else:

            async def send():
                client.send(frame(request, 12, 1))
                client.lose()

            net.run(send())

    net.run(until(lambda: len(net.ctx.env.tasks) == 0))
    at_rest(net)
    assert caplog.records == []


def test_what_does_not_parse_closes_with_a_line(net, caplog):
    client = net.connect()
    data = bytearray(frame(fetch_request("orders", {0: 0}), 12, 1)[:-3])
    data[:4] = (len(data) - 4).to_bytes(4, "big")

    async def send():
        client.send(bytes(data))
        await until(lambda: client.transport.closed)

    with everything_is_big():
        net.run(send())
    assert "Fetch v12 from client 'test' does not parse" in caplog.text
    at_rest(net)


def test_they_pass_the_gate_of_big_bodies(net):
    clients = [net.connect() for _ in range(4)]

    async def send():
        for client in clients:
            client.send(frame(fetch_request("orders", {0: 0, 1: 0}), 12, 1))
        inside = net.ctx.big_bodies._inside
        for client in clients:
            await come(client)
        return inside

    with everything_is_big():
        assert net.run(send()) == AT_ONCE
    at_rest(net)


def test_a_parked_one_is_not_in_the_gate(net):
    waiting = [net.connect() for _ in range(3)]
    with everything_is_big():
        for client in waiting:
            sent(net, client, fetch_request("orders", {0: 0, 1: 0}, max_wait_ms=60_000))
        assert [client.answers() for client in waiting] == [[], [], []]
        assert net.ctx.big_bodies._inside == 0
    fill(net, 1)
    net.run(come(waiting[2], 2))
    net.run(come(waiting[0], 2))


def test_all_that_wait_together_are_bounded(net, monkeypatch):
    monkeypatch.setattr(big_fetch, "PARKED_MAX", 5)
    waits, answered = net.connect(), net.connect()
    request = fetch_request("orders", {0: 0, 1: 0, 2: 0}, max_wait_ms=60_000)
    with everything_is_big():
        sent(net, waits, request)
        assert len(decode(ApiKey.FETCH, 12, ask(net, answered, request, 12)).responses[0].partitions) == 3
    assert waits.answers() == []
    waits.lose()
    net.run()
    at_rest(net)


def test_a_small_request_of_a_session_with_much_news_goes_in_pieces(net, monkeypatch):
    client = net.connect()
    full = client.call(fetch_request("orders", {0: 0, 1: 0, 2: 0}, session_epoch=0), 12)
    monkeypatch.setattr(fetch_sessions, "BIG", 2)
    net.sessions.get(full.session_id)
    for index in range(3):
        fill(net, index)
    data = frame(follow(full.session_id, 1, 12, max_wait_ms=60_000), 12, 2)

    async def send():
        client.send(data)
        assert isinstance(client.connection.waiting, big_fetch.BigFetch)
        await come(client)

    net.run(send())
    found = [p for t in decode(ApiKey.FETCH, 12, client.answers()[0][1]).responses for p in t.partitions]
    assert [p.partition_index for p in found if p.records] == [0, 1, 2]
    at_rest(net)


@pytest.mark.parametrize("how", ["wake", "expire"])
def test_a_parked_session_that_gets_much_news_goes_in_pieces(net, monkeypatch, how):
    client = net.connect()
    full = client.call(fetch_request("orders", {0: 0, 1: 0, 2: 0}, session_epoch=0), 12)
    client.call(follow(full.session_id, 1, 12), 12)
    client.send(frame(follow(full.session_id, 2, 12, max_wait_ms=60_000), 12, 2))
    assert client.answers() == []
    monkeypatch.setattr(fetch_sessions, "BIG", 2)
    session = net.sessions.get(full.session_id)
    for watch in session.watches.values():
        session.news[watch] = None
    getattr(client.connection.waiting, how)()
    assert isinstance(client.connection.waiting, big_fetch.BigFetch)
    net.run(come(client))
    assert decode(ApiKey.FETCH, 12, client.answers()[0][1]).responses == []
    at_rest(net)
