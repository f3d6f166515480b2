import asyncio
import dataclasses

import pytest

from broker.handlers.later import Later
from broker.net.answers import BIG_ELEMENTS
from protocol import messages as m
from protocol.api_keys import ApiKey
from replication.metadata.payloads import BadPayload
from replication.metadata.store import StoreFailed
from tests.support.net_broker import decode, frame, produce_request


def replace_handler(broker, key, handle):
    from broker.net.dispatch import Dispatcher

    table = {**broker.table, key: dataclasses.replace(broker.table[key], handle=handle)}
    old = broker.hub.dispatcher
    broker.hub.dispatcher = Dispatcher(broker.ctx, table, old._hot)


def test_too_new_api_versions_gets_35_in_the_oldest_form_and_the_connection_goes_on(broker, client):
    request = bytearray(
        frame(m.ApiVersionsRequest(client_software_name="x", client_software_version="1"), 3, 8)
    )
    request[6:8] = (77).to_bytes(2, "big")
    client.send(bytes(request) + frame(m.ApiVersionsRequest(), 0, 9))
    (first, data), (second, _) = client.answers()
    assert (first, second) == (8, 9)
    answer = decode(ApiKey.API_VERSIONS, 0, data)
    assert answer.error_code == 35
    assert [(api.api_key, api.min_version, api.max_version) for api in answer.api_keys] == [(18, 0, 5)]


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(
    ("request_made", "version", "reason"),
    [
        (
            m.MetadataRequest(),
            0x7FFF,
            "Metadata v32767 from client 'test' is a version outside the served 0 to 13",
        ),
        (
            produce_request("orders", 0, [b"a"]),
            14,
            "Produce v14 from client 'test' is a version outside the served 0",
        ),
        (m.VoteRequest() if hasattr(m, "VoteRequest") else m.JoinGroupRequest(), 9999, "does not serve"),
    ],
)
def test_what_is_not_served_closes_with_one_line(
    broker, client, caplog, request_made, version, reason, known
):
    data = bytearray(frame(request_made, type(request_made).MIN_VERSION, 1))
    data[6:8] = version.to_bytes(2, "big")
    if known:
        client.call(produce_request("orders", 0, [b"a"]), 9)
    if "does not serve" in reason:
        data[4:6] = (999).to_bytes(2, "big")
    client.send(bytes(data))
    assert client.transport.closed
    lines = [record.getMessage() for record in caplog.records if "Closing" in record.getMessage()]
    assert len(lines) == 1
    assert reason in lines[0]


def test_a_handler_that_raises_answers_minus_1_in_its_own_shape(broker, client, caplog):
    def broken(ctx, request):
        raise RuntimeError("a bug")

    replace_handler(broker, ApiKey.CREATE_TOPICS, broken)
    topics = [m.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1) for name in "ab"]
    answer = client.call(m.CreateTopicsRequest(topics=topics), 5)
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [("a", -1), ("b", -1)]
    assert "CreateTopics v5" in caplog.text
    client.send(frame(m.ApiVersionsRequest(), 0, 2))
    assert len(client.answers()) == 1


@pytest.mark.parametrize("refusal", [StoreFailed("/config", "the disk is full"), BadPayload("/x", "no JSON")])
def test_what_the_metadata_store_refuses_is_minus_1_and_one_line_without_a_trace(
    broker, client, caplog, refusal
):
    async def refused(ctx, request):
        raise refusal

    replace_handler(broker, ApiKey.CREATE_TOPICS, refused)
    topics = [m.CreateTopicsRequest.CreatableTopic(name="a", num_partitions=1)]
    answer = client.call(m.CreateTopicsRequest(topics=topics), 5)
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [("a", -1)]
    assert str(refusal) in caplog.text
    assert "Traceback" not in caplog.text


def test_an_async_handler_holds_back_what_is_behind_it(broker, client):
    gate = asyncio.Event()

    async def slow(ctx, request):
        await gate.wait()
        return m.DescribeClusterResponse(cluster_id="c")

    async def open_gate():
        gate.set()

    async def send():
        client.send(frame(m.DescribeClusterRequest(), 0, 1) + frame(m.ApiVersionsRequest(), 0, 2))

    replace_handler(broker, ApiKey.DESCRIBE_CLUSTER, slow)
    broker.run(send())
    assert client.answers() == []
    broker.run(open_gate())
    assert [correlation_id for correlation_id, _ in client.answers()] == [1, 2]


def test_an_async_handler_that_raises_answers_too(broker, client):
    async def broken(ctx, request):
        raise RuntimeError("a bug")

    async def send():
        client.send(frame(m.DescribeClusterRequest(), 0, 1) + frame(m.ApiVersionsRequest(), 0, 2))

    replace_handler(broker, ApiKey.DESCRIBE_CLUSTER, broken)
    broker.run(send())
    (first, data), (second, _) = client.answers()
    assert (first, second) == (1, 2)
    assert decode(ApiKey.DESCRIBE_CLUSTER, 0, data).error_code == -1


def test_a_request_whose_task_is_ended_before_it_began_leaves_nothing_half_way(broker, client):
    import inspect

    begun = []

    async def slow(ctx, request):
        raise AssertionError("it was not to begin")

    def handle(ctx, request):
        begun.append(slow(ctx, request))
        return begun[0]

    async def send_and_end():
        client.send(frame(m.DescribeClusterRequest(), 0, 1))
        await broker.hub.env.tasks.aclose()

    replace_handler(broker, ApiKey.DESCRIBE_CLUSTER, handle)
    broker.run(send_and_end())
    assert inspect.getcoroutinestate(begun[0]) == inspect.CORO_CLOSED
    assert client.answers() == []


def serve_later(broker):
    """A handler whose answers the test gives; they wait in the list."""
    waiting = []

    def handle(ctx, request):
        waiting.append(Later())
        return waiting[-1].now_or_later()

    replace_handler(broker, ApiKey.DESCRIBE_CLUSTER, handle)
    return waiting


def test_an_answer_that_comes_by_a_call_holds_back_what_is_behind_it(broker, client):
    waiting = serve_later(broker)
    client.send(frame(m.DescribeClusterRequest(), 0, 1) + frame(m.ApiVersionsRequest(), 0, 2))
    client.send(frame(m.DescribeClusterRequest(), 0, 3))
    broker.run()
    assert client.answers() == []
    [first] = waiting
    first.give(m.DescribeClusterResponse(cluster_id="c"))
    broker.run()
    [(one, data), (two, _)] = client.answers()
    assert (one, two) == (1, 2)
    assert decode(ApiKey.DESCRIBE_CLUSTER, 0, data).cluster_id == "c"
    waiting[1].give(m.DescribeClusterResponse())
    broker.run()
    assert [correlation_id for correlation_id, _ in client.answers()] == [3]


def test_answers_to_many_connections_may_come_at_once(broker):
    waiting = serve_later(broker)
    clients = [broker.connect() for _ in range(3)]
    for client in clients:
        client.send(frame(m.DescribeClusterRequest(), 0, 1))
    for later in reversed(waiting):
        later.give(m.DescribeClusterResponse())
    broker.run()
    assert [len(client.answers()) for client in clients] == [1, 1, 1]


@pytest.mark.parametrize("how", ["lost", "shut"])
def test_an_answer_for_a_client_that_has_gone_is_dropped(broker, client, how, caplog):
    waiting = serve_later(broker)
    client.send(frame(m.DescribeClusterRequest(), 0, 1) + frame(m.ApiVersionsRequest(), 0, 2))
    if how == "lost":
        client.lose()
    else:
        client.connection.shut()
    waiting[0].give(m.DescribeClusterResponse())
    broker.run()
    assert client.answers() == []
    assert caplog.records == []


def test_an_answer_that_cannot_be_encoded_is_minus_1(broker, client):
    waiting = serve_later(broker)
    client.send(frame(m.DescribeClusterRequest(), 0, 1))
    waiting[0].give(m.DescribeClusterResponse(cluster_id=7))
    broker.run()
    [(_, data)] = client.answers()
    assert decode(ApiKey.DESCRIBE_CLUSTER, 0, data).error_code == -1


def test_a_big_body_may_be_answered_later_too(broker, client):
    def handle(ctx, request):
        later = Later()
        broker.hub.loop.call_soon(later.give, m.MetadataResponse(cluster_id="c"))
        return later.now_or_later()

    replace_handler(broker, ApiKey.METADATA, handle)
    names = [m.MetadataRequest.MetadataRequestTopic(name=f"no-such-topic-{i:06}") for i in range(5000)]

    async def send():
        client.send(frame(m.MetadataRequest(topics=names), 9, 1) + frame(m.ApiVersionsRequest(), 0, 2))
        await client.wrote(1)

    broker.run(send())
    assert [correlation_id for correlation_id, _ in client.answers()] == [1, 2]


def test_a_big_body_is_decoded_beside_the_loop_and_answered_in_order(broker, client):
    names = [m.MetadataRequest.MetadataRequestTopic(name=f"no-such-topic-{i:06}") for i in range(5000)]
    request = m.MetadataRequest(topics=names, allow_auto_topic_creation=False)

    async def send():
        client.send(frame(request, 9, 1) + frame(m.ApiVersionsRequest(), 0, 2))
        while len(client.peek()) < 2:
            await client.wrote(len(client.transport.writes) + 1)

    broker.run(send())
    (first, data), (second, _) = client.answers()
    assert (first, second) == (1, 2)
    assert len(decode(ApiKey.METADATA, 9, data).topics) == 5000


@pytest.mark.parametrize("gone", [False, True])
def test_a_big_answer_of_an_async_handler_is_encoded_beside_the_loop(broker, client, monkeypatch, gone):
    topics = [m.MetadataResponse.MetadataResponseTopic(name="t") for _ in range(BIG_ELEMENTS + 1)]

    async def many(ctx, request):
        return m.MetadataResponse(topics=topics)

    async def send():
        encoding = asyncio.get_running_loop().create_future()

        async def held(function, *args):
            await encoding
            return function(*args)

        monkeypatch.setattr(broker.hub.env.blocking, "submit", held)
        client.send(frame(m.MetadataRequest(), 9, 1) + frame(m.ApiVersionsRequest(), 0, 2))
        other.send(frame(m.ApiVersionsRequest(), 0, 3))
        await other.wrote(1)
        assert client.peek() == []
        if gone:
            client.connection.connection_lost(None)
        encoding.set_result(None)
        if not gone:
            await client.wrote(1)

    other = broker.connect()
    replace_handler(broker, ApiKey.METADATA, many)
    broker.run(send())
    assert [correlation_id for correlation_id, _ in other.answers()] == [3]
    if gone:
        assert client.answers() == []
    else:
        (first, data), (second, _) = client.answers()
        assert (first, second) == (1, 2)
        assert len(decode(ApiKey.METADATA, 9, data).topics) == len(topics)


def test_a_big_answer_that_cannot_be_encoded_is_minus_1(broker, client):
    brokers = [m.DescribeClusterResponse.DescribeClusterBroker(host=7)] * (BIG_ELEMENTS + 1)

    async def broken(ctx, request):
        return m.DescribeClusterResponse(brokers=brokers)

    async def send():
        client.send(frame(m.DescribeClusterRequest(), 0, 1))
        await client.wrote(1)

    replace_handler(broker, ApiKey.DESCRIBE_CLUSTER, broken)
    broker.run(send())
    [(_, data)] = client.answers()
    assert decode(ApiKey.DESCRIBE_CLUSTER, 0, data).error_code == -1


def test_the_client_id_in_a_line_is_bounded_and_readable(broker, client, caplog):
    data = bytearray(frame(m.MetadataRequest(), 0, 1, client_id="x" * 5000))
    data[6:8] = (99).to_bytes(2, "big")
    client.send(bytes(data))
    assert "x" * 100 in caplog.text
    assert "x" * 101 not in caplog.text
