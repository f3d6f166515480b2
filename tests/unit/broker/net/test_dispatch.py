import dataclasses

import pytest

from protocol import messages as m
from protocol.api_keys import ApiKey
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


def test_an_async_handler_holds_back_what_is_behind_it(broker, client):
    import asyncio

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


def test_the_client_id_in_a_line_is_bounded_and_readable(broker, client, caplog):
    data = bytearray(frame(m.MetadataRequest(), 0, 1, client_id="x" * 5000))
    data[6:8] = (99).to_bytes(2, "big")
    client.send(bytes(data))
    assert "x" * 100 in caplog.text
    assert "x" * 101 not in caplog.text
